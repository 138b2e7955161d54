"""A holder's writes, by whoever ever held."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from acting import Answer
from hypothesis import strategies as st
from hypothesis.stateful import rule
from ledger import Ledger
from machine import StoreMachine
from wishes import forgeries, holders, mostly, rarely, scopes
from world import Shown

from lessor.model.grant import Failure, Result
from lessor.model.lease import Holder
from lessor.model.scope import Mode
from lessor.model.task import Stage

several = st.lists(holders, min_size=1, max_size=3)


class HolderRules(StoreMachine):
    """What may be done by whoever shows a proof, old or new, right or wrong."""

    @rule(shown=several, forged=forgeries, again=rarely)
    def renew(self, shown: list[Shown], forged: str, again: bool) -> None:
        shown = self.prove_all(shown, forged)
        request = f"renewal-{self.count if again else self.number()}"
        proofs = [self.actor.holder(one) for one in shown]

        def specified(answer: Answer, _: Ledger) -> None:
            for one, given in zip(shown, answer, strict=True):
                outcome = self.outcome(lambda one=one: self.ref.renew(one, request=request))  # type: ignore[misc]
                self.compare_renewal(given, outcome)

        self.actor.do(lambda: self.leases.renew(proofs, request_id=request), specified)

    renew_more = renew  # drawn twice as often as other rules

    @rule(
        shown=several,
        forged=forgeries,
        said=st.sampled_from(["done", "done", "well"]),
        stage=st.sampled_from(["unverified", "verified"]),
    )
    def complete(self, shown: list[Shown], forged: str, said: str, stage: str) -> None:
        shown = self.prove_all(shown, forged)
        items = [(self.actor.holder(one), Result(said=said, stage=Stage(stage))) for one in shown]

        def specified(answer: Answer, _: Ledger) -> None:
            self.compare_ends(answer, [self.completed(one, said, stage=stage) for one in shown])

        self.actor.do(lambda: self.leases.complete(items), specified)

    @rule(
        shown=holders,
        forged=forgeries,
        error=st.sampled_from(["boom", "boom", "bang"]),
        retry=mostly,
        credential=rarely,
    )
    def fail(self, shown: Shown, forged: str, error: str, retry: bool, credential: bool) -> None:
        shown = self.prove(shown, forged)
        failure = Failure(error=error, retry=retry, credential=credential)

        def specified(answer: Answer, _: Ledger) -> tuple[str, bool]:
            until = None if answer is None else answer.run_at_ms
            return self.ref.fail(shown, error, fatal=not retry, credential=credential, until=until)

        self.stop(lambda holder: self.leases.fail(holder, failure), specified, shown)

    @rule(shown=holders, forged=forgeries, reason=st.sampled_from(["", "", "tired"]))
    def release(self, shown: Shown, forged: str, reason: str) -> None:
        shown = self.prove(shown, forged)
        self.stop(
            lambda holder: self.leases.release(holder, reason=reason),
            lambda _, __: self.ref.release(shown, reason),
            shown,
        )

    release_more = release

    @rule(shown=holders, forged=forgeries, question=st.sampled_from(["red?", "red?", "blue?"]))
    def ask_a_person(self, shown: Shown, forged: str, question: str) -> None:
        shown = self.prove(shown, forged)

        def specified(_: Answer, after: Ledger) -> tuple[str, bool]:
            known = self.ref.leases
            rows = after.by_id("lease")
            holds = [n for n, row in rows.items() if n not in known and row["kind"] == "hold"]
            return self.ref.ask(shown, question, hold=holds[0] if holds else None)

        self.stop(lambda holder: self.leases.ask(holder, question), specified, shown)

    @rule(shown=holders, forged=forgeries)
    def acknowledge(self, shown: Shown, forged: str) -> None:
        shown = self.prove(shown, forged)

        def specified(answer: Answer, _: Ledger) -> None:
            end = self.ref.acknowledge(shown)
            assert answer in {None, end}

        self.actor.do(lambda: self.leases.acknowledge(self.actor.holder(shown)), specified)

    @rule(shown=holders, forged=forgeries)
    def watch(self, shown: Shown, forged: str) -> None:
        shown = self.prove(shown, forged)

        def specified(answer: Answer, _: Ledger) -> None:
            live, version, left, end = self.ref.watch(shown)
            expected = (live, version, left, end)
            assert (
                answer is None
                or (answer.live, answer.version, answer.ttl_ms, answer.end) == expected
            )

        self.actor.do(lambda: self.leases.watch(self.actor.holder(shown)), specified)

    @rule(
        shown=holders,
        forged=forgeries,
        wanted=st.lists(scopes, min_size=1, max_size=2),
        mode=st.sampled_from(list(Mode)),
        since_start=st.booleans(),
    )
    def widen(
        self, shown: Shown, forged: str, wanted: list[str], mode: Mode, since_start: bool
    ) -> None:
        shown = self.prove(shown, forged)

        def specified(answer: Answer, _: Ledger) -> None:
            fence = self.ref.widen(shown, wanted, mode=mode, since_start=since_start)
            assert answer in {None, fence}

        self.actor.do(
            lambda: self.leases.widen(
                self.actor.holder(shown), wanted, mode=mode, since_start=since_start
            ),
            specified,
            whole=True,
        )

    widen_more = widen

    def stop(
        self,
        call: Callable[[Holder], Answer],
        specified: Callable[[Answer, Ledger], tuple[str, bool]],
        shown: Shown,
    ) -> None:
        """End a lease without a result, on both sides."""

        def compared(answer: Any, after: Ledger) -> None:
            expected = specified(answer, after)
            assert answer is None or (answer.state, answer.repeated) == expected

        self.actor.do(lambda: call(self.actor.holder(shown)), compared, whole=True)
