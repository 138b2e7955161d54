"""Adding and claiming."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from acting import Answer
from asking import Ask, Wish
from grants import claim, submit
from hypothesis import strategies as st
from hypothesis.stateful import initialize, multiple, precondition, rule
from ledger import Ledger
from machine import StoreMachine
from reference import Refused
from wishes import MANY, TTL, forgeries, holders, queues, rarely, small, wishes, workers
from world import Shown

from lessor.model.grant import Result

MOST_TASKS = 30


class ClaimRules(StoreMachine):
    """Adding and claiming, anew and again."""

    @initialize(target=holders, wished=st.lists(wishes, min_size=2, max_size=8))
    def begin(self, wished: list[Wish]) -> Any:
        self.add(wished)
        return self.claim_as(self.ask(place=1, wanted=2))

    @precondition(lambda self: len(self.ref.tasks) < MOST_TASKS)
    @rule(wished=st.lists(wishes, min_size=1, max_size=3), needing=small, chained=rarely)
    def submit(self, wished: list[Wish], needing: int, chained: bool) -> None:
        if needing < len(self.ref.tasks) // 2:
            wished[0] = replace(wished[0], needs=(self.some_task(needing),))
        if chained and len(wished) > 1:
            wished[-1] = replace(wished[-1], before=(0,))
        self.add(wished)

    submit_more = submit  # drawn twice as often as other rules

    @precondition(lambda self: len(self.ref.tasks) < MOST_TASKS)
    @rule(wish=wishes, shown=holders)
    def submit_behind(self, wish: Wish, shown: Shown) -> None:
        """A task that needs one that somebody works at: its end is soon, and has to be noticed."""
        self.add([replace(wish, needs=(shown.task,))])

    @rule(
        target=holders,
        place=st.sampled_from([1, 1, 1, 1, 2, 0, None]),
        worker=workers,
        wanted=st.sampled_from([1, 1, 1, 2, 3, MANY]),
        queue=queues,
        ttl=st.sampled_from([TTL, TTL, 20_000]),
        hold=st.sampled_from([None, None, TTL + 1_000]),
    )
    def claim(self, **wish: Any) -> Any:
        return self.claim_as(self.ask(**wish))

    claim_more = claim

    @precondition(lambda self: self.ref.tasks)
    @rule(target=holders, which=small, worker=workers, place=st.sampled_from([None, None, 1]))
    def claim_one_task(self, which: int, worker: int, place: int | None) -> Any:
        return self.claim_as(self.ask(worker=worker, place=place, task=self.some_task(which)))

    @precondition(lambda self: self.asked)
    @rule(
        target=holders,
        which=small,
        changed=st.sampled_from(["", "", "", "secret", "wanted", "worker"]),
    )
    def repeat_a_claim(self, which: int, changed: str) -> Any:
        ask = self.asked[-1 - which % len(self.asked)]
        match changed:
            case "secret":
                ask = replace(ask, secret="another secret of somebody")
            case "wanted":
                ask = replace(ask, wanted=ask.wanted + 1)
            case "worker":
                other = ask.worker % 3 + 1
                ask = replace(ask, worker=other, actor=self.actor.lessor.naming.worker(other))
            case _:
                pass
        return self.claim_as(ask)

    @rule(
        target=holders,
        shown=st.lists(holders, min_size=1, max_size=3),
        forged=forgeries,
        place=st.sampled_from([1, 1, 2, 0]),
        wanted=st.sampled_from([1, 1, 2]),
        again=rarely,
        said=st.sampled_from(["done", "done", "well"]),
    )
    def complete_and_claim(
        self, shown: list[Shown], forged: str, place: int, wanted: int, again: bool, said: str
    ) -> Any:
        ask = self.asked[-1] if again and self.asked else self.ask(place=place, wanted=wanted)
        if ask.place is None and ask.task is None:
            return multiple()
        shown = self.prove_all(shown, forged)
        items = [(self.actor.holder(one), Result(said=said)) for one in shown]
        # A lease that is named again is completed after the claim, as if by a later call.
        firsts = {(one.task, one.epoch): n for n, one in reversed([*enumerate(shown)])}.values()
        later = [n for n in range(len(shown)) if n not in firsts]

        def specified(answer: Answer, after: Ledger) -> None:
            ended, grants = answer or ([], [])
            saved = self.save()
            outcomes = {n: self.completed(shown[n], said) for n in firsts}
            try:
                leases = claim(self.ref, ask, self.actor.seen(after, grants))
            except Refused:
                self.load(saved)
                raise
            outcomes |= {n: self.completed(shown[n], said) for n in later}
            self.compare_grants(grants, leases)
            self.compare_ends(ended, [outcomes[n] for n in range(len(shown))])

        answer = self.actor.do(
            lambda: self.leases.complete_and_claim(items, self.actor.request(ask)), specified
        )
        return self.remember(ask, answer[1] if answer else [])

    def add(self, wished: Sequence[Wish]) -> None:
        """Submit on both sides."""
        new = [self.actor.new_task(wish) for wish in wished]

        def specified(answer: Answer, _: Ledger) -> None:
            naming = self.actor.lessor.naming
            made = [(naming.task_row(one.task), one.created) for one in answer or []]
            submit(self.ref, wished, made)

        self.mutate(
            "submitter",
            ("submit", *wished),
            specified,
            lambda request: self.tasks.submit(new, submitter="submitter", request_id=request),
        )

    def ask(self, *, worker: int = 1, ttl: int = TTL, wanted: int = 1, **more: Any) -> Ask:
        """A claim that nobody has made yet."""
        number = self.number()
        return Ask(
            actor=self.actor.lessor.naming.worker(worker),
            worker=worker,
            request=f"claim-{number}",
            secret=f"the secret of claim {number}",
            wanted=wanted,
            ttl=ttl,
            **more,
        )

    def claim_as(self, ask: Ask) -> Any:
        """Claim on both sides; the proofs of what was granted."""

        def specified(answer: Answer, after: Ledger) -> None:
            hasty = self.rig.kind == "postgres"
            leases = claim(self.ref, ask, self.actor.seen(after, answer), hasty=hasty)
            self.compare_grants(answer or [], leases)

        answer = self.actor.do(
            lambda: self.leases.claim(self.actor.request(ask)),
            specified,
            notices=True,
            whole=ask.place is not None or ask.task is not None,
        )
        return self.remember(ask, answer)
