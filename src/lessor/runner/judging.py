"""Judging a result: what the agent left is committed, its paths are gated, its checks are run.

Success is what the diff and the checks show, never what the agent says or exits with: agents exit 0
after refused writes, with a plan, and with a question.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum

from lessor.errors import GitError
from lessor.git.authorship import read_authorship, refuse_foreign, with_inherited
from lessor.git.commit import commit_leftovers, ensure_trailer
from lessor.git.foreign import record_foreign, recorded_foreign
from lessor.git.layout import layout_of
from lessor.model.task import Effects, Stage
from lessor.runner.briefing import Errand
from lessor.runner.checks import Checks, how_it_ended
from lessor.runner.desk import Desk, Plan
from lessor.runner.gate import Change, Gate, change_in
from lessor.runner.noting import NoteKind, Tell
from lessor.runner.process import never
from lessor.runner.targets import target_tips
from lessor.runner.words import kept_text, last_line, left_in
from lessor.runner.workplace import Place

TAIL = 4_000
LONGEST_NAMED = 60


class Finding(StrEnum):
    """What a judgement came to."""

    GOOD = "good"
    LACKING = "lacking"  # the agent can mend it: another round
    EMPTY = "empty"
    QUESTION = "question"
    UNFINISHED = "unfinished"  # the check was interrupted: nothing is known


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """A finding, and what follows from it.

    Attributes:
        text: what is lacking, or the question, or the reason for changing nothing.
        told: the same in a few words for people, where `text` is written for the agent.
        step: what helps a person then, with its command.
        note: as what a lacking result is told of.
        advice: what the agent can do about it in its next round.
        check_ms: how long the check took; None where none ran.
        change: what was changed, where that is known.
        pushed: the remote that has the commit; or "no: " and why; empty where nobody asked.
    """

    finding: Finding
    stage: Stage
    commit: str
    text: str = ""
    told: str = ""
    step: str = ""
    note: NoteKind = NoteKind.SENT_BACK
    advice: str = ""
    check_ms: int | None = None
    change: Change | None = None
    pushed: str = ""


class Judge:
    """Judges the results of one slot; its checkout stays warm from one to the next."""

    def __init__(self, desk: Desk, *, slot: int) -> None:
        self._desk = desk
        self._gate = Gate(desk)
        self._checks = Checks(desk, slot=slot)

    def judge(
        self,
        errand: Errand,
        place: Place,
        plan: Plan,
        *,
        tell: Tell,
        interrupted: Callable[[], bool] = never,
    ) -> Judgement:
        """Commit, gate and check what the agent left.

        Args:
            plan: the base's: an agent that edits the configuration doesn't change its own check.
            interrupted: ends the check early; nothing is found then.

        Raises:
            LeaseLostError: a widening was refused because the lease is over.
            GitError: git can't be asked.
        """
        question = left_in(errand.outbox, "question")
        try:
            head = self._commit(errand, place)
        except GitError as refused:
            return Judgement(
                finding=Finding.LACKING,
                stage=Stage.NONE,
                commit=place.start,
                text=kept_text(str(refused), most=TAIL),
            )
        if question:
            return Judgement(
                finding=Finding.QUESTION, stage=Stage.SUBMITTED, commit=head, text=question
            )
        branch = place.workspace.branch
        change = change_in(self._desk, place.worktree, errand.base, head=head, branch=branch)
        found = Judgement(
            finding=Finding.LACKING, stage=Stage.SUBMITTED, commit=head, change=change
        )
        if not change.own:
            return self._of_nothing(errand, found)
        if errand.grant.effects is Effects.READ_ONLY:
            text = "The task is read-only, and files were changed. Undo that."
            return replace(found, text=text)
        held = self._gate.judge(errand.grant, change, base=errand.base, tell=tell)
        if held is not None:
            return replace(
                found,
                text=f"These paths can't be part of the result:\n\n{held.text}",
                told=held.told,
                step=held.step,
                note=NoteKind.HELD,
                advice=f"\n\n{held.advice}",
            )
        return self._check(errand, plan, found, tell, interrupted)

    def _commit(self, errand: Errand, place: Place) -> str:
        grant, branch = errand.grant, place.workspace.branch
        asked = ["symbolic-ref", "--quiet", "--short", "HEAD"]
        layout = layout_of(place.worktree)
        current = layout.git(asked, check=False).text
        if current not in {branch, ""}:
            raise GitError(
                f"The worktree is on {current}, and the result belongs on {branch}.",
                next_step=f"Bring your commits there: git checkout {branch} && git merge {current}.",
            )
        targets = target_tips(self._desk, place.base)
        common_dir = self._desk.repo.common_dir
        recorded = recorded_foreign(common_dir, grant.task)
        # Where the branch was before somebody else came is its holder's of then, and inherited.
        others = [*targets, *sorted({s.before for s in recorded.values() if s.before is not None})]
        if current:
            # Before anything is committed: files that don't have a foreign commit's changes would
            # be taken for its undoing.
            found = read_authorship(
                layout, since=place.start, branch=branch, label=grant.label, excluding=others
            )
            if found.foreign and found.step is not None:
                # On record before it is said: the agent may die of it, and the next has the branch.
                record_foreign(common_dir, grant.task, dict.fromkeys(found.foreign, found.step))
            found = with_inherited(
                found,
                layout,
                base=errand.base,
                branch=branch,
                recorded=recorded,
                excluding=targets,
            )
            refuse_foreign(found, branch=branch)
        message = f"{grant.title}\n\nTask #{grant.number}, left uncommitted by the agent."
        commit_leftovers(place.worktree, message=message, label=grant.label, author=None)
        return ensure_trailer(place.worktree, base=place.start, label=grant.label, excluding=others)

    def _of_nothing(self, errand: Errand, found: Judgement) -> Judgement:
        reason = left_in(errand.outbox, "no-change")
        if reason or errand.grant.effects is Effects.READ_ONLY:
            return replace(
                found,
                finding=Finding.GOOD,
                stage=Stage.UNVERIFIED,
                text=reason or "read-only",
            )
        return replace(
            found,
            finding=Finding.EMPTY,
            stage=Stage.NONE,
            text="Nothing was changed, and no reason was given for that.",
        )

    def _check(
        self,
        errand: Errand,
        plan: Plan,
        found: Judgement,
        tell: Tell,
        interrupted: Callable[[], bool],
    ) -> Judgement:
        check = errand.check
        if check is None:
            return replace(found, finding=Finding.GOOD, stage=Stage.UNVERIFIED)
        tell(NoteKind.CHECKING, check)
        result = self._checks.run(
            check,
            plan,
            commit=found.commit,
            log=errand.run_dir / "check.log",
            env={"LESSOR_TASK": errand.grant.task, "LESSOR_COMMIT": found.commit},
            interrupted=interrupted,
        )
        if result.interrupted:
            return replace(found, finding=Finding.UNFINISHED)
        if result.code == 0:
            return replace(
                found,
                finding=Finding.GOOD,
                stage=Stage.VERIFIED,
                check_ms=result.duration_ms,
            )
        tail = kept_text(result.tail, most=TAIL)
        named = check if len(check) <= LONGEST_NAMED else f"{check[: LONGEST_NAMED - 1]}…"
        ended = f"The check `{named}` {how_it_ended(result)}"
        text = (
            f"{ended}: {last_line(tail)}\n\nIts last lines:\n\n{tail}"
            if tail.strip()
            else f"{ended}."
        )
        return replace(found, text=text, note=NoteKind.CHECK_FAILED, check_ms=result.duration_ms)
