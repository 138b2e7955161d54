"""The simulated world: a clock, processes, a store that can fail, a remote, and everything that was seen."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar
from unittest import mock

from lessor import ids
from lessor.clock import ManualClock
from lessor.errors import LessorError
from lessor.ids import Chance
from lessor.service.naming import Naming
from lessor.store.sqlite import SqliteStore
from simulation.answer_rules import ANSWER_RULES, flatten
from simulation.breaking import Breaking
from simulation.grant_rules import GRANT_RULES
from simulation.judging import Answer, Changes, Commit, Doing, Memory, judge
from simulation.plan import Plan
from simulation.recovery_rules import RECOVERY_RULES, count_errors
from simulation.remote import Remote, Taken, wired
from simulation.remote_rules import LANDED_RULES, SETTLED_RULES, Landed, Settled
from simulation.scheduler import CrashedError, Scheduler
from simulation.tables import Tables
from simulation.write_rules import WRITE_RULES

T = TypeVar("T")
RESYNC_EVERY = 400
MOST_TOLD = 4
RULES = (*GRANT_RULES, *WRITE_RULES, *RECOVERY_RULES, *ANSWER_RULES, *LANDED_RULES, *SETTLED_RULES)
"""Every invariant that is judged as something happens; the others are of the end."""
SHARED_MEMORY = Path("/dev/shm")


class World:
    """What happens to everybody.

    Attributes:
        set_back_ms: by how much the wall clock was set back, in all.
        faulty: whether faults happen; they stop at the end, and everything has to heal.
        history: a line for each thing that was done, in order.
    """

    def __init__(self, plan: Plan, folder: Path | None) -> None:
        self.plan = plan
        self.clock = ManualClock()
        self.began_ms = self.clock.wall_ms()
        self.scheduler = Scheduler(self.clock)
        self.faulty = True
        self.steps = 0
        self.set_back_ms = 0
        self.counts: Counter[str] = Counter()
        self.faults: Counter[str] = Counter()
        self.history: list[str] = []
        self.memory = Memory()
        self.remote = Remote(self)
        self._faults = {name: plan.chance(f"fault/{name}") for name in plan.rates}
        self._spans: dict[str, Chance] = {}
        self._folder = folder
        self._stores: list[SqliteStore] = []
        self.breaking = Breaking(self)
        first = self.open_store()
        self.naming = Naming(first.key)
        self.tables = Tables(first._db)
        self.tables.resync(first._db)
        self._follow(first)

    def open_store(self) -> SqliteStore:
        """A process's store: its own connection to the file, or the one in memory that all share."""
        if self._folder is None and self._stores:
            return self._stores[0]
        path = ":memory:" if self._folder is None else str(self._folder / "lessor.db")
        store = SqliteStore(path, clock=self.clock)
        # A power cut isn't simulated: what SQLite has committed is committed.
        store._db.execute("PRAGMA synchronous=OFF")
        self._stores.append(store)
        if hasattr(self, "tables"):
            self.commit(store, self.tables.resync(store._db))
            self._follow(store)
        return store

    def close_store(self, store: SqliteStore) -> None:
        """The process is gone, and its connection with it."""
        if self._folder is not None and store in self._stores[1:]:
            self._stores.remove(store)
            store.close()

    def close(self) -> None:
        """Close every connection."""
        for store in self._stores:
            store.close()

    @property
    def stores(self) -> list[SqliteStore]:
        """Every open connection."""
        return self._stores

    def chance(self, name: str) -> Chance:
        """A stream of its own."""
        return self.plan.chance(name)

    def span(self, name: str, low: int, high: int) -> int:
        """A duration, short ones likelier than long ones."""
        chance = self._spans.get(name)
        if chance is None:
            chance = self._spans[name] = self.chance(f"span/{name}")
        return low + int((high - low) * chance.random() ** 3)

    def hit(self, fault: str) -> bool:
        """Whether a fault happens here; counted."""
        chance = self._faults.get(fault)
        if chance is None or not self.faulty or chance.random() >= self.plan.rates[fault]:
            return False
        self.faults[fault] += 1
        return True

    def sleep(self, milliseconds: int) -> None:
        """Let the others run."""
        self.scheduler.sleep(milliseconds)

    def later(self, what: str, after_ms: int, act: Callable[[], None]) -> None:
        """Let something happen by itself."""
        self.scheduler.spawn(what, act, after_ms=after_ms)

    def record(self, text: str) -> None:
        """A line of history, with the time and who."""
        seconds = self.clock.boottime_ms() / 1000
        self.history.append(f"{seconds:>10.3f}  {self.scheduler.running.name:<12} {text}")

    def step(self, _what: str) -> None:
        """One access to the store or to the remote; before it others may act, or the process end."""
        self.steps += 1
        process = self.scheduler.running
        if self.hit("pause"):
            pause = self.span("pause", 100, 3 * self.plan.ttl_ms)
            self.record(f"stands still for {pause} ms")
            process.doing.interrupted = True
            self.sleep(pause)
        if process.mortal and self.hit("crash"):
            raise CrashedError

    def may_crash(self) -> None:
        """A moment at which an end leaves the most behind."""
        if self.scheduler.running.mortal and self.hit("crash_in_doubt"):
            raise CrashedError

    def transact(self, store: SqliteStore, act: Callable[[], T], *, writes: bool) -> T:
        """Do something to the store; whatever it commits is judged."""
        doing = self.scheduler.running.doing
        try:
            with self.breaking.armed(store, writes=writes):
                return act()
        finally:
            self.counts["transactions" if writes else "reads"] += 1
            changes = self.tables.commit()
            if changes:
                self.commit(store, changes, doing)
            if self.counts["transactions"] % RESYNC_EVERY == 0 and writes:
                unheard = self.tables.resync(store._db)
                if unheard:
                    raise AssertionError(f"the simulation lost track: {unheard}")

    def commit(self, store: SqliteStore, changes: Changes, doing: Doing | None = None) -> None:
        """Judge one transaction."""
        about = doing or Doing(kind="open")
        about.wrote.append(changes)
        self.memory.latest = max(self.memory.latest, store._now())
        commit = Commit(
            tables=self.tables,
            naming=self.naming,
            memory=self.memory,
            doing=about,
            now=store._now(),
            changes=changes,
            slept=_slept(changes),
        )
        self._judge(GRANT_RULES, commit)
        self._judge(WRITE_RULES, commit)
        count_errors(commit)
        self._judge(RECOVERY_RULES, commit)
        self._judge(SETTLED_RULES, Settled(commit=commit, remote=self.remote))

    def told(self, doing: Doing, value: Any, code: str, *, now: int) -> None:
        """Judge what a process was told, by the clock as its own connection reads it."""
        self.counts["calls"] += 1
        answer = Answer(
            tables=self.tables,
            naming=self.naming,
            memory=self.memory,
            doing=doing,
            value=value,
            code=code,
            now=now,
            at_ms=self.clock.boottime_ms(),
        )
        self._judge(ANSWER_RULES, answer)
        self.record(f"{doing.kind}: {code or self._describe(value)}")

    def taken(self, push: Taken) -> None:
        """Judge a push that the remote took."""
        self.counts["pushes"] += 1
        self._judge(
            LANDED_RULES,
            Landed(tables=self.tables, naming=self.naming, remote=self.remote, push=push),
        )

    def _judge(self, rules: Sequence[Callable[[Any], Iterator[str]]], case: Any) -> None:
        judge(rules, case, unjudged=self.plan.unjudged)

    def _follow(self, store: SqliteStore) -> None:
        self.tables.follow(store._db)
        store._db.set_rollback_hook(self.tables.discard)

    def _describe(self, value: Any) -> str:
        words = [_word(self.naming, one) for one in flatten(value)]
        more = f" and {len(words) - MOST_TOLD} more" if len(words) > MOST_TOLD else ""
        return (", ".join(words[:MOST_TOLD]) or "nothing") + more


