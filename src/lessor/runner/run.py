"""A run: slots that claim and work side by side until there is nothing left to claim."""

from __future__ import annotations

import os
import shutil
import threading
from contextvars import copy_context
from dataclasses import replace

from lessor.errors import AgentMissingError
from lessor.git.refs import BRANCHES
from lessor.git.repository import behind_remote, current_branch, uncommitted_files
from lessor.git.unwanted import wishes_to_stop
from lessor.runner.baseline import Baseline
from lessor.runner.coming import Coming
from lessor.runner.desk import Desk, RunOptions
from lessor.runner.noting import NoteKind
from lessor.runner.outcome import exit_code
from lessor.runner.recovering import recover
from lessor.runner.settling import lift_landed
from lessor.runner.slot import IDLE_MS, Slot, Tally
from lessor.runner.stopping import Stopping
from lessor.runner.words import kept_text

_NAMED_FILES = 3


class Run:
    """Slots over one repository; one thread each.

    Attributes:
        tally: what became of the tasks.
    """

    def __init__(self, desk: Desk, stopping: Stopping) -> None:
        self.tally = Tally()
        self._desk = desk
        self._stopping = stopping

    def run(self) -> int:
        """Work until nothing is left, or until asked to stop; the exit code.

        Raises:
            AgentMissingError: the agent's program isn't there.
            BaseRedError: the check fails on the base already, and the run wasn't to go on anyway.
            GitError: the base names no commit.
            HostError, StoreError: this machine or the store stands in the way of every task.
        """
        before = wishes_to_stop.set(self._stopping.insistence)
        try:
            return self._run()
        finally:
            wishes_to_stop.reset(before)

    def _run(self) -> int:
        refuse_missing_agent(self._desk.options)
        said = base_line(self._desk)
        desk = self._desk = pinned(self._desk)
        baseline = Baseline(desk)
        try:
            recover(desk)
            lift_landed(desk)
            desk.note(NoteKind.BASE, said)
            self._refuse_red_base(baseline)
        except OSError as error:
            raise desk.host_error(error) from error
        slots = [
            threading.Thread(
                # Who is told of a slow git here, or stops it, does so for a slot's, too.
                target=copy_context().run,
                args=[
                    Slot(
                        desk, number, tally=self.tally, baseline=baseline, stopping=self._stopping
                    ).work
                ],
                name=f"slot-{number}",
            )
            for number in range(1, desk.options.workers + 1)
        ]
        for thread in slots:
            thread.start()
        for thread in slots:
            # In slices: a signal's handler runs between two steps of the main thread.
            while thread.is_alive():
                thread.join(timeout=IDLE_MS / 1000)
        if self.tally.refusal is not None:
            raise self.tally.refusal
        return exit_code(self.tally.last.values())

    @property
    def stopped_early(self) -> bool:
        """Whether a person asked it to stop before the queue was empty."""
        return self._stopping.asked

    def _refuse_red_base(self, baseline: Baseline) -> None:
        """Check what work begins from before anything is claimed."""
        desk = self._desk
        if Coming(desk).would_be_checked():
            commit = desk.base_commit()
            plan = desk.plan_at(commit)
            baseline.require(commit, plan, interrupted=lambda: self._stopping.now)


def pinned(desk: Desk) -> Desk:
    """The desk with its base named: the branch that the person is on now, also when they leave it.

    Raises:
        GitError: the base names no commit.
    """
    base = desk.options.base
    if base is None:
        branch = current_branch(desk.cwd)
        base = desk.base_commit() if branch is None else f"{BRANCHES}{branch}"
    found = replace(desk, options=replace(desk.options, base=base))
    found.base_commit()
    return found


def refuse_missing_agent(options: RunOptions) -> None:
    """Refuse a run whose agent can't be started, before it claims anything.

    Raises:
        AgentMissingError: there is no such program on PATH.
    """
    program = options.command[0]
    path = {**os.environ, **options.env}.get("PATH")
    # One with a slash may lie in the worktree, which isn't there yet.
    if "/" not in program and "{" not in program and shutil.which(program, path=path) is None:
        raise AgentMissingError(
            f"There is no program {program!r} on PATH.",
            next_step="Install it, or give its path after `--`.",
            program=program,
        )


def base_line(desk: Desk) -> str:
    """What work begins from: its name, how far behind it is, and what isn't part of it.

    Raises:
        GitError: the base names no commit.
    """
    commit = desk.base_commit()
    parts = [f"{desk.options.base or current_branch(desk.cwd) or 'HEAD'}@{commit[:7]}"]
    behind = None if desk.options.base else behind_remote(desk.cwd)
    if behind:
        commits = "commit" if behind == 1 else "commits"
        parts.append(f"{behind} {commits} behind its remote, as of the last fetch")
    left = [] if desk.repo.is_bare else uncommitted_files(desk.cwd)
    if left:
        named = ", ".join(kept_text(path, most=200) for path in left[:_NAMED_FILES])
        more = ", …" if len(left) > _NAMED_FILES else ""
        word = "file isn't" if len(left) == 1 else "files aren't"
        parts.append(f"{len(left)} uncommitted {word} part of it ({named}{more})")
    return "; ".join(parts)
