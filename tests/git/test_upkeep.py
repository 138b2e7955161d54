"""Git tidies up after itself: never beside a claim, and never what a claim needs."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from git_rig import nobody

from lessor.git.command import run_git
from lessor.git.inspection import inspect_worktree
from lessor.git.repository import Repository, head_commit
from lessor.git.worktree import add_worktree, detach_head, list_worktrees

Git = Callable[..., str]

EAGER = {"gc.auto": "1", "gc.autoDetach": "false", "maintenance.auto": "true"}


@pytest.fixture
def eager(main: Path, tmp_path: Path, git: Git) -> Path:
    """A repository that git would tidy up after each command that may."""
    git(tmp_path, "clone", "-q", "--bare", str(main), "origin.git")
    git(main, "remote", "add", "origin", str(tmp_path / "origin.git"))
    for key, value in EAGER.items():
        git(main, "config", key, value)
    for n in range(300):  # gc.auto counts the objects of one of 256 directories
        git(main, "hash-object", "-w", "--stdin", stdin=str(n).encode())
    return main


def started(trace: Path) -> set[str]:
    """The git commands that a command started by itself."""
    events = [json.loads(line) for line in trace.read_text().splitlines()]
    return {
        word
        for event in events
        if event["event"] == "child_start"
        for word in event["argv"]
        if word in {"gc", "maintenance", "prune", "repack"}
    }


def test_git_would_tidy_up_by_itself(eager: Path, tmp_path: Path, git: Git, monkeypatch):
    trace = tmp_path / "trace"
    monkeypatch.setenv("GIT_TRACE2_EVENT", str(trace))
    git(eager, "fetch", "-q")
    assert "maintenance" in started(trace)
    assert started(trace) & {"gc", "repack"}  # the second since git 2.52


@pytest.mark.parametrize("args", [["fetch", "-q"], ["commit", "-q", "--allow-empty", "-m", "x"]])
def test_lessors_git_never_tidies_up(eager: Path, tmp_path: Path, args: list[str]):
    trace = tmp_path / "trace"
    who = {"GIT_AUTHOR_NAME": "A", "GIT_AUTHOR_EMAIL": "a@b"}
    who |= {"GIT_COMMITTER_NAME": "A", "GIT_COMMITTER_EMAIL": "a@b"}
    before = len(list((eager / ".git" / "objects").glob("??/*")))
    run_git(args, cwd=eager, env={**who, "GIT_TRACE2_EVENT": str(trace)})
    assert started(trace) == set()
    assert len(list((eager / ".git" / "objects").glob("??/*"))) >= before


@pytest.mark.parametrize(
    "args",
    [
        ["gc", "-q", "--prune=now"],
        ["maintenance", "run", "--quiet", "--task=gc"],
        ["maintenance", "run", "--quiet", "--task=loose-objects", "--task=pack-refs"],
        ["worktree", "prune", "--expire=now"],
    ],
    ids=["gc", "maintenance", "repacking", "prune"],
)
def test_what_a_claim_needs_survives_when_a_person_tidies_up(
    repo: Repository, worktree: Path, main: Path, git: Git, args: list[str]
):
    """The base that main left behind, what a zombie committed, what is staged, and the entries."""
    git(main, "commit", "-q", "--allow-empty", "-m", "left behind")
    base = head_commit(main)
    second = worktree.with_name("8-1")
    add_worktree(repo, path=second, branch="ai/8-x", base=base, task="8", epoch=1, reason="task=8")
    git(main, "reset", "-q", "--hard", "HEAD~1")
    detach_head(worktree)
    git(worktree, "commit", "-q", "--allow-empty", "-m", "zombie")
    zombie = head_commit(worktree)
    git(worktree, "reset", "-q", "--hard", "HEAD~1")
    (second / "staged").write_text("staged\n")
    git(second, "add", "staged")
    second.rename(second.with_name("away"))  # a disk that isn't mounted now
    now = ["-c", "gc.worktreePruneExpire=now", "-c", "gc.pruneExpire=now"]
    git(main, *now, *args)
    second.with_name("away").rename(second)
    assert len(list_worktrees(repo)) == 3
    assert git(main, "cat-file", "-t", base) == "commit"
    assert git(worktree, "cat-file", "-t", zombie) == "commit"
    assert git(second, "show", ":staged") == "staged"
    assert (
        "uncommitted"
        in inspect_worktree(second, base=base, snapshot={}, occupants=nobody).reasons[0]
    )
