"""What people and witnesses decide."""

from __future__ import annotations

from typing import Any

from acting import Answer
from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule
from ledger import Ledger
from machine import StoreMachine
from reference import MOVES, Refused
from wishes import rarely, small


class PersonRules(StoreMachine):
    """Decisions about tasks, leases, queues and limits, anew and again."""

    @precondition(lambda self: self.ref.tasks)
    @rule(
        verb=st.sampled_from([*MOVES, "unblock", "requeue", "requeue", "answer"]),
        which=st.lists(small, min_size=1, max_size=2),
    )
    def decide(self, verb: str, which: list[int]) -> None:
        chosen = [self.some_task(one) for one in which]
        named = [self.actor.lessor.naming.task(task) for task in chosen]
        if verb == "answer":
            chosen, named = chosen[:1], named[:1]

        def call(request: str) -> Any:
            if verb == "answer":
                return self.tasks.answer(named[0], "blue", actor="person", request_id=request)
            return getattr(self.tasks, verb)(named, actor="person", request_id=request)

        def specified(answer: Answer, _: Ledger) -> None:
            states = self.ref.decide(verb, chosen)
            assert [one.state for one in answer or []] in ([], states)

        self.mutate("person", (verb, *chosen), specified, call)

    decide_more = decide  # drawn twice as often as other rules

    @precondition(lambda self: self.ref.tasks)
    @rule(which=small, end=st.sampled_from(["forced", "gone"]), off=st.sampled_from([0, 0, 0, 1]))
    def force(self, which: int, end: str, off: int) -> None:
        task = self.some_task(which)
        named, epoch = self.actor.lessor.naming.task(task), max(1, self.ref.tasks[task].epoch + off)

        def call(request: str) -> Any:
            if end == "gone":
                return self.leases.end_gone(
                    named, epoch=epoch, proof="dead", actor="person", request_id=request
                )
            return self.leases.force_release(
                named, actor="person", reason="stuck", checked="its host", request_id=request
            )

        def specified(answer: Answer, _: Ledger) -> None:
            state = self.ref.force(task, end, epoch=epoch if end == "gone" else None)
            assert answer is None or answer.state == state

        self.mutate("person", (end, task, epoch * (end == "gone")), specified, call)

    @precondition(lambda self: self.told)
    @rule(which=small)
    def repeat_a_decision(self, which: int) -> None:
        told = self.told[-1 - which % len(self.told)]

        def specified(given: Answer, _: Ledger) -> None:
            assert given == told.answer

        self.actor.do(lambda: told.call(told.request), specified)

    @precondition(lambda self: self.told)
    @rule(which=small, another=small)
    def reuse_the_request_of_a_decision(self, which: int, another: int) -> None:
        told = self.told[-1 - which % len(self.told)]
        other = self.told[-1 - another % len(self.told)]
        if told.actor != other.actor:
            return

        def specified(given: Answer, _: Ledger) -> None:
            if told.what != other.what:
                raise Refused("request_reused")
            assert given == other.answer

        self.actor.do(lambda: told.call(other.request), specified)

    @rule(
        queue=st.sampled_from(["default", "slow"]),
        paused=rarely,
        overtakes=st.sampled_from([1, 2, 20]),
    )
    def set_queue(self, queue: str, paused: bool, overtakes: int) -> None:
        def specified(_: Answer, __: Ledger) -> None:
            self.ref.pause(queue, paused=paused)
            self.ref.queues[queue].overtakes = overtakes

        registry = self.actor.lessor.registry
        self.actor.do(
            lambda: registry.set_queue(queue, paused=paused, overtake_limit=overtakes), specified
        )

    @rule(
        limit=st.sampled_from(
            [("queue", "default"), ("key", "suite"), ("agent", "ada"), ("agent", "claude")]
        ),
        maximum=st.sampled_from([None, None, None, 1, 2, 3, 0]),
    )
    def set_limit(self, limit: tuple[str, str], maximum: int | None) -> None:
        def specified(_: Answer, __: Ledger) -> None:
            self.ref.limits.pop(limit, None)
            if maximum is not None:
                self.ref.limits[limit] = maximum

        self.actor.do(lambda: self.actor.lessor.registry.set_limit(*limit, maximum), specified)
