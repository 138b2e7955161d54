"""One process of a race: `python player.py ORDERS`, ORDERS being JSON; it plays until SIGTERM.

It does at random what agents, people and programs do, and what zombies and thieves try. Every call
is in its journal. A refusal is an answer; any other error ends it with a traceback.
"""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from time import monotonic_ns

from arena import DECISIONS, FOLDED, PLAIN, POLICY, QUEUES, random_scope, random_tasks
from hand import TRIES, Hand
from journal import LOST, Journal
from mutants import mutate
from telling import ends_told, grants_told, leases_asked, request_asked

from lessor.connect import connect
from lessor.errors import LessorError, StoreUnavailableError
from lessor.ids import new_request_id, new_token
from lessor.model.grant import ClaimRequest, Reach
from lessor.model.task import NewTask
from lessor.model.worker import NewWorker
from lessor.service.deciding import Decided

MOST_HELD = 5
MOST_OPEN = 250


@dataclass(frozen=True, slots=True, kw_only=True)
class Orders:
    """What the parent tells a player."""

    url: str
    journal: str
    seed: int
    agent: str
    mutant: str | None = None


class Player:
    """A process's moves: claims and decisions; what it does with its leases is its hand's matter."""

    def __init__(self, orders: Orders) -> None:
        self.rng = Random(orders.seed)
        self.lessor = connect(orders.url, policy=POLICY)
        registry = self.lessor.registry
        self.repositories = [
            str(registry.add_repository(PLAIN).id),
            str(registry.add_repository(FOLDED, fold_case=True).id),
        ]
        self.worker = registry.add_worker(NewWorker(agent=orders.agent)).id
        self.journal = Journal(
            Path(orders.journal), self.lessor, worker=self.lessor.naming.worker_row(self.worker)
        )
        self.hand = Hand(self.lessor, self.journal, self.rng, worker=self.worker)
        self.requests: list[ClaimRequest] = []
        self.known: list[str] = []
        self.stopped = False

    def play(self) -> None:
        """Move after move; whoever holds a lot gives something back."""
        hand = self.hand
        moves: dict[Callable[[], None], int] = {
            self.claim: 24,
            self.claim_again: 4,
            self.acquire: 3,
            self.complete_and_claim: 5,
            self.decide: 7,
            self.submit: 4,
            self.look: 3,
            hand.end: 22,
            hand.renew: 10,
            hand.widen: 10,
            hand.oversleep: 4,
            hand.try_over: 6,
            hand.forge: 3,
        }
        while not self.stopped:
            full = len(hand.held) >= MOST_HELD
            move = hand.end if full else self.rng.choices([*moves], weights=[*moves.values()])[0]
            move()

    def claim(self) -> None:
        """Claim one or several, anywhere or somewhere, for a short time."""
        place = self.rng.choice((Reach.ANYWHERE, Reach.NO_REPOSITORY, *self.repositories))
        named = self.rng.random() < 0.1
        self._ask_for(
            self._wish(place, queue=self.rng.choices(QUEUES, weights=(6, 2, 1))[0])
            if not named
            else replace(self._wish(Reach.ANYWHERE), task=self._some_task())
        )

    def claim_again(self) -> None:
        """Send an old request once more, sometimes with another wish."""
        if self.requests:
            request = self.rng.choice(self.requests)
            changed = self.rng.random() < 0.1
            self._ask_for(replace(request, wanted=request.wanted + changed))

    def acquire(self) -> None:
        """Lease paths at once or not at all."""
        task = NewTask(
            title="ad hoc",
            queue=QUEUES[2],
            repository=self.rng.choice(self.repositories),
            scopes=(random_scope(self.rng),),
        )
        wish = self._wish(Reach.NO_REPOSITORY)
        sent = monotonic_ns()
        grant = self.journal.call(
            "acquire",
            {**request_asked(wish), "wanted": 1},
            lambda: self.lessor.leases.acquire(
                task,
                worker=self.worker,
                ttl_ms=wish.ttl_ms,
                request_id=wish.request_id,
                secret=wish.secret,
            ),
            lambda grant: {"grants": grants_told(self.lessor.naming, [grant])},
        )
        if not isinstance(grant, LessorError):
            self.hand.take([grant], sent_ns=sent)

    def complete_and_claim(self) -> None:
        """The end of one lease and the next one in one transaction."""
        if not self.hand.held:
            return None
        items = self.hand.give([self.rng.choice(self.hand.held)])
        request = self._wish(self.rng.choice((Reach.NO_REPOSITORY, *self.repositories)))
        asked = {
            **request_asked(request),
            "leases": leases_asked(self.lessor.naming, [holder for holder, _ in items]),
        }
        for _ in range(TRIES):
            sent = monotonic_ns()
            answer = self.journal.call(
                "complete_and_claim",
                asked,
                lambda: self.lessor.leases.complete_and_claim(items, request),
                lambda both: {
                    **ends_told(both[0]),
                    "grants": grants_told(self.lessor.naming, both[1]),
                },
            )
            if not isinstance(answer, LessorError):
                return self.hand.take(answer[1], sent_ns=sent)
            if answer.code not in LOST:
                return None
        return None

    def decide(self) -> None:
        """What a person or a witness decides about a task: what it waits for, or anything at all."""
        task, wish = self._waiting_task() if self.rng.random() < 0.7 else (self._some_task(), None)
        tasks, leases = self.lessor.tasks, self.lessor.leases
        said = {"actor": "person", "reason": "stuck", "checked": "the terminal"}
        epoch = self.rng.randrange(1, 4)
        actions: dict[str, Callable[[], list[Decided]]] = {
            "cancel": lambda: tasks.cancel([task]),
            "block": lambda: tasks.block([task]),
            "unblock": lambda: tasks.unblock([task]),
            "requeue": lambda: tasks.requeue([task]),
            "answer": lambda: tasks.answer(task, "the first"),
            "force_release": lambda: [leases.force_release(task, **said)],
            "end_gone": lambda: [leases.end_gone(task, epoch=epoch, proof="exit 0")],
        }
        op = wish or self.rng.choices([*actions], weights=(1, 4, 2, 2, 2, 2, 4))[0]
        asked = {"tasks": [self.lessor.naming.task_row(task)], "epoch": epoch}
        self.journal.call(
            op, asked, actions[op], lambda decided: {"states": [one.state for one in decided]}
        )

    def submit(self) -> None:
        """Add a few tasks, unless there is enough to do."""
        counts = self.journal.call(
            "counts", {}, lambda: self.lessor.tasks.counts(everywhere=True), lambda _: {}
        )
        if isinstance(counts, LessorError):
            return
        if counts.get("queued", 0) + counts.get("running", 0) > MOST_OPEN:
            return
        wanted, known = self.rng.randrange(1, 7), self.known[-20:]
        batch = random_tasks(self.rng, wanted, repositories=self.repositories, known=known)
        made = self.journal.call(
            "submit",
            {},
            lambda: self.lessor.tasks.submit(batch),
            lambda made: {"tasks": [self.lessor.naming.task_row(one.task) for one in made]},
        )
        if not isinstance(made, LessorError):
            self.known.extend(one.task for one in made)

    def look(self) -> None:
        """Sweep, or read what people read."""
        task, (plain, _) = self._some_task(), self.repositories
        actions: dict[str, Callable[[], object]] = {
            "sweep": self.lessor.leases.sweep,
            "why": lambda: self.lessor.tasks.why(task),
            "history": lambda: self.lessor.tasks.history(task),
            "who": lambda: self.lessor.leases.who("a", repository=plain),
            "ready": lambda: self.lessor.tasks.ready(repository=plain),
        }
        op = self.rng.choice([*actions])
        self.journal.call(op, {}, actions[op], lambda _: {})

    def stop(self, *_: object) -> None:
        """Play no more."""
        self.stopped = True

    def _ask_for(self, request: ClaimRequest) -> None:
        """Claim, again with the same request while the answer is lost."""
        self.requests = [*self.requests[-20:], request]
        wait = 30 if self.rng.random() < 0.1 else 0
        for _ in range(TRIES):
            sent = monotonic_ns()
            grants = self.journal.call(
                "claim",
                request_asked(request),
                lambda: self.lessor.leases.claim(request, wait_ms=wait),
                lambda grants: {"grants": grants_told(self.lessor.naming, grants)},
            )
            if not isinstance(grants, LessorError):
                self.hand.take(grants, sent_ns=sent)
                return None if grants else self.submit()
            if grants.code not in LOST:
                return None
        return None

    def _wish(self, place: str | Reach, *, queue: str = "default") -> ClaimRequest:
        ttl = self.rng.randrange(100, 300)
        return ClaimRequest(
            worker=self.worker,
            request_id=new_request_id(),
            secret=new_token(),
            queue=queue,
            repository=place,
            wanted=self.rng.choice((1, 1, 1, 2, 5)),
            ttl_ms=ttl,
            max_hold_ms=self.rng.choice((None, None, 2 * ttl)),
        )

    def _waiting_task(self) -> tuple[str, str | None]:
        """A task that waits for a person, and what it waits for."""
        waiting = self.journal.call(
            "tasks",
            {},
            lambda: self.lessor.tasks.tasks(everywhere=True, states=[*DECISIONS], most=30),
            lambda _: {},
        )
        if isinstance(waiting, LessorError) or not waiting:
            return self._some_task(), None
        task = self.rng.choice(waiting)
        return task.id, DECISIONS.get(task.state)  # it may have moved on since it was listed

    def _some_task(self) -> str:
        """A task that somebody may have submitted lately."""
        last = self.lessor.naming.task_row(self.known[-1]) if self.known else 30
        return str(self.lessor.naming.task(self.rng.randrange(max(1, last - 150), last + 10)))


def begin(orders: Orders) -> Player:
    """A player at its place, however often the server is lost on the way there."""
    while True:
        with suppress(StoreUnavailableError):
            return Player(orders)


def main() -> None:
    """Play as ordered until told to stop."""
    orders = Orders(**json.loads(sys.argv[1]))
    mutate(orders.url, orders.mutant)
    player = begin(orders)
    signal.signal(signal.SIGTERM, player.stop)
    player.play()
    player.lessor.close()


if __name__ == "__main__":
    main()
