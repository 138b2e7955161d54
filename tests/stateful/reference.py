"""Lessor in plain Python: what each operation may do, and what is true afterwards.

An executable specification. It knows nothing of the product's rules, its SQL or its stores: tasks
and leases are numbers in dictionaries, overlap is decided by listing paths. An operation is
allowed, and changes what is kept here, or it raises Refused with the code that the product has to
answer with. Where the product may choose (which lease a task is parked on, when a lease that ran
out is noticed, when a turn is reserved), `grants.py` takes the choice from the store and checks
that it was one that could be made.
"""

from __future__ import annotations

from collections.abc import Sequence

from world import Lease, Paths, Place, Queue, Shown, Task, Worker, clash, is_inside, settle

TERMINAL = frozenset({"succeeded", "failed", "cancelled"})
HOLD_MS = 4 * 3_600_000
FIRST_WAIT_MS, LONGEST_WAIT_MS = 1_000, 5_000
SAME_ERRORS = 3
MOST_KEPT = 16
UNCHARGED = frozenset({"released", "forced", "gone", "asked"})

MOVES: dict[str, tuple[frozenset[str], str, str]] = {
    "cancel": (
        frozenset({"queued", "running", "needs_person", "reconciling", "blocked", "quarantined"}),
        "cancelled",
        "cancelled",
    ),
    "block": (frozenset({"queued", "running"}), "blocked", "blocked"),
    "unblock": (frozenset({"blocked"}), "queued", "unblocked"),
    "requeue": (frozenset({"needs_person", "reconciling", "quarantined"}), "queued", "requeued"),
    "answer": (frozenset({"needs_person"}), "queued", "answered"),
}
"""What a person may decide: from which states, to which state, under which name in the history."""


