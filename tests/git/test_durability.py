"""What holds the only copy of work, or what a durable reference leads to, is on the disk and not in memory alone.

By default git leaves loose objects to the system's own time; a reference that a power cut keeps would
then lead to objects that it took.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from git_rig import nobody

from lessor.git.commit import commit_leftovers, ensure_trailer
from lessor.git.inspection import inspect_worktree
from lessor.git.removal import remove_worktree
from lessor.git.replay import replay
from lessor.git.repository import Repository, head_commit

Git = Callable[..., str]
LABEL = "owner=claude-1;branch=claude/7-totals;env=none;task=7;epoch=1"


@pytest.fixture
def flushed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, git: Git
) -> Callable[[str], list[int]]:
    """How often each git command of this name flushed something to the disk, as git itself says."""
    target, settings = tmp_path / "trace", tmp_path / "settings"
    git(tmp_path, "config", "--file", str(settings), "trace2.eventTarget", str(target))
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(settings))
    monkeypatch.setenv("GIT_CONFIG_SYSTEM", str(settings))

    def counted(command: str) -> list[int]:
        names: dict[str, str] = {}
        counts: dict[str, int] = {}
        for line in target.read_text().splitlines():
            event = json.loads(line)
            if event["event"] == "cmd_name":
                names[event["sid"]] = event["name"]
                counts[event["sid"]] = 0
            if event.get("category") == "fsync" and event.get("key") == "fsync/hardware-flush":
                counts[event["sid"]] += int(event["value"])
        return [count for sid, count in counts.items() if names[sid] == command]

    return counted


def test_what_was_left_uncommitted_is_on_the_disk_once_it_is_committed(
    flushed, worktree: Path, git: Git
):
    (worktree / "new").write_text("work")
    commit_leftovers(worktree, message="work", label=LABEL, author=None)
    for command in ("write-tree", "commit-tree", "update-ref"):
        assert all(flushed(command)), command
    assert sum(flushed("update-index")) == 1


def test_commits_that_are_made_anew_for_their_label_are_on_the_disk(
    flushed, worktree: Path, main: Path, git: Git
):
    git(worktree, "commit", "-q", "--allow-empty", "-m", "work")
    ensure_trailer(worktree, base="main", label=LABEL)
    assert flushed("hash-object") == [1]
    assert all(flushed("update-ref"))


def test_what_a_landing_leads_to_is_on_the_disk(
    flushed, repo: Repository, main: Path, worktree: Path, git: Git, tmp_path: Path
):
    (worktree / "new").write_text("work")
    git(worktree, "add", "new")
    git(worktree, "commit", "-q", "-m", "work")
    head, base = head_commit(worktree), head_commit(main)
    git(main, "commit", "-q", "--allow-empty", "-m", "meanwhile")
    replay(repo, path=tmp_path / "landing", head=head, base=base, onto="main")
    assert sum(flushed("rebase")) >= 1


def test_an_agents_commits_are_on_the_disk_before_its_worktree_goes(
    repo: Repository, worktree: Path, main: Path, git: Git, monkeypatch: pytest.MonkeyPatch
):
    (worktree / "new").write_text("work")
    git(worktree, "add", "new")
    git(worktree, "commit", "-q", "-m", "work")
    made = git(worktree, "rev-parse", "HEAD", "HEAD^{tree}", "HEAD:new").split()
    verdict = inspect_worktree(worktree, base=head_commit(main), snapshot={}, occupants=nobody)
    flushed: list[str] = []
    real = os.fsync

    def noted(handle: int) -> None:
        flushed.append(str(Path(f"/proc/self/fd/{handle}").readlink()))
        real(handle)

    with monkeypatch.context() as watched:
        watched.setattr(os, "fsync", noted)
        remove_worktree(repo, worktree, verdict=verdict, occupants=nobody)
    top = repo.common_dir
    assert {str(top / "objects" / oid[:2] / oid[2:]) for oid in made} < set(flushed)
    assert str(top / "refs" / "heads" / "claude" / "7-totals") in flushed
    assert len(flushed) == len(made) + 2
