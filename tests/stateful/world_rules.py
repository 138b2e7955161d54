"""Time, processes, and looking without touching."""

from __future__ import annotations

from acting import Answer
from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule
from ledger import Ledger
from machine import StoreMachine
from readiness import causes
from territory import overlap
from wishes import TTL, scopes, small

from lessor.clock import ManualClock

HOUR = 3_600_000


class WorldRules(StoreMachine):
    """What happens by itself, and what can be seen."""

    @rule(by=st.sampled_from([500, 1, 0, 1_000, 20_000, 20_000, TTL - 1, TTL, TTL + 1, 4 * HOUR]))
    def tick(self, by: int) -> None:
        self.actor.pass_time(by)

    @precondition(lambda self: any(lease.ended is None for lease in self.ref.leases.values()))
    @rule(which=small, off=st.sampled_from([0, -1, 1]))
    def tick_to_a_deadline(self, which: int, off: int) -> None:
        live = [lease for lease in self.ref.leases.values() if lease.ended is None]
        deadline = live[-1 - which % len(live)].expires + off
        self.actor.pass_time(max(0, deadline - self.ref.clock))

    @precondition(lambda self: self.rig.kind == "sqlite")
    @rule(by=st.sampled_from([1, 1_000, TTL, HOUR]))
    def step_the_clock_back(self, by: int) -> None:
        clock = self.actor.store.clock
        assert isinstance(clock, ManualClock)
        clock.step_wall(-by)
        self.actor.pass_time(0)

    @rule(place=st.sampled_from([None, 1, 2]))
    def sweep(self, place: int | None) -> None:
        named = None if place is None else self.actor.lessor.naming.repository(place)

        def specified(answer: Answer, _: Ledger) -> None:
            ended = self.ref.sweep(sorted(self.ref.places) if place is None else [place])
            found = [self.actor.lessor.naming.lease_row(one.id) for one in answer]
            assert sorted(found) == sorted(ended)

        self.actor.do(lambda: self.leases.sweep(repository=named), specified)

    @rule()
    def reopen(self) -> None:
        self.actor.reopen()

    @rule(statements=st.integers(0, 4))
    def cut_the_next_operation_off(self, statements: int) -> None:
        self.actor.cut_after = statements

    @rule(path=scopes, place=st.sampled_from([1, 1, 2]))
    def who_holds(self, path: str, place: int) -> None:
        held = self.leases.who(path, repository=self.actor.lessor.naming.repository(place))
        naming = self.actor.lessor.naming
        expected = {
            lease.id: {text for text, _ in lease.blocks if overlap(text, path)}
            for lease in self.ref.leases.values()
            if lease.place == place and any(overlap(text, path) for text, _ in lease.blocks)
        }
        assert {naming.lease_row(one.lease): set(one.paths) for one in held} == expected

    @precondition(lambda self: self.ref.tasks)
    @rule(which=small)
    def why(self, which: int) -> None:
        task = self.some_task(which)
        why = self.tasks.why(self.actor.lessor.naming.task(task))
        assert why.state == self.ref.tasks[task].state
        assert why.cause in causes(self.ref, self.ref.tasks[task])
