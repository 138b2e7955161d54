"""Running a check on exactly one commit, in a clean checkout that stays warm."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path, PurePosixPath

from lessor.errors import BusyError
from lessor.git.checkout import checked_out
from lessor.git.command import run_git
from lessor.runner.desk import CHECK_LIMIT_MS, SETUP_LIMIT_MS, Desk, Plan
from lessor.runner.environment import command_environment
from lessor.runner.preparing import bring, mark_prepared, prepared_for
from lessor.runner.process import CommandResult, never, run_configured

MOST_CHECKOUTS = 64
_LOCK_FILES = frozenset(
    {
        *("uv.lock", "poetry.lock", "pdm.lock", "Pipfile.lock", "requirements.txt"),
        *("package-lock.json", "npm-shrinkwrap.json", "pnpm-lock.yaml", "yarn.lock", "bun.lock"),
        *("Cargo.lock", "go.sum", "Gemfile.lock", "composer.lock", "mix.lock", "Package.resolved"),
    }
)


class Checks:
    """The checkouts of a repository in which checks run, shared by every run on this machine.

    One checkout serves one check at a time. A slot begins with its own and takes the next free one
    where another run is in it, so that two runs make as many as they use at once and no more.
    """

    def __init__(self, desk: Desk, *, slot: int) -> None:
        self._desk = desk
        self._slot = slot

    def run(
        self,
        check: str,
        plan: Plan,
        *,
        commit: str,
        log: Path,
        env: Mapping[str, str] | None = None,
        interrupted: Callable[[], bool] = never,
    ) -> CommandResult:
        """Run `check` on exactly `commit`; a setup that fails there is the result.

        Args:
            check: a configured text; from the base, never from the branch that is judged.
            plan: the base's, for setup and files to bring.
            interrupted: ends the command early.

        Raises:
            GitError: the commit can't be checked out.
            AgentError: there is no shell.
            OSError: the log's directory can't be made.
        """
        log.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with ExitStack() as held:
            checkout = self._enter(held, commit)
            environment = command_environment(env)
            if plan.bring:
                bring(self._desk, checkout, plan.bring)

            def configured(text: str, limit_ms: int) -> CommandResult:
                return run_configured(
                    text,
                    cwd=str(checkout),
                    env=environment,
                    log=str(log),
                    timeout_ms=limit_ms,
                    clock=self._desk.clock,
                    interrupted=interrupted,
                )

            if plan.setup:
                failed = self._set_up(checkout, plan.setup, commit, configured)
                if failed is not None:
                    return failed
            return configured(check, CHECK_LIMIT_MS)

    def _enter(self, held: ExitStack, commit: str) -> Path:
        for number in (self._slot, *range(1, MOST_CHECKOUTS)):
            path = self._desk.worktrees_dir / f"verify-{number}"
            try:
                return held.enter_context(
                    checked_out(self._desk.repo, path=path, commit=commit, wait_ms=0)
                )
            except BusyError:
                continue
        # So many at once are unusual; wait for the own one.
        path = self._desk.worktrees_dir / f"verify-{self._slot}"
        return held.enter_context(checked_out(self._desk.repo, path=path, commit=commit))

    def _set_up(
        self,
        checkout: Path,
        setup: str,
        commit: str,
        configured: Callable[[str, int], CommandResult],
    ) -> CommandResult | None:
        """Run setup unless the lock files are what the last one here was run for; a failure."""
        wanted = self._lock_digest(commit, setup)
        if prepared_for(checkout) == wanted:
            return None
        mark_prepared(checkout, None)  # what is cut short halfway is run again
        result = configured(setup, SETUP_LIMIT_MS)
        if result.code != 0:
            return result
        mark_prepared(checkout, wanted)
        return None

    def _lock_digest(self, commit: str, setup: str) -> str:
        digest = hashlib.sha256(setup.encode("utf-8", "surrogateescape"))
        common_dir = self._desk.repo.common_dir
        listed = run_git(
            ["ls-tree", "-r", "-z", "--full-tree", commit], cwd=common_dir, git_dir=common_dir
        )
        for record in listed.records:
            if PurePosixPath(record.partition("\t")[2]).name in _LOCK_FILES:
                digest.update(record.encode("utf-8", "surrogateescape"))
        return digest.hexdigest()


def how_it_ended(result: CommandResult) -> str:
    """A failed command's end in words."""
    if result.timed_out:
        return "ran out of time"
    if result.code is not None:
        return f"exited with {result.code}"
    return f"was ended by signal {result.signal}"
