"""One operation on the product and on the specification, and whether the two agree afterwards."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import deepcopy
from datetime import timedelta
from typing import Any

from agreement import differences
from asking import Ask, Seen, Wish
from ledger import Ledger, Row, read_ledger
from promises import check_promises
from reference import Reference, Refused
from rig import Rig, open_lessor
from world import Shown, Worker

from lessor.errors import LessorError
from lessor.model.grant import ClaimRequest, Grant, Reach
from lessor.model.lease import Holder
from lessor.model.task import Effects, NewTask
from lessor.model.worker import NewWorker
from lessor.service.lessor import Lessor
from lessor.store import Transaction

Answer = Any
"""What the product answered; None where it refused."""

Rule = Callable[[Answer, Ledger], object]


class PowerCutError(BaseException):
    """The process ended in the middle of an operation."""


class Actor:
    """A store, the specification of what it holds, and the ways between their ids."""

    def __init__(self, rig: Rig) -> None:
        self.rig = rig
        self.store = rig.fresh()
        self.lessor = open_lessor(self.store)
        self.ref = Reference(self.store.clock.wall_ms())
        self.cut_after: int | None = None
        self._other: Lessor | None = None
        self._granted: dict[tuple[int, int], Row] = {}
        self._register()
        self.ledger = read_ledger(self.store)

    def close(self) -> None:
        """Give the store back."""
        if self._other is not None:
            self._other.close()
        self.lessor.close()
        self.rig.discard(self.store)

    def reopen(self) -> None:
        """Another process: what this one remembered is gone."""
        self.lessor.close()
        self.lessor = open_lessor(self.store)
        self.ref.clock = self.store.clock.wall_ms()

    def pass_time(self, milliseconds: int) -> None:
        """Let time pass; the store's clock is what the specification says it is."""
        self.store.advance(milliseconds)
        self.ref.clock = self.store.clock.wall_ms()
        assert self.lessor.now_ms() == self.ref.clock

    def do(
        self, call: Callable[[], Answer], rule: Rule, *, notices: bool = False, whole: bool = False
    ) -> Any:
        """Act on both sides; what the product answered, or None where it rightly refused.

        Args:
            rule: the same on the specification, given the answer and the store as it is then.
            notices: the operation may find what ran out even when it refuses.
            whole: it is one transaction, so that it can be cut off without having done anything.
        """
        before = self.ledger
        answer: Any = None
        code = ""
        try:
            answer = self._cut_off(call) if whole else call()
        except PowerCutError:
            self.reopen()
            self.ledger = read_ledger(self.store)
            assert self.ledger == before, "what was cut off left something behind"
            return None
        except LessorError as error:
            code = error.code
        after = self.ledger = read_ledger(self.store)
        expected = self._expected(rule, answer, after, code=code)
        assert code == expected, f"refused with {code!r}, expected {expected!r}"
        if code and not notices:
            assert after.without_late() == before.without_late(), f"{code} changed something"
        self.check(before)
        return answer

    def do_while(
        self,
        call: Callable[[], Answer],
        rule: Rule,
        other_call: Callable[[Lessor], Answer],
        other_rule: Callable[[Answer], object],
        *,
        statements: int,
    ) -> Answer:
        """Act while another connection acts, after some statements of the transaction.

        What comes out has to be what one of the two would have led to after the other, in either
        order. An action of the other one that would have to wait doesn't happen.
        """
        before = self.ledger
        others: list[tuple[Answer, str]] = []

        def act() -> None:
            others.append(_answer(lambda: other_call(self._somebody_else())))

        answer, code = self._hooked(lambda: _answer(call), statements, act)
        after = self.ledger = read_ledger(self.store)
        apart = not others
        if apart:
            act()
            self.ledger = read_ledger(self.store)
        other_answer, other_code = others[0]

        def mine() -> None:
            assert code == self._expected(rule, answer, after, code=code)

        def theirs() -> None:
            expected = self._expected(
                lambda a, _: other_rule(a), other_answer, after, code=other_code
            )
            assert other_code == expected

        steps = (mine,) if other_code == "busy" else (mine, theirs)
        self._one_of([steps] if apart else [steps, steps[::-1]])
        self.check(before)
        return answer

    def check(self, before: Ledger) -> None:
        """Compare everything with the specification, and judge the rows by themselves."""
        check_promises(before, self.ledger, self._granted)
        found = differences(self.ref, self.ledger)
        assert not found, "\n".join(found)

    def seen(self, ledger: Ledger, grants: Sequence[Grant] | None) -> Seen:
        """The choices that can be read from the store after an operation."""
        naming = self.lessor.naming
        return Seen(
            leases=ledger.by_id("lease"),
            tasks=ledger.by_id("task"),
            granted=[naming.lease_row(grant.lease) for grant in grants or []],
            tokens=[grant.holder.token for grant in grants or []],
        )

    def holder(self, shown: Shown) -> Holder:
        """The proof as the product takes it."""
        naming = self.lessor.naming
        return Holder(
            task=naming.task(shown.task),
            epoch=shown.epoch,
            worker=naming.worker(shown.worker),
            token=shown.token,
            version=shown.version,
        )

    def request(self, ask: Ask) -> ClaimRequest:
        """The claim as the product takes it."""
        naming = self.lessor.naming
        anywhere: str | Reach = Reach.ANYWHERE if ask.place is None else Reach.NO_REPOSITORY
        return ClaimRequest(
            worker=naming.worker(ask.worker),
            request_id=ask.request,
            secret=ask.secret,
            queue=ask.queue,
            repository=naming.repository(ask.place) or anywhere if ask.place else anywhere,
            task=None if ask.task is None else naming.task(ask.task),
            wanted=ask.wanted,
            ttl_ms=ask.ttl,
            max_hold_ms=ask.hold,
        )

    def new_task(self, wish: Wish) -> NewTask:
        """The wish as the product takes it."""
        naming = self.lessor.naming
        return NewTask(
            title="work",
            queue=wish.queue,
            repository=naming.repository(wish.place),
            scopes=wish.writes,
            reads=wish.reads,
            strict=wish.strict,
            progress=wish.progress,
            priority=wish.priority,
            delay=timedelta(milliseconds=wish.delay) if wish.delay else None,
            needs=tuple(naming.task(need) for need in wish.needs),
            needs_index=wish.before,
            unique_key=wish.unique,
            limit_key=wish.limit_key,
            agent=wish.agent,
            capabilities=() if wish.capability is None else (wish.capability,),
            effects=Effects(wish.effects),
            idempotency_key="key" if wish.keyed else None,
            max_attempts=wish.max_attempts,
        )

    def _expected(self, rule: Rule, answer: Any, after: Ledger, *, code: str) -> str:
        try:
            rule(answer, after)
        except Refused as refused:
            return refused.code
        except Exception as error:
            if code:  # the specification took for granted what was refused
                raise AssertionError(f"refused with {code!r}, but nothing forbids it") from error
            raise
        return ""

    def _cut_off(self, call: Callable[[], Any]) -> Any:
        """Call, but end at the statement after `cut_after` others, as if the power had gone."""
        left, self.cut_after = self.cut_after, None

        def cut() -> None:
            raise PowerCutError

        return call() if left is None else self._hooked(call, left, cut)

    def _hooked(self, call: Callable[[], Any], statements: int, act: Callable[[], None]) -> Any:
        """Call, and act in the middle of its transaction."""
        store: Any = self.lessor.store
        write = store.write
        store.write = lambda rule: write(lambda tx: rule(_Hooked(tx, statements, act)))
        try:
            return call()
        finally:
            del store.write

    def _somebody_else(self) -> Lessor:
        """Another connection, which doesn't wait for this one's locks."""
        if self._other is None:
            self._other = open_lessor(self.store)
            opened: Any = self._other.store
            opened._line().connection.execute("SET lock_timeout = 20")
        return self._other

    def _one_of(self, orders: Sequence[Sequence[Callable[[], None]]]) -> None:
        """Take the first order of steps that explains what the store holds now."""
        wrong = []
        saved = deepcopy(self.ref.__dict__)
        for order in orders:
            try:
                for step in order:
                    step()
                found = differences(self.ref, self.ledger)
                assert not found, "\n".join(found)
            except (AssertionError, KeyError) as error:  # a row that this order can't know
                wrong.append(str(error))
                self.ref.__dict__.update(deepcopy(saved))
            else:
                return
        raise AssertionError("\nnor: ".join(wrong))

    def _register(self) -> None:
        registry = self.lessor.registry
        for name in ("github.com/acme/shop", "github.com/acme/bank"):
            registry.add_repository(name)
            self.ref.places[len(self.ref.places)] = type(self.ref.places[0])()
        for agent, kind, capability in (
            ("ada", "claude", None),
            ("bob", "codex", "gpu"),
            ("ada", "claude", None),
        ):
            made = registry.add_worker(
                NewWorker(agent=agent, kind=kind, capabilities=(capability,) if capability else ())
            )
            row = self.lessor.naming.worker_row(made.id)
            self.ref.workers[row] = Worker(id=row, agent=agent, kind=kind, capability=capability)


def _answer(call: Callable[[], Answer]) -> tuple[Answer, str]:
    try:
        return call(), ""
    except LessorError as error:
        return None, error.code


class _Hooked:
    """A transaction in which something happens once, after some statements."""

    def __init__(self, tx: Transaction, left: int, act: Callable[[], None]) -> None:
        self._tx = tx
        self._left = left
        self._act = act

    def __getattr__(self, name: str) -> Any:
        if name in {"rows", "batch", "finish"}:
            self._left -= 1
            if self._left == -1:
                self._act()
        return getattr(self._tx, name)
