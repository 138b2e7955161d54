"""A process's way to the store: a network that loses, doubles and delays, and a store that others use."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any, TypeVar

from lessor.errors import BusyError, LessorError, StoreUnavailableError
from lessor.model.grant import Failure
from lessor.model.lease import Holder
from lessor.model.retry import RetryPolicy
from lessor.service.lessor import Lessor
from lessor.store import Call, Row, Transaction
from simulation.judging import Doing
from simulation.world import World

T = TypeVar("T")
POLICY = RetryPolicy(first_ms=1_000, factor=2, ceiling_ms=5_000, same_error_limit=3)


class SilenceError(Exception):
    """No answer came; nobody knows whether the call was done."""


class Line:
    """The store as one process has it: between any two statements others may act."""

    dialect = "sqlite"
    concurrent = False

    def __init__(self, world: World) -> None:
        self._world = world
        self._store = world.open_store()
        self.key = self._store.key

    def write(self, rule: Callable[[Transaction], T]) -> T:
        """One transaction; a step."""
        self._world.step("write")
        return self._world.transact(self._store, lambda: self._store.write(rule), writes=True)

    def read(self, name: str, /, **values: Any) -> list[Row]:
        """One statement that reads; a step, unless it is part of this process's own transaction."""
        if self._store._db.in_transaction:
            return self._store.read(name, **values)
        self._world.step("read")
        return self._world.transact(
            self._store, lambda: self._store.read(name, **values), writes=False
        )

    def once(self, name: str, /, **values: Any) -> list[Row]:
        """One statement that writes; a step."""
        return self.write(lambda tx: tx.rows(name, **values))

    def together(self, *calls: Call) -> list[list[Row]]:
        """Statements that write, in one transaction; a step."""
        return self.write(lambda tx: tx.batch(*calls))

    def join(self, connection: Any) -> AbstractContextManager[Transaction]:
        """Nobody here has a transaction of its own."""
        raise NotImplementedError

    def now(self) -> int:
        """The store's clock, as this process would read it."""
        return self._store._now()

    def notify(self) -> None:
        """Wake whoever waits."""
        self._store.notify()

    def wait(self, milliseconds: int) -> None:
        """Let the others run."""
        self._world.sleep(milliseconds)

    def close(self) -> None:
        """The process is gone."""
        self._world.close_store(self._store)


class Client:
    """What a process does with Lessor, over a network."""

    def __init__(self, world: World, name: str) -> None:
        self.world = world
        self.name = name
        self._line = Line(world)
        self.lessor = self._lessor()

    def restart(self) -> None:
        """Begin again with nothing but the store."""
        self._line.close()
        self._line = Line(self.world)
        self.lessor = self._lessor()

    def ask(
        self,
        kind: str,
        call: Callable[[Lessor], T],
        *,
        holders: Sequence[Holder] = (),
        request: tuple[str, str] | None = None,
        failure: Failure | None = None,
    ) -> T:
        """Send one call and wait for its answer.

        Raises:
            SilenceError: none came.
            LessorError: it was refused.
        """
        world = self.world
        if world.hit("pause"):
            world.sleep(world.span("pause", 100, 3 * world.plan.ttl_ms))
        world.sleep(world.span("latency", 1, 40))
        if world.hit("late"):
            world.sleep(world.span("late", 100, world.plan.ttl_ms))
        if world.hit("lost_before"):
            self._nothing(kind, "never arrived")

        def again() -> Doing:
            return Doing(kind=kind, holders=holders, request=request, failure=failure)

        if world.hit("straggler"):
            world.later(
                f"{self.name}'s copy",
                world.span("straggler", 50, 4 * world.plan.ttl_ms),
                lambda: self._straggle(again(), call),
            )
        answer = self._deliver(again(), call)
        if world.hit("doubled"):
            self._aside(again(), call)
        if world.hit("lost_after"):
            self._nothing(kind, "was done, and its answer never arrived")
        world.sleep(world.span("latency", 1, 40))
        if isinstance(answer, LessorError):
            raise answer
        return answer

    def insist(
        self,
        kind: str,
        call: Callable[[Lessor], T],
        *,
        holders: Sequence[Holder] = (),
        request: tuple[str, str] | None = None,
        failure: Failure | None = None,
        tries: int = 5,
    ) -> T:
        """Ask again after silence, with the same call, a few times.

        Raises:
            SilenceError: it stayed silent.
            LessorError: it was refused.
        """
        for left in reversed(range(tries)):
            try:
                return self.ask(kind, call, holders=holders, request=request, failure=failure)
            except (SilenceError, BusyError, StoreUnavailableError):
                if not left:
                    raise
                self.world.sleep(self.world.span("retry", 100, 5_000))
        raise SilenceError

    def here(self, kind: str, act: Callable[[Lessor], T], *, holders: Sequence[Holder] = ()) -> T:
        """Do something of many calls in this process, as the command line does; no network."""
        doing = Doing(kind=kind, holders=holders, interrupted=True)
        answer = self._deliver(doing, act)
        if isinstance(answer, LessorError):
            raise answer
        return answer

    def _deliver(self, doing: Doing, call: Callable[[Lessor], T]) -> T | LessorError:
        process = self.world.scheduler.running
        before, process.doing = process.doing, doing
        try:
            answer: T | LessorError = call(self.lessor)
        except LessorError as error:
            answer = error
        finally:
            process.doing = before
        refused = isinstance(answer, LessorError)
        self.world.told(
            doing,
            None if refused else answer,
            answer.code if isinstance(answer, LessorError) else "",
            now=self._line.now(),
        )
        return answer

    def _aside(self, doing: Doing, call: Callable[[Lessor], object]) -> None:
        self._deliver(doing, call)

    def _straggle(self, doing: Doing, call: Callable[[Lessor], object]) -> None:
        """Deliver a copy over a connection of its own: the sender may be gone by then."""
        other = Client(self.world, f"{self.name}'s copy")
        other._aside(doing, call)
        other._line.close()

    def _nothing(self, kind: str, what: str) -> None:
        self.world.record(f"{kind} {what}")
        self.world.sleep(self.world.span("timeout", 500, 10_000))
        raise SilenceError(kind)

    def _lessor(self) -> Lessor:
        world = self.world
        return Lessor(
            self._line, clock=world.clock, policy=POLICY, chance=world.chance(f"jitter/{self.name}")
        )
