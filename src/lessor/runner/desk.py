"""What every part of a run needs: the store, the repository, the settings, the places."""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from lessor.clock import Clock
from lessor.errors import HostError, InvalidError, LessorError
from lessor.git.repository import resolve_commit
from lessor.model.lease import HEARTBEAT_TERMS, LeaseTerms
from lessor.runner.noting import Note, NoteKind, Reporter
from lessor.runner.progress import ProgressLimits
from lessor.runner.site import Site
from lessor.runner.spec import Patience

CHECK_LIMIT_MS = 30 * 60_000
SETUP_LIMIT_MS = 30 * 60_000
_DISK = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EROFS})
PROBE_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What the base commit's configuration asks for; shell texts are the person's own, trusted once.

    Attributes:
        check: judges a result, in a clean checkout.
        setup: prepares a worktree.
        bring: patterns of ignored files to copy into it.
        push: whether a result is pushed before its task is completed.
    """

    check: str | None = None
    setup: str | None = None
    bring: tuple[str, ...] = ()
    push: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """What the person asked for.

    Attributes:
        command: the agent's command; `{prompt}` and `{brief}` in it become one argument each.
        agent: the name under which leases are held, without the slot's number.
        kind: the agent's kind that tasks may ask for.
        base: a revision; None means the tip of the branch that the person is on.
        rounds: how often a failed check goes back to the agent before a person is asked.
        task: only this task.
        stay: go on waiting when there is nothing left to claim.
        anyway: run although the check fails on the base already.
        env: added to the agent's environment.
    """

    command: tuple[str, ...]
    agent: str
    kind: str
    workers: int = 1
    queue: str = "default"
    base: str | None = None
    rounds: int = 3
    task: str | None = None
    stay: bool = False
    anyway: bool = False
    terms: LeaseTerms = HEARTBEAT_TERMS
    limits: ProgressLimits = field(default_factory=ProgressLimits)
    patience: Patience = field(default_factory=Patience)
    env: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.command or not self.command[0]:
            raise InvalidError("There is no agent to run.", next_step="Name its command.")
        for name in ("workers", "rounds"):
            if getattr(self, name) < 1:
                raise InvalidError(
                    f"{name} is {getattr(self, name)}.", next_step="Give 1 or more.", field=name
                )


@dataclass(frozen=True, slots=True, kw_only=True)
class Desk(Site):
    """One run's surroundings.

    Attributes:
        cwd: the checkout that the person is in; it is only read.
        store_url: for the supervisors, which open the store themselves.
        plan_at: the plan that a base commit's configuration makes.
    """

    cwd: Path
    store_url: str
    listen_dsn: str | None
    clock: Clock
    options: RunOptions
    plan_at: Callable[[str], Plan]
    reporter: Reporter

    @property
    def tokens_dir(self) -> Path:
        """Where lease tokens lie."""
        return self.state_dir / "leases"

    @property
    def baselines_dir(self) -> Path:
        """Where it is kept how the check went on a base commit."""
        return self.state_dir / "baselines" / self.repository

    def base_commit(self) -> str:
        """The commit that new work begins from, as of now.

        Raises:
            GitError: the base names none, or there is no commit yet.
        """
        return resolve_commit(self.cwd, self.options.base or "HEAD")

    def trouble(self, error: LessorError) -> HostError | None:
        """What is wrong with this machine, if anything: the disk behind `error`, or the state directory.

        There a small file is written and removed. That may go well again: what was half made is gone.
        """
        if _is_of_disk(error):
            return HostError(
                error.message,
                next_step=error.next_step or f"Make room below {self.state_dir}, then run again.",
                state_dir=str(self.state_dir),
            )
        probe = self.state_dir / f".probe-{os.getpid()}-{threading.get_ident()}"
        try:
            probe.write_bytes(b"\0" * PROBE_BYTES)
            probe.unlink()
        except OSError as full:
            with suppress(OSError):
                probe.unlink(missing_ok=True)
            return self.host_error(full)
        return None

    def host_error(self, error: OSError) -> HostError:
        """The error that says what to do about the system's."""
        where = error.filename or self.state_dir
        return HostError(
            f"{where} can't be used: {error.strerror or error}.",
            next_step=f"Check free space and rights below {self.state_dir}, then run again.",
            path=str(where),
            state_dir=str(self.state_dir),
        )

    def note(self, kind: NoteKind, text: str = "", /, **more: str | int) -> None:
        """Tell the reporter; a terminal that was closed meanwhile stops no agent."""
        with suppress(OSError, ValueError):  # a closed file says ValueError
            self.reporter.note(Note(kind=kind, text=text, **more))  # type: ignore[arg-type]


def _is_of_disk(error: BaseException | None) -> bool:
    """Whether a full disk, or one that may not be written, is behind an error."""
    while error is not None:
        if isinstance(error, OSError) and error.errno in _DISK:
            return True
        if isinstance(error, LessorError) and error.facts.get("disk"):
            return True
        error = error.__cause__
    return False
