"""What a supervisor is told at its start, as a file of JSON."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any, Self

from lessor.errors import InvalidError, TermsInvalidError
from lessor.model.lease import MINUTE, SECOND, LeaseTerms
from lessor.runner.lifeline import Lifeline
from lessor.runner.progress import ProgressLimits

OWN_MODULES = "lessor."
LONGEST_WATCH_MS = 5 * SECOND
MARK = "LESSOR_REPORT"
"""The variable by which what an agent started can be found, should its supervisor die."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """How long a supervisor waits for what, in milliseconds.

    Attributes:
        watch_every_ms: between two looks at the lease; a cancel arrives within it.
        grace_ms: from SIGTERM to SIGKILL when the agent is asked to stop.
        lost_grace_ms: the same after the lease was lost or the runner is gone.
        lost_ms: how long a frozen agent waits for the runner to salvage after a loss.
        linger_ms: how long what an agent left behind may end by itself.
    """

    watch_every_ms: int = 4 * SECOND
    grace_ms: int = 10 * SECOND
    lost_grace_ms: int = 2 * SECOND
    lost_ms: int = MINUTE
    linger_ms: int = 2 * SECOND

    def __post_init__(self) -> None:
        if not 0 < self.watch_every_ms <= LONGEST_WATCH_MS:
            raise TermsInvalidError(
                f"Looking at the lease every {self.watch_every_ms} ms is out of bounds.",
                next_step=f"Give 1 to {LONGEST_WATCH_MS} ms, so that a cancel arrives in time.",
                watch_every_ms=self.watch_every_ms,
            )
        if min(self.grace_ms, self.lost_grace_ms, self.lost_ms, self.linger_ms) < 0:
            raise TermsInvalidError(
                "A supervisor can't wait for a negative time.", next_step="Give 0 or more."
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class SupervisorSpec:
    """An agent, its lease and its limits.

    Attributes:
        argv: the agent's command; never a shell string.
        cwd: the worktree, absolute; it is watched for progress too.
        log: where the agent's output goes, absolute.
        report: where the supervisor writes what happened, absolute.
        lifeline: "module:function" that makes the `Lifeline`, called with `lifeline_argument`
            before the agent is started; it must start no thread, and connect at its first call.
        lifeline_argument: JSON for that function.
        version: the version of the lease at its grant.
        sent_ms: the boot-time clock's reading from before the claim was sent.
        terms: the lease's durations.
        host_id: Lessor's id of this host.
        env: what is added to the agent's environment.
        unset: what is taken out of it.
        phase: a random number in [0, 1) that sets this holder's jitter apart.
        trusted_modules: modules outside of Lessor that a lifeline may come from.
        own_cgroup: whether to put the agent into a cgroup where this host allows it.
    """

    argv: tuple[str, ...]
    cwd: str
    log: str
    report: str
    lifeline: str
    lifeline_argument: Any
    version: int
    sent_ms: int
    terms: LeaseTerms
    host_id: str
    limits: ProgressLimits = field(default_factory=ProgressLimits)
    patience: Patience = field(default_factory=Patience)
    env: Mapping[str, str] = field(default_factory=dict)
    unset: tuple[str, ...] = ()
    phase: float = 0.0
    trusted_modules: tuple[str, ...] = ()
    own_cgroup: bool = True

    def __post_init__(self) -> None:
        if not self.argv:
            raise InvalidError("There is no command to run.", next_step="Name the agent's command.")
        for name in ("cwd", "log", "report"):
            if not os.path.isabs(getattr(self, name)):  # noqa: PTH117 - these are strings on purpose
                raise InvalidError(
                    f"The {name} {getattr(self, name)!r} isn't absolute.",
                    next_step="A supervisor runs in /; give the whole path.",
                    field=name,
                )

    def write(self, path: Path) -> None:
        """Write it to a new file of mode 0600; it may name credentials.

        Raises:
            FileExistsError: something is there.
        """
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        with os.fdopen(os.open(path, flags, 0o600), "w") as file:
            # ASCII JSON keeps bytes of paths that aren't UTF-8 (lone surrogates) as they are.
            json.dump(asdict(self), file)

    @classmethod
    def take(cls, path: Path) -> Self:
        """Read it from a file and remove the file.

        Raises:
            InvalidError: the file can't be read, or isn't a spec.
        """
        try:
            record = json.loads(path.read_text())
            path.unlink()
            return cls._of(record)
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise InvalidError(
                f"{path} isn't a supervisor's spec: {error!r}.",
                next_step="Start supervisors through lessor.runner.supervised.",
                path=str(path),
            ) from error

    def agent_environment(self, inherited: Mapping[str, str]) -> dict[str, str]:
        """The agent's environment: what is inherited, without `unset`, with `env` and the mark."""
        kept = {name: value for name, value in inherited.items() if name not in self.unset}
        return kept | dict(self.env) | {MARK: self.report}

    @property
    def mark(self) -> str:
        """The mark as an entry of an environment."""
        return f"{MARK}={self.report}"

    def open_lifeline(self) -> Lifeline:
        """Import the lifeline's maker and call it.

        Raises:
            InvalidError: it isn't Lessor's own or trusted by name, or doesn't exist.
        """
        module, _, function = self.lifeline.partition(":")
        if not module.startswith(OWN_MODULES) and module not in self.trusted_modules:
            raise InvalidError(
                f"{module!r} isn't a module that a lifeline may come from.",
                next_step=f"Name one below {OWN_MODULES!r}.",
                module=module,
            )
        try:
            maker: Callable[[Any], Lifeline] = getattr(import_module(module), function)
        except (ImportError, AttributeError) as error:
            raise InvalidError(
                f"There is no lifeline {self.lifeline!r}: {error}.",
                next_step="Check the name and the installation.",
                lifeline=self.lifeline,
            ) from error
        return maker(self.lifeline_argument)

    @classmethod
    def _of(cls, record: dict[str, Any]) -> Self:
        return cls(
            **record
            | {
                "argv": tuple(record["argv"]),
                "unset": tuple(record["unset"]),
                "trusted_modules": tuple(record["trusted_modules"]),
                "terms": LeaseTerms(**record["terms"]),
                "limits": ProgressLimits(**record["limits"]),
                "patience": Patience(**record["patience"]),
            }
        )
