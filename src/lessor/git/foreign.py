"""The record of commits that came to a task's branch from somebody else, and of the way back.

`refs/lessor/foreign/<task>/<commit>/after` is where the branch went with the commit, `before` where
its holder was until then. Both stay, so that neither is lost when the branch goes back.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from lessor.git.authorship import Step
from lessor.git.command import run_git
from lessor.git.refs import OWN, create_ref


def record_foreign(common_dir: Path, task: str, slips: Mapping[str, Step]) -> None:
    """Keep each of the commits on record; what is there already stays as it was.

    Raises:
        GitError: Git refused.
    """
    for commit, step in slips.items():
        place = f"{_prefix(task)}{commit}"
        if step.before is not None:
            create_ref(common_dir, f"{place}/before", step.before)
        create_ref(common_dir, f"{place}/after", step.after)


def recorded_foreign(common_dir: Path, task: str) -> dict[str, Step]:
    """The commits that are on record for the task, each with how it came.

    Raises:
        GitError: Git can't be asked.
    """
    asked = ["for-each-ref", "--format=%(refname) %(objectname)", _prefix(task)]
    listed = run_git(asked, cwd=common_dir, git_dir=common_dir)
    found: dict[str, dict[str, str]] = {}
    for line in listed.lines:
        name, _, oid = line.partition(" ")
        commit, _, which = name.removeprefix(_prefix(task)).partition("/")
        found.setdefault(commit, {})[which] = oid
    return {
        commit: Step(ways.get("before"), ways["after"])
        for commit, ways in found.items()
        if "after" in ways
    }


def _prefix(task: str) -> str:
    return f"{OWN}/foreign/{task}/"