class Refused(Exception):  # noqa: N818 - an answer, not a fault
    """The operation has to be refused with this code."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


class Reference:
    """Everything that is true, and the operations that change it; times are the store's."""

    def __init__(self, now: int) -> None:
        self.clock = now
        self.places: dict[int, Place] = {0: Place()}
        self.workers: dict[int, Worker] = {}
        self.queues: dict[str, Queue] = {}
        self.limits: dict[tuple[str, str], int] = {}
        self.tasks: dict[int, Task] = {}
        self.leases: dict[int, Lease] = {}
        self.granted: dict[tuple[int, int], Lease] = {}  # by task and epoch
        self.requests: dict[tuple[str, str], tuple[object, object]] = {}  # by actor and id
        self.late: dict[
            int, list[tuple[int, bool, tuple[str, ...]]]
        ] = {}  # by task, as it was kept

    def needs_left(self, task: Task) -> int:
        """How many of its needs haven't succeeded."""
        return sum(self.tasks[need].state != "succeeded" for need in task.needs)

    def queue(self, name: str) -> Queue:
        """A queue's settings, as they are when nobody set any."""
        return self.queues.get(name) or Queue()

    def at(self, place: int) -> int:
        """The clock of a repository: it never goes back behind a grant there."""
        return max(self.clock, self.places[place].floor)

    def held(self, task: int) -> Lease | None:
        """The task's lease that hasn't ended, run out or not."""
        found = self.granted.get((task, self.tasks[task].epoch))
        return found if found is not None and found.ended is None else None

    def leases_in(self, place: int) -> list[Lease]:
        """All leases of a repository that there ever were, oldest first."""
        found = (lease for lease in self.leases.values() if lease.place == place)
        return sorted(found, key=lambda lease: lease.id)

    # -- a holder's writes

    def renew(self, shown: Shown, *, request: str) -> tuple[int, int]:
        """The lease's new version and deadline."""
        lease = self._mine(shown)
        if lease is None or not self._is_live(lease):
            raise Refused("lease_lost")
        if lease.version == shown.version:
            lease.version += 1
            lease.renewal = request
            lease.expires = min(max(self.clock + lease.ttl, lease.expires), lease.until)
        elif lease.renewal != request:
            raise Refused("lease_lost")
        return lease.version, lease.expires

    def complete(self, shown: Shown, said: str, *, stage: str) -> tuple[str, bool]:
        """The task's state, and whether the same ending had been taken before."""
        lease, digest = self._mine(shown), ("completed", said, stage)
        if lease is not None and lease.digest == digest:
            return "succeeded", True
        if lease is None or not self._is_live(lease) or lease.version != shown.version:
            self._keep_late(shown, digest)
            raise Refused("lease_lost")
        self._close(lease, "completed", digest=digest)
        task = self.tasks[lease.task]
        task.state, task.stage = "succeeded", stage
        task.history.append("completed")
        return "succeeded", False

    def fail(
        self, shown: Shown, error: str, *, fatal: bool, credential: bool, until: int | None
    ) -> tuple[str, bool]:
        """The same for a failure; `until` is when the next attempt may start, drawn by the product."""
        lease, repeated = self._stopping(shown, ("failed", error))
        task = self.tasks[lease.task]
        if repeated:
            return task.state, True
        task.same_errors = task.same_errors + 1 if task.error == error else 1
        task.error = error
        state = "failed" if fatal else self._after(task, "failed", credential=credential)
        longest = min(FIRST_WAIT_MS * 2**task.charged, LONGEST_WAIT_MS)
        self._stop(lease, "failed", state, digest=("failed", error))
        if state == "queued":
            assert until is not None
            assert longest // 2 <= until - self.clock <= longest
            task.run_at, task.due = until, False
        return state, False

    def release(self, shown: Shown, reason: str) -> tuple[str, bool]:
        """The same for what is given back unfinished."""
        lease, repeated = self._stopping(shown, ("released", reason))
        task = self.tasks[lease.task]
        if not repeated:
            self._stop(
                lease, "released", self._after(task, "released"), digest=("released", reason)
            )
        return task.state, repeated

    def ask(self, shown: Shown, question: str, *, hold: int | None) -> tuple[str, bool]:
        """The same for a question; the lease's paths go over to a hold, which is the row `hold`."""
        lease, repeated = self._stopping(shown, ("asked", question))
        task = self.tasks[lease.task]
        if not repeated:
            if lease.place:
                assert hold is not None, "a question keeps the paths of its lease"
                until = self.clock + HOLD_MS
                self.leases[hold] = Lease(
                    id=hold,
                    kind="hold",
                    task=task.id,
                    place=lease.place,
                    epoch=lease.epoch,
                    fence=lease.fence,
                    granted=self.clock,
                    expires=until,
                    until=until,
                    ttl=HOLD_MS,
                    queue=lease.queue,
                    rows=lease.rows,
                )
                lease.rows = []
            self._stop(lease, "asked", "needs_person", digest=("asked", question))
        return task.state, repeated

    def acknowledge(self, shown: Shown) -> str:
        """Why the lease ended."""
        lease = self._mine(shown)
        if lease is None:
            raise Refused("lease_lost")
        if lease.ended is None:
            raise Refused("transition_refused")
        if not lease.acknowledged:
            lease.acknowledged = True
            self.tasks[lease.task].history.append("acknowledged")
        return str(lease.end)

    def watch(self, shown: Shown) -> tuple[bool, int, int, str | None]:
        """Whether the lease is live, its version, what is left of it, and why it ended."""
        lease = self._mine(shown)
        if lease is None:
            raise Refused("lease_lost")
        live = self._is_live(lease)
        return live, lease.version, lease.expires - self.clock if live else 0, lease.end

    def widen(self, shown: Shown, texts: Sequence[str], *, mode: str, since_start: bool) -> int:
        """The fence under which the lease has all of `texts`."""
        task = self.tasks[shown.task]
        if task.strict:
            raise Refused("scope_held")
        if not task.place:
            raise Refused("invalid")
        lease = self._mine(shown)
        if lease is None or not self._is_live(lease):
            raise Refused("lease_lost")
        place = self.places[lease.place]
        stronger = "w" if mode == "w" else "wr"
        having: dict[str, list[int]] = {
            text: [
                fence
                for own, own_mode, fence in lease.rows
                if own_mode in stronger and (own == text or is_inside(text, own))
            ]
            for text in settle(texts)
        }
        asked = [(text, mode) for text, fences in having.items() if not fences]
        if not asked:
            return max(max(fences) for fences in having.values())
        others = [other for other in self.leases.values() if other.task != task.id]
        if any(clash(asked, self._holds(other)) for other in others if other.place == task.place):
            raise Refused("scope_held")
        if since_start and any(
            fence > lease.fence and other != task.id and clash(asked, [(text, taken)])
            for fence, other, text, taken in place.taken
        ):
            raise Refused("scope_held")
        place.floor = self.at(lease.place)
        place.fence += 1
        self.take(lease, asked, place.fence)
        task.paths = task.paths + asked
        task.history.append("widened")
        return place.fence

    # -- what people and witnesses decide

    def decide(self, verb: str, tasks: Sequence[int]) -> list[str]:
        """The states of the tasks afterwards; all of them move, or none."""
        allowed, state, event = MOVES[verb]
        several = [self.tasks[task] for task in dict.fromkeys(tasks)]
        if any(task.state not in allowed for task in several):
            raise Refused("transition_refused")
        for task in several:
            lease = self.held(task.id)
            if lease is not None:
                self._close(lease, "cancelled" if verb == "cancel" else "forced")
            else:
                if verb in {"cancel", "block"}:
                    self._end_side(task.id)
                task.waiting_on = task.parked = None
                if verb in {"requeue", "answer"}:
                    task.run_at, task.due = self.clock, True
                if verb == "requeue":
                    task.charged = task.same_errors = 0
            task.state = state
            task.history.append(event)
        return [task.state for task in several]

    def force(self, task: int, end: str, *, epoch: int | None = None) -> str:
        """End a lease from outside: "forced" by a person, "gone" by a witness of its epoch."""
        lease = self.held(task)
        if lease is None or epoch not in {None, lease.epoch}:
            raise Refused("transition_refused")
        self._stop(lease, end, self._after(self.tasks[task], end))
        return self.tasks[task].state

    def pause(self, name: str, *, paused: bool) -> None:
        """Pause a queue, which gives up the turns reserved in it, or resume it."""
        self.queues.setdefault(name, Queue()).paused = paused
        for lease in self.leases.values():
            if paused and lease.kind == "reservation" and lease.queue == name and not lease.ended:
                self._end(lease, "released")
                self.tasks[lease.task].history.append("freed")

    # -- what ends and what follows

    def take(self, lease: Lease, paths: Paths, fence: int) -> None:
        """Block paths for a lease, from a fence on."""
        lease.rows = lease.rows + [(text, mode, fence) for text, mode in paths]
        self.places[lease.place].taken += [(fence, lease.task, *path) for path in paths]

    def lapse(self, lease: Lease, *, at: int) -> None:
        """End what ran out; a task whose lease it was goes where the rules send it."""
        if lease.kind == "lease":
            self._stop(lease, "lapsed", self._after(self.tasks[lease.task], "lapsed"), at=at)
        else:
            self._end(lease, "lapsed", at=at)
            self.tasks[lease.task].history.append("freed")

    def sweep(self, places: Sequence[int]) -> list[int]:
        """End what ran out and free what ended; the leases that were ended."""
        ended = []
        for place in places:
            for lease in self.leases_in(place):
                if lease.ended is None and lease.expires <= self.at(place):
                    self.lapse(lease, at=self.at(place))
                    ended.append(lease.id)
            for lease in self.leases_in(place):
                if lease.ended is not None:
                    self.drain(lease)
        return ended

    def drain(self, lease: Lease) -> None:
        """Free the paths of a lease that has ended, and wake who waits for it."""
        lease.drained, lease.rows = True, []
        for task in self.tasks.values():
            if task.waiting_on == lease.id:
                task.waiting_on = None

    def _holds(self, other: Lease) -> Paths:
        return [] if other.kind == "reservation" else other.blocks

    def _mine(self, shown: Shown) -> Lease | None:
        lease = self.granted.get((shown.task, shown.epoch))
        if lease is None or (lease.worker, lease.token) != (shown.worker, shown.token):
            return None
        return lease

    def _is_live(self, lease: Lease) -> bool:
        return lease.ended is None and self.clock < lease.expires

    def _keep_late(self, shown: Shown, digest: tuple[str, ...]) -> None:
        """Kept once, and at most so many of a lease's own holder, and of all others."""
        all_kept, mine = self.late.setdefault(shown.task, []), self._mine(shown) is not None
        kept = [
            said
            for epoch, its_own, said in all_kept
            if its_own == mine
            and (
                epoch == shown.epoch
                or self.granted.keys().isdisjoint({(shown.task, epoch), (shown.task, shown.epoch)})
            )
        ]
        if digest not in kept and len(kept) < MOST_KEPT:
            all_kept.append((shown.epoch, mine, digest))
            self.tasks[shown.task].history.append("late")

    def _stopping(self, shown: Shown, digest: tuple[str, ...]) -> tuple[Lease, bool]:
        lease = self._mine(shown)
        if lease is not None and lease.ended is not None and lease.digest == digest:
            return lease, True
        if lease is None or not self._is_live(lease) or lease.version != shown.version:
            self._keep_late(shown, digest)
            raise Refused("lease_lost")
        return lease, False

    def _after(self, task: Task, end: str, *, credential: bool = False) -> str:
        charged = task.charged + (end not in UNCHARGED)
        if credential:
            return "blocked"
        if charged >= task.max_attempts or (end == "failed" and task.same_errors >= SAME_ERRORS):
            return "quarantined"
        safe = task.effects in {"read-only", "workspace", "brokered"}
        return "queued" if safe or (task.effects == "idempotent" and task.keyed) else "reconciling"

    def _stop(
        self,
        lease: Lease,
        end: str,
        state: str,
        *,
        digest: tuple[str, ...] | None = None,
        at: int | None = None,
    ) -> None:
        self._close(lease, end, digest=digest, at=at)
        task = self.tasks[lease.task]
        task.charged += end not in UNCHARGED
        task.state = state
        task.history.append(end)
        if state == "queued":
            task.run_at, task.due = lease.ended or 0, True

    def _close(
        self,
        lease: Lease,
        end: str,
        *,
        digest: tuple[str, ...] | None = None,
        at: int | None = None,
    ) -> None:
        self._end(lease, end, at=at)
        lease.digest = digest
        lease.drained = lease.place == 0

    def _end(self, lease: Lease, end: str, *, at: int | None = None) -> None:
        if lease.ended is None:
            lease.ended, lease.end = self.clock if at is None else at, end

    def _end_side(self, task: int) -> None:
        for lease in self.leases.values():
            if lease.task == task and lease.kind != "lease":
                self._end(lease, "cancelled")