@contextmanager
def created(plan: Plan) -> Iterator[World]:
    """A world of its own: nothing in it is drawn but from the plan's seed."""
    with (
        _folder(files=plan.files) as folder,
        mock.patch.object(ids, "secrets", _Secrets(plan.chance("secrets"))),
    ):
        world = World(plan, folder)
        try:
            with wired(world.remote):
                yield world
        finally:
            world.scheduler.stop()
            world.close()


@contextmanager
def _folder(*, files: bool) -> Iterator[Path | None]:
    if not files:
        yield None
        return
    with tempfile.TemporaryDirectory(dir=SHARED_MEMORY if SHARED_MEMORY.is_dir() else None) as made:
        yield Path(made)


class _Secrets:
    """What `ids` draws tokens and keys from, out of the run's own seed."""

    def __init__(self, chance: Chance) -> None:
        self._chance = chance

    def token_hex(self, count: int) -> str:
        return self._chance.randbytes(count).hex()

    def randbits(self, count: int) -> int:
        return self._chance.getrandbits(count)


def _slept(changes: Changes) -> int:
    for change in changes.get("meta", ()):
        if change.key == ("slept_ms",) and change.old is not None and change.new is not None:
            return max(0, int(change.new["value"]) - int(change.old["value"]))
    return 0


def _word(naming: Naming, value: Any) -> str:
    if isinstance(value, LessorError):
        return value.code
    parts = []
    for name in ("task", "lease"):
        found = getattr(value, name, None)
        if isinstance(found, str):
            row = naming.task_row(found) if name == "task" else naming.lease_row(found)
            parts.append(f"{name} {row}")
    for name in ("epoch", "fence", "version", "ttl_ms", "end", "state", "outcome", "repeated"):
        found = getattr(value, name, None)
        if found is not None and not callable(found):
            parts.append(f"{name} {found}")
    return " ".join(parts) or (str(value) if isinstance(value, int | str) else type(value).__name__)
