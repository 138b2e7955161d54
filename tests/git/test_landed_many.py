"""Hundreds of branches of every kind are judged at once, each rightly, by few git processes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from branch_kinds import KINDS, Made, tell

from lessor.git.landed import Asked, Landing, what_landed
from lessor.git.target import named_target

Git = Callable[..., str]

BRANCHES = 300
MOST_PROCESSES = 9


def judge(top: Path, made: list[Made]) -> list[Landing]:
    common_dir = top / ".git"
    asked = [Asked(branch=one.branch, base=one.base, seen=one.seen) for one in made]
    return what_landed(common_dir, asked, target=named_target(common_dir, "main"))


@pytest.fixture
def top(tmp_path: Path, git: Git) -> Path:
    git(tmp_path, "init", "-q", "-b", "main", "many")
    return tmp_path / "many"


@pytest.mark.parametrize("seed", [1, 2])
def test_each_branch_of_each_kind_gets_its_verdict(top: Path, seed: int):
    made = tell(top, seed=seed, branches=BRANCHES)
    assert {one.kind for one in made} == set(KINDS)
    wrong = [
        f"{one.kind}: {found.verdict}, not {one.verdict} ({found.why})"
        for one, found in zip(made, judge(top, made), strict=True)
        if found.verdict != one.verdict
    ]
    assert wrong == []


def test_each_verdict_names_the_commits_that_hold_the_work(top: Path):
    made = tell(top, seed=3, branches=BRANCHES)
    wrong = [
        f"{one.kind}: {found.parts}/{found.of} in {found.holders}"
        for one, found in zip(made, judge(top, made), strict=True)
        if one.holders not in {None, frozenset(found.holders)}
        or one.parts not in {None, (found.parts, found.of)}
    ]
    assert wrong == []


@pytest.mark.parametrize("count", [1, 40, BRANCHES])
def test_few_processes_judge_any_number_of_branches(top: Path, processes, count: int):
    made = tell(top, seed=4, branches=BRANCHES)
    before = processes()
    judge(top, made[-count:])
    assert 0 < processes() - before <= MOST_PROCESSES - 3


def test_alone_and_together_a_branch_gets_the_same_verdict(top: Path):
    """The history that is read for a few is cut off where they have the rest in common."""
    made = tell(top, seed=5, branches=60)
    for one, found in zip(made, judge(top, made), strict=True):
        assert judge(top, [one]) == [found], one.kind


def test_judging_leaves_nothing_behind(top: Path, git: Git):
    made = tell(top, seed=6, branches=60)

    def state() -> tuple[str, str, set[str]]:
        names = {path.name for path in (top / ".git").iterdir()}
        return git(top, "count-objects", "-v"), git(top, "for-each-ref"), names

    before = state()
    judge(top, made)
    assert state() == before


def test_no_branches_are_no_verdicts(top: Path):
    tell(top, seed=7, branches=0)
    assert judge(top, []) == []
