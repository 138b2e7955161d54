"""Operations on what tasks refer to: repositories, workers, queues, limits."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from lessor.errors import InvalidError, NotFoundError
from lessor.model.lease import LeaseEnd
from lessor.model.repository import Repository
from lessor.model.scope import PathRules
from lessor.model.shadow import Unlanded
from lessor.model.task import NewTask
from lessor.model.worker import NewWorker, Worker
from lessor.service.checking import MOST_CAPABILITIES
from lessor.service.claims import Claims
from lessor.service.lapsing import tell_freed
from lessor.service.naming import Naming
from lessor.service.reading import repository_record, worker_record
from lessor.service.rows import FreedRow, WorkerRow, pack
from lessor.service.scanning import WIDEST
from lessor.service.wording import (
    LONGEST_NAME,
    LONGEST_TEXT,
    check_count,
    check_flag,
    check_name,
    check_note,
    check_several,
    check_text,
)
from lessor.store import RetryRule, Row, Store, Transaction

LONGEST_KEY = 2_000
LONGEST_WAIT_MS = 366 * 24 * 3_600_000
_OWNER = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-@:/")


class Registry:
    """A refusal raises and changes nothing."""

    def __init__(self, store: Store, naming: Naming, claims: Claims) -> None:
        self._store = store
        self._naming = naming
        self._claims = claims

    def add_repository(
        self, key: str, *, name: str = "", fold_case: bool = False, normalize: bool = True
    ) -> Repository:
        """Make `key` (a canonical remote, else the repository's own id) known.

        A known repository stays as it is, path rules included: they decide what overlaps, so they
        never change under live leases.
        """
        if not check_text(key, "repository", longest=LONGEST_KEY, empty=False).isprintable():
            raise InvalidError(
                "The repository's key has control characters.", next_step="Give its remote's URL."
            )
        check_flag(fold_case, "fold_case")
        check_flag(normalize, "normalize")
        rows = self._store.once(
            "put_repository",
            canonical=key,
            name=check_name(name or key.rstrip("/").rpartition("/")[2] or key, "repository's name"),
            fold_case=int(fold_case),
            normalize=int(normalize),
        )
        return repository_record(self._naming, rows[0])

    def add_checkout(self, repository: str, *, host_id: str, common_dir: str) -> None:
        """Record where a clone of the repository lies; recorded again, it stays one."""
        check_text(host_id, "host id", longest=LONGEST_NAME)
        check_text(common_dir, "common directory", longest=LONGEST_TEXT, empty=False)
        self.repository(repository)
        self._store.once(
            "put_checkout",
            repository_id=self._naming.repository_row(repository),
            host_id=host_id,
            common_dir=common_dir,
        )

    def set_fence_remote(
        self, repository: str, remote: str | None, *, unfenced: bool = False
    ) -> Repository:
        """Let pushes be fenced at a remote, by name or URL; None ends that.

        Leases that are live stay as they are; their next push makes them ready there.

        Args:
            unfenced: grant leases, too, while the remote can't be reached.

        Raises:
            InvalidError: the URL holds credentials, which everybody who reads the store would have.
        """
        if remote is not None:
            check_text(remote, "remote", longest=LONGEST_TEXT, empty=False)
            refuse_credentials(remote)
        found = self._store.once(
            "set_fence_remote",
            repository_id=self._naming.repository_row(repository),
            remote=remote,
            unfenced=int(check_flag(unfenced, "unfenced") and remote is not None),
        )
        if not found:
            raise NotFoundError(f"{repository} isn't there.", next_step="Register it first.")
        return repository_record(self._naming, found[0])

    def repository(self, repository: str) -> Repository:
        """The repository with this id; NotFoundError otherwise."""
        row = self._naming.repository_row(repository)
        found = self._store.read("repository_by_id", repository_id=row)
        if not found:
            raise NotFoundError(f"{repository} isn't there.", next_step="Register it first.")
        return repository_record(self._naming, found[0])

    def set_unlanded(self, repository: str, unlanded: Unlanded) -> Repository:
        """Say what claims do where a result lies that hasn't landed; for all clones and workers.

        Who waits for a landing already is looked at again by the next claim.

        Raises:
            NotFoundError: there is no such repository.
            InvalidError: it is no such setting.
        """
        if unlanded not in tuple(Unlanded):
            raise InvalidError(
                f"{str(unlanded)[:40]!r} can't be done with results that haven't landed.",
                next_step=f"One of: {', '.join(Unlanded)}.",
            )
        row, setting = self._naming.repository_row(repository), Unlanded(unlanded)
        after: int | None = 0
        while after is not None:
            after = self._store.write(partial(_set_unlanded, row=row, setting=setting, after=after))
        self._claims.changed()
        return self.repository(repository)

    def repositories(self) -> list[Repository]:
        """All registered repositories."""
        return [repository_record(self._naming, row) for row in self._store.read("repositories")]

    def checkouts(self, repository: str) -> list[tuple[str, str]]:
        """Where clones of the repository lie: (host id, common directory) each."""
        row = self._naming.repository_row(repository)
        found = self._store.read("checkouts", repository_id=row)
        if not found:
            self.repository(repository)  # no clone is known, or no such repository
        return [(str(r[2]), str(r[3])) for r in found]

    def add_worker(self, worker: NewWorker) -> Worker:
        """Register a session of an agent runner; its id is issued here.

        Raises:
            InvalidError: the agent's name can't stand in a label.
        """
        if type(worker) is not NewWorker:
            raise InvalidError(
                "A worker has to be a NewWorker.", next_step="Make one with NewWorker(agent=…)."
            )
        check_name(worker.agent, "agent")
        if not set(worker.agent) <= _OWNER:
            raise InvalidError(
                f"The agent's name {worker.agent!r} can't stand in a label.",
                next_step="Use letters, digits and . _ - @ : /",
            )
        for text in (worker.host_id, worker.boot_id, worker.pid_namespace):
            check_text(text, "host", longest=LONGEST_NAME)
        for number, what in ((worker.pid, "pid"), (worker.start_ticks, "start_ticks")):
            if number is not None:
                check_count(number, what, low=0, high=2**62)
        check_flag(worker.heartbeat, "heartbeat")
        offered = check_several(worker.capabilities, "capabilities", most=MOST_CAPABILITIES)
        rows = self._store.once(
            "add_worker",
            agent=worker.agent,
            kind=check_name(worker.kind or worker.agent, "agent's kind"),
            host_id=worker.host_id,
            boot_id=worker.boot_id,
            pid=worker.pid,
            pid_namespace=worker.pid_namespace,
            start_ticks=worker.start_ticks,
            capabilities=pack(sorted({check_name(c, "capability") for c in offered})),
            heartbeat=int(worker.heartbeat),
        )
        return worker_record(self._naming, WorkerRow._make(rows[0]))

    def worker(self, worker: str) -> Worker:
        """The worker with this id; NotFoundError otherwise."""
        return self._claims.worker(worker)

    def workers(self, *, host_id: str = "") -> list[Worker]:
        """Workers that haven't retired, of one host or of all."""
        rows = self._store.read("live_workers", host_id=check_note(host_id, "host id"))
        return [worker_record(self._naming, WorkerRow._make(row)) for row in rows]

    def retire_worker(self, worker: str) -> None:
        """Record that the session is over: it claims nothing more; its leases stay as they are.

        Turns reserved for tasks that no other worker could do are given up.
        """
        row = self._naming.worker_row(worker)
        self._claims.forget_worker(worker)

        def rule(tx: Transaction) -> bool:
            retired = tx.rows("retire_worker", worker_id=row)
            given_up = [FreedRow._make(r) for r in tx.rows("end_unserved_reservations")]
            tell_freed(tx, given_up, reason=LeaseEnd.RELEASED)
            return bool(retired)

        if not self._store.write(rule):
            raise NotFoundError(f"{worker} isn't there.", next_step="Register a worker first.")

    def set_queue(
        self,
        name: str,
        *,
        paused: bool | None = None,
        wait_max_ms: int | None = None,
        overtake_limit: int | None = None,
        overtake_ms: int | None = None,
    ) -> dict[str, int | str]:
        """Change a queue's settings; None leaves one as it is. Pausing ends reserved turns.

        Args:
            wait_max_ms: how long a task may wait before it is shown as overdue.
            overtake_limit: by how many grants a parked task may be passed before its turn is reserved.
            overtake_ms: for how long at most.
        """
        check_name(name, "queue")
        for value, what in ((wait_max_ms, "wait_max_ms"), (overtake_ms, "overtake_ms")):
            if value is not None:
                check_count(value, what, low=1, high=LONGEST_WAIT_MS)
        if overtake_limit is not None:
            check_count(overtake_limit, "overtake_limit", low=1, high=1_000_000)
        if paused is not None:
            check_flag(paused, "paused")

        def rule(tx: Transaction) -> Row:
            if paused:
                given_up = [
                    FreedRow._make(r) for r in tx.rows("end_queue_reservations", queue=name)
                ]
                tell_freed(tx, given_up, reason=LeaseEnd.RELEASED)
            rows = tx.rows(
                "put_queue",
                name=name,
                paused=None if paused is None else int(paused),
                wait_max_ms=wait_max_ms,
                overtake_limit=overtake_limit,
                overtake_ms=overtake_ms,
            )
            # The queue's row last, as a claim locks it after its tasks: one that has reserved a turn in
            # between has committed by now.
            if paused and tx.rows("end_queue_reservations", queue=name):
                raise RetryRule
            return rows[0]

        row = self._store.write(rule)
        self._claims.changed()
        return dict(zip(_QUEUE, row, strict=True))

    def queues(self) -> list[dict[str, int | str]]:
        """Queues that have settings or unfinished tasks."""
        return [dict(zip(_QUEUE, row, strict=True)) for row in self._store.read("queues")]

    def set_limit(self, kind: str, key: str, maximum: int | None) -> None:
        """At most `maximum` leases at once for a queue, a key or an agent; None takes it away.

        Leases that were granted before stay; they are counted.
        """
        if check_note(kind, "kind of limit") not in {"queue", "key", "agent"}:
            raise InvalidError(
                f"{str(kind)[:40]!r} can't be limited.",
                next_step="Limit a queue, a key or an agent.",
            )
        check_name(key, kind)
        if maximum is None:
            self._store.once("drop_limit", kind=kind, key=key)
        else:
            self._store.once(
                "put_limit",
                kind=kind,
                key=key,
                maximum=check_count(maximum, "maximum", low=0, high=1_000_000),
            )
        self._claims.changed()

    def limits(self) -> list[tuple[str, str, int]]:
        """All limits: (kind, key, maximum)."""
        return [(str(k), str(n), int(m)) for k, n, m in self._store.read("limits")]


_QUEUE = ("name", "paused", "wait_max_ms", "overtake_limit", "overtake_ms")


def _set_unlanded(tx: Transaction, *, row: int, setting: Unlanded, after: int) -> int | None:
    """Change the setting, and wake some who waited by the old one; where to go on, if anywhere.

    Under the repository's lock: a claim that is parking somebody by the old setting comes before.
    """
    tx.rows("lock_repository", repository_id=row)
    tx.rows("set_unlanded", repository_id=row, unlanded=setting)
    woken = tx.rows("wake_shadowed", repository_id=row, after=after, most=WIDEST)
    return max(int(one[0]) for one in woken) if len(woken) == WIDEST else None


def refuse_credentials(remote: str) -> None:
    """Refuse a URL with a password or a token in it; InvalidError."""
    scheme, mark, rest = remote.partition("://")
    user, at, _ = rest.partition("/")[0].rpartition("@")
    if mark and at and (":" in user or scheme.lower().startswith("http")):
        raise InvalidError(
            "The remote's URL holds credentials.",
            next_step="Leave them to git's own credential helper, and name the remote without.",
        )


def path_rules(store: Store, repository: int) -> PathRules:
    """How a repository compares paths; NotFoundError where it isn't registered."""
    found = store.read("repository_by_id", repository_id=repository)
    if not found:
        raise NotFoundError("The repository isn't registered.", next_step="Register it first.")
    return PathRules(fold_case=bool(found[0][3]), normalize=bool(found[0][4]))


def path_rules_of(store: Store, naming: Naming, tasks: Sequence[NewTask]) -> dict[int, PathRules]:
    """The path rules of the repositories that tasks name, by row."""
    rows = {naming.repository_row(task.repository) for task in tasks if task.repository is not None}
    return {row: path_rules(store, row) for row in rows}
