"""Claims in whose middle another connection acts; SQLite's lock leaves no such middle."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from acting import Answer
from asking import Ask, Seen
from claim_rules import ClaimRules
from grants import claim
from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule
from ledger import Ledger, read_ledger
from reference import MOVES
from wishes import holders, small, workers
from world import Shown

from lessor.model.grant import Result
from lessor.service.lessor import Lessor


@dataclass(frozen=True, slots=True)
class Taken:
    """What somebody else was granted, and the store as it was then."""

    seen: Seen
    released: bool


class MeanwhileRules(ClaimRules):
    """Whatever commits between a claim's reading and its writing, both orders are possible."""

    @precondition(lambda self: self.rig.kind == "postgres" and self.ref.tasks)
    @rule(
        target=holders,
        place=st.sampled_from([1, 1, 2]),
        wanted=st.sampled_from([1, 2]),
        statements=st.integers(0, 4),
        verb=st.sampled_from([*MOVES]),
        which=small,
    )
    def claim_while_a_person_decides(
        self, place: int, wanted: int, statements: int, verb: str, which: int
    ) -> Any:
        task = self.some_task(which)
        named = self.actor.lessor.naming.task(task)
        request = f"request-{self.number()}"

        def call(other: Lessor) -> Answer:
            if verb == "answer":
                return other.tasks.answer(named, "blue", actor="person", request_id=request)
            return getattr(other.tasks, verb)([named], actor="person", request_id=request)

        def specified(_: Answer) -> None:
            self.ref.decide(verb, [task])
            self.ref.requests["person", request] = ((verb, task), None)

        return self.claim_while(self.ask(place=place, wanted=wanted), call, specified, statements)

    @precondition(lambda self: self.rig.kind == "postgres")
    @rule(
        target=holders,
        place=st.sampled_from([1, 1, 2]),
        wanted=st.sampled_from([1, 2]),
        statements=st.integers(0, 4),
        shown=holders,
        how=st.sampled_from(["complete", "release", "renew"]),
    )
    def claim_while_a_holder_writes(
        self, place: int, wanted: int, statements: int, shown: Shown, how: str
    ) -> Any:
        shown = self.prove(shown)
        proof = self.actor.holder(shown)
        renewal = f"renewal-{self.number()}"

        def call(other: Lessor) -> Answer:
            match how:
                case "complete":
                    return other.leases.complete_one(proof, Result(said="done"))
                case "release":
                    return other.leases.release(proof)
                case _:
                    return other.leases.renew_one(proof, request_id=renewal)

        def specified(_: Answer) -> None:
            match how:
                case "complete":
                    self.ref.complete(shown, "done", stage="unverified")
                case "release":
                    self.ref.release(shown, "")
                case _:
                    self.ref.renew(shown, request=renewal)

        return self.claim_while(self.ask(place=place, wanted=wanted), call, specified, statements)

    @precondition(lambda self: self.rig.kind == "postgres")
    @rule(target=holders, worker=workers, statements=st.integers(0, 4), released=st.booleans())
    def claim_while_somebody_claims(self, worker: int, statements: int, released: bool) -> Any:
        """Without a repository there is no lock to wait for."""
        theirs = self.ask(worker=worker, place=0)

        def call(other: Lessor) -> Taken:
            grants = other.leases.claim(self.actor.request(theirs))
            seen = self.actor.seen(read_ledger(self.actor.store), grants)
            for grant in grants if released else []:
                other.leases.release(grant.holder)
            return Taken(seen, released)

        def specified(taken: Taken) -> None:
            for lease in claim(self.ref, theirs, taken.seen, beside=True):
                if released:
                    self.ref.release(
                        Shown(task=lease.task, epoch=lease.epoch, worker=worker, token=lease.token),
                        "",
                    )

        ask = self.ask(place=0, queue="default")
        return self.claim_while(ask, call, specified, statements)

    def claim_while(self, ask: Ask, call: Any, specified: Any, statements: int) -> Any:
        """Claim while another connection acts."""

        def claimed(answer: Answer, after: Ledger) -> None:
            leases = claim(self.ref, ask, self.actor.seen(after, answer), hasty=True)
            self.compare_grants(answer or [], leases)

        answer = self.actor.do_while(
            lambda: self.leases.claim(self.actor.request(ask)),
            claimed,
            call,
            specified,
            statements=statements,
        )
        return self.remember(ask, answer)
