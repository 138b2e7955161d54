"""Judging a result: what the agent left is committed, its paths are gated, its checks are run.

Success is what the diff and the checks show, never what the agent says or exits with: agents exit 0
after refused writes, with a plan, and with a question.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from lessor.errors import GitError, ScopeHeldError, ScopeInvalidError
from lessor.git.changes import has_changes, touches
from lessor.git.checkout import checked_out
from lessor.git.commit import commit_leftovers, ensure_trailer
from lessor.git.repository import packages_at, read_file_at
from lessor.model.grant import Grant
from lessor.model.scope import covers, natural_scope, parse_scopes
from lessor.model.task import Effects, Stage
from lessor.runner.briefing import Errand, left_in_outbox
from lessor.runner.desk import CHECK_LIMIT_MS, SETUP_LIMIT_MS, Desk, Plan
from lessor.runner.noting import NoteKind, Tell
from lessor.runner.process import CommandResult, run_configured
from lessor.runner.workplace import Place, clean_environment

_LOCK_FILES = (
    "uv.lock",
    "poetry.lock",
    "requirements.txt",
    "package-lock.json",
    "pnpm-lock.yaml",
    "yarn.lock",
    "Cargo.lock",
    "go.sum",
)
TAIL = 4_000


class Finding(StrEnum):
    """What a judgement came to."""

    GOOD = "good"
    LACKING = "lacking"  # the agent can mend it: another round
    EMPTY = "empty"
    QUESTION = "question"


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """A finding, and what follows from it.

    Attributes:
        text: for the agent's next round, or the question, or the reason for changing nothing.
        check_ms: how long the check took; None where none ran.
    """

    finding: Finding
    stage: Stage
    commit: str
    text: str = ""
    check_ms: int | None = None


class Judge:
    """Judges the results of one slot; its checkout stays warm from one to the next."""

    def __init__(self, desk: Desk, *, slot: int) -> None:
        self._desk = desk
        self._checkout = desk.worktrees_dir / f"verify-{slot}"

    def judge(self, errand: Errand, place: Place, plan: Plan, *, tell: Tell) -> Judgement:
        """Commit, gate and check what the agent left.

        Raises:
            LeaseLostError: a widening was refused because the lease is over.
            GitError: git can't be asked.
        """
        grant = errand.grant
        question = left_in_outbox(errand.outbox, "question")
        try:
            head = self._commit(errand, place)
        except GitError as refused:
            return Judgement(
                finding=Finding.LACKING, stage=Stage.NONE, commit=place.start, text=str(refused)
            )
        if question:
            return Judgement(
                finding=Finding.QUESTION, stage=Stage.SUBMITTED, commit=head, text=question
            )
        if not has_changes(self._desk.repo.common_dir, errand.base, head):
            return self._of_nothing(errand, head)
        if grant.effects is Effects.READ_ONLY:
            return Judgement(
                finding=Finding.LACKING,
                stage=Stage.SUBMITTED,
                commit=head,
                text="The task is read-only, and files were changed.",
            )
        held = self._gate(grant, errand, head, tell)
        if held:
            return Judgement(finding=Finding.LACKING, stage=Stage.SUBMITTED, commit=head, text=held)
        return self._check(errand, plan, head, tell)

    def _commit(self, errand: Errand, place: Place) -> str:
        grant = errand.grant
        message = f"{grant.title}\n\nTask #{grant.number}, left uncommitted by the agent."
        commit_leftovers(place.worktree, message=message, label=grant.label, author=None)
        return ensure_trailer(place.worktree, base=place.start, label=grant.label)

    def _of_nothing(self, errand: Errand, head: str) -> Judgement:
        reason = left_in_outbox(errand.outbox, "no-change")
        if reason or errand.grant.effects is Effects.READ_ONLY:
            return Judgement(
                finding=Finding.GOOD,
                stage=Stage.UNVERIFIED,
                commit=head,
                text=reason or "read-only",
            )
        return Judgement(
            finding=Finding.EMPTY,
            stage=Stage.NONE,
            commit=head,
            text="Nothing was changed, and no reason was given for that.",
        )

    def _gate(self, grant: Grant, errand: Errand, head: str, tell: Tell) -> str:
        """Widen over every path outside the scope that nobody else has taken; what can't be had."""
        common_dir = self._desk.repo.common_dir
        scopes = parse_scopes(list(grant.scopes))
        outside: dict[str, str] = {}
        for touch in touches(common_dir, errand.base, head):
            if not any(covers(scope, touch.path) for scope in scopes):
                outside.setdefault(touch.path, touch.commit)
        if not outside:
            return ""
        packages = packages_at(common_dir, errand.base)
        refused = []
        for wanted in sorted({natural_scope(path, packages=packages) for path in outside}):
            below = [path for path in outside if natural_scope(path, packages=packages) == wanted]
            refused += self._widen(grant, wanted, below, tell)
        return "\n".join(f"{path} (commit {outside[path][:12]}): {why}" for path, why in refused)

    def _widen(
        self, grant: Grant, wanted: str, paths: list[str], tell: Tell
    ) -> list[tuple[str, str]]:
        """Widen over the natural scope, else over the single files."""
        leases = self._desk.lessor.leases
        try:
            leases.widen(grant.holder, [wanted], since_start=True)
        except (ScopeHeldError, ScopeInvalidError):
            refused = []
            for path in paths:
                try:
                    leases.widen(grant.holder, [f"path:{path}"], since_start=True)
                except (ScopeHeldError, ScopeInvalidError) as error:
                    tell(NoteKind.HELD, str(error))
                    refused.append(
                        (path, f"{error} Take the change out: git checkout {'{base}'} -- PATH")
                    )
            return [(path, why.replace("{base}", "$LESSOR_BASE")) for path, why in refused]
        tell(NoteKind.WIDENED, f"took {wanted}")
        return []

    def _check(self, errand: Errand, plan: Plan, head: str, tell: Tell) -> Judgement:
        check = errand.check
        if check is None:
            return Judgement(finding=Finding.GOOD, stage=Stage.UNVERIFIED, commit=head)
        grant = errand.grant
        tell(NoteKind.CHECKING, check)
        result = self.run_check(
            check,
            plan,
            commit=head,
            log=errand.run_dir / "check.log",
            env={"LESSOR_TASK": grant.task, "LESSOR_COMMIT": head},
        )
        if result.code == 0:
            return Judgement(
                finding=Finding.GOOD, stage=Stage.VERIFIED, commit=head, check_ms=result.duration_ms
            )
        how = (
            "ran out of time"
            if result.timed_out
            else f"exited with {result.code if result.code is not None else f'signal {result.signal}'}"
        )
        text = f"The check `{check}` {how}. Its last lines:\n\n{result.tail[-TAIL:]}"
        return Judgement(
            finding=Finding.LACKING,
            stage=Stage.SUBMITTED,
            commit=head,
            text=text,
            check_ms=result.duration_ms,
        )

    def run_check(
        self, check: str, plan: Plan, *, commit: str, log: Path, env: dict[str, str]
    ) -> CommandResult:
        """Run a check on exactly `commit`, in a clean checkout that setup has prepared."""
        log.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with checked_out(self._desk.repo, path=self._checkout, commit=commit) as checkout:
            environment = clean_environment(tuple(env.items()))
            if plan.setup:
                failed = self._set_up(checkout, plan.setup, commit=commit, log=log, env=environment)
                if failed is not None:
                    return failed
            return run_configured(
                check,
                cwd=str(checkout),
                env=environment,
                log=str(log),
                timeout_ms=CHECK_LIMIT_MS,
                clock=self._desk.clock,
            )

    def _set_up(
        self, checkout: Path, setup: str, *, commit: str, log: Path, env: dict[str, str]
    ) -> CommandResult | None:
        """Run setup unless the lock files are what the last one here was run for; a failure."""
        mark = checkout.with_name(f"{checkout.name}.setup")
        wanted = self._lock_digest(commit, setup)
        if mark.is_file() and mark.read_text(encoding="utf-8") == wanted:
            return None
        result = run_configured(
            setup,
            cwd=str(checkout),
            env=env,
            log=str(log),
            timeout_ms=SETUP_LIMIT_MS,
            clock=self._desk.clock,
        )
        if result.code != 0:
            return result
        mark.write_text(wanted, encoding="utf-8")
        return None

    def _lock_digest(self, commit: str, setup: str) -> str:
        digest = hashlib.sha256(setup.encode())
        for name in _LOCK_FILES:
            content = read_file_at(self._desk.repo.common_dir, commit, name)
            digest.update(f"{name}:".encode() + hashlib.sha256(content or b"").digest())
        return digest.hexdigest()
