"""What all rules share: both sides, what was asked before, and how answers are compared."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from acting import Actor
from asking import Ask
from hypothesis.stateful import RuleBasedStateMachine, multiple
from ledger import Ledger
from reference import Refused
from rig import Rig
from world import Lease, Shown

from lessor.errors import LeaseLostError
from lessor.model.grant import Ended, Grant, Renewed


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """A mutation that was answered, so that it can be asked for again."""

    actor: str
    what: tuple[object, ...]
    call: Callable[[str], Any]
    answer: Any
    request: str


class StoreMachine(RuleBasedStateMachine):
    """Every rule acts on the product and on the specification; then all rows have to agree."""

    rig: ClassVar[Rig]

    def __init__(self) -> None:
        super().__init__()
        self.actor = Actor(self.rig)
        self.ref = self.actor.ref
        self.asked: list[Ask] = []
        self.told: list[Told] = []
        self.count = 0

    def teardown(self) -> None:  # type: ignore[explicit-override]
        """Give the store back."""
        self.actor.close()

    @property
    def leases(self) -> Any:
        """The product's operations on leases."""
        return self.actor.lessor.leases

    @property
    def tasks(self) -> Any:
        """The product's operations on tasks."""
        return self.actor.lessor.tasks

    def number(self) -> int:
        """One more, for ids and secrets."""
        self.count += 1
        return self.count

    def remember(self, ask: Ask, grants: Sequence[Grant] | None) -> Any:
        """Keep the claim for repeats; what was granted, as it is shown later."""
        self.asked.append(ask)
        naming = self.actor.lessor.naming
        return multiple(
            *(
                Shown(
                    task=naming.task_row(grant.task),
                    epoch=grant.epoch,
                    worker=naming.worker_row(grant.holder.worker),
                    token=grant.holder.token,
                )
                for grant in grants or []
            )
        )

    def mutate(
        self,
        actor: str,
        what: tuple[object, ...],
        specified: Callable[[Any, Ledger], None],
        call: Callable[[str], Any],
    ) -> None:
        """A mutation with a request id, kept for repeats."""
        request = f"request-{self.number()}"

        def kept(answer: Any, after: Ledger) -> None:
            specified(answer, after)
            self.ref.requests[actor, request] = (what, None)

        answer = self.actor.do(lambda: call(request), kept, whole=True)
        if answer is not None:
            told = Told(actor=actor, what=what, call=call, answer=answer, request=request)
            self.told.append(told)

    def some_task(self, which: int) -> int:
        """A task, the latest ones first."""
        numbers = sorted(self.ref.tasks, reverse=True)
        return numbers[which % len(numbers)]

    def prove(self, shown: Shown, how: str = "") -> Shown:
        """The proof as its holder would show it now, or with a part of it wrong."""
        lease = self.ref.granted.get((shown.task, shown.epoch))
        now = replace(shown, version=1 if lease is None else lease.version)
        wrong: dict[str, dict[str, Any]] = {
            "token": {"token": "somebody else's"},
            "worker": {"worker": shown.worker % 3 + 1},
            "later": {"epoch": shown.epoch + 1},
            "earlier": {"epoch": max(1, shown.epoch - 1)},
            "stale": {"version": max(1, now.version - 1)},
            "ahead": {"version": now.version + 1},
        }
        return replace(now, **wrong.get(how, {}))

    def prove_all(self, several: Sequence[Shown], how: str) -> list[Shown]:
        """The same for a list, whose first one may be wrong."""
        return [self.prove(one, "" if place else how) for place, one in enumerate(several)]

    # -- comparing

    def save(self) -> dict[str, Any]:
        """What the specification says now."""
        return deepcopy(self.ref.__dict__)

    def load(self, saved: dict[str, Any]) -> None:
        """Take back what it said since."""
        self.ref.__dict__.update(saved)

    def completed(self, shown: Shown, said: str, *, stage: str = "unverified") -> Any:
        """A completion's outcome."""
        return self.outcome(lambda: self.ref.complete(shown, said, stage=stage))

    @staticmethod
    def outcome(act: Callable[[], Any]) -> Any:
        """An item's outcome in a batch: what is answered, or the code of its refusal."""
        try:
            return act()
        except Refused as refused:
            return refused.code

    @staticmethod
    def compare_renewal(given: Renewed | LeaseLostError, outcome: Any) -> None:
        """One renewal's answer and what it should have been."""
        if isinstance(given, LeaseLostError):
            assert given.code == outcome
        else:
            assert (given.version, given.expires_ms) == outcome

    @staticmethod
    def compare_ends(given: Sequence[Ended | LeaseLostError], outcomes: Sequence[Any]) -> None:
        """The answers to completions and what they should have been."""
        said = [
            one.code if isinstance(one, LeaseLostError) else (one.state, one.repeated)
            for one in given
        ]
        assert said == list(outcomes)

    def compare_grants(self, grants: Sequence[Grant], leases: Sequence[Lease]) -> None:
        """What the holders were told and what they should have been."""
        naming = self.actor.lessor.naming
        for grant, lease in zip(grants, leases, strict=True):
            task = self.ref.tasks[lease.task]
            assert naming.lease_row(grant.lease) == lease.id
            assert grant.holder.token == lease.token
            assert naming.task_row(grant.task) == lease.task
            told = (grant.epoch, grant.holder.version, grant.fence, grant.expires_ms)
            assert told == (lease.epoch, lease.version, lease.fence, lease.expires)
            held = [(text, "w") for text in grant.scopes] + [(text, "r") for text in grant.reads]
            assert sorted(held) == sorted(task.paths), f"{held} granted to {task}"
            assert (grant.attempts, grant.max_until_ms) == (task.attempts, lease.until)
