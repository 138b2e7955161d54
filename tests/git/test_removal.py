"""Removal refuses whatever could lose something, and says why."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from lessor.errors import HoldsWorkError, WorktreeError
from lessor.git.inspection import inspect_worktree, take_snapshot
from lessor.git.repository import Repository, head_commit
from lessor.git.worktree import add_worktree, list_worktrees, remove_worktree

Git = Callable[..., str]


@pytest.fixture
def remove(repo: Repository, worktree: Path, main: Path) -> Callable[..., None]:
    """Inspects and removes; `between` is called between the two."""
    base = head_commit(main)

    def run(*, snapshot=None, between=lambda: None) -> None:
        verdict = inspect_worktree(worktree, base=base, snapshot=snapshot or {})
        between()
        remove_worktree(repo, worktree, verdict=verdict)

    return run


def paths(repo: Repository) -> list[Path]:
    return [found.path for found in list_worktrees(repo)]


def test_an_empty_worktree_goes_and_its_branch_stays(
    remove, worktree: Path, repo: Repository, main: Path, git: Git
):
    remove()
    assert not worktree.exists()
    assert worktree not in paths(repo)
    assert git(main, "rev-parse", "claude/7-totals") == head_commit(main)


def test_a_kept_worktree_goes_with_what_setup_made(remove, worktree: Path, main: Path, git: Git):
    (worktree / ".env").write_text("KEY=1")
    (worktree / "node_modules").mkdir()
    snapshot = take_snapshot(worktree)
    (worktree / "node_modules" / "later.js").write_text("x")
    git(worktree, "commit", "-q", "--allow-empty", "-m", "work")
    tip = head_commit(worktree)
    remove(snapshot=snapshot)
    assert not worktree.exists()
    assert git(main, "rev-parse", "claude/7-totals") == tip


def test_a_worktree_with_submodules_as_cloned_goes(
    submodule: str, remove, worktree: Path, git: Git
):
    git(worktree, "submodule", "update", "-q", "--init")
    remove()
    assert not worktree.exists()


def test_work_is_refused_with_its_reasons(remove, worktree: Path, repo: Repository):
    (worktree / ".env").write_text("KEY=1")
    with pytest.raises(HoldsWorkError, match=r"\.env") as refused:
        remove()
    assert refused.value.facts["verdict"] == "holds-work"
    assert (worktree / ".env").exists()
    assert next(found for found in list_worktrees(repo) if found.path == worktree).is_lessors


def test_unknown_is_refused(remove, worktree: Path, git: Git):
    Path(git(worktree, "rev-parse", "--git-path", "index.lock")).touch()
    with pytest.raises(HoldsWorkError):
        remove()
    assert worktree.exists()


@pytest.mark.parametrize("path", ["late.txt", ".env"])
def test_what_appears_after_the_verdict_is_seen_by_the_second_look(
    remove, worktree: Path, path: str
):
    with pytest.raises(HoldsWorkError):
        remove(between=lambda: (worktree / path).write_text("late"))
    assert (worktree / path).read_text() == "late"


def test_a_verdict_on_another_worktree_is_refused(
    worktree: Path, repo: Repository, main: Path, tmp_path: Path
):
    other = tmp_path / "trees" / "8-1"
    add_worktree(repo, path=other, branch="ai/8-x", base="main", task="8", epoch=1, reason="task=8")
    verdict = inspect_worktree(other, base=head_commit(main), snapshot={})
    with pytest.raises(HoldsWorkError):
        remove_worktree(repo, worktree, verdict=verdict)
    assert worktree.exists()


def test_the_main_worktree_is_refused(repo: Repository, main: Path):
    verdict = inspect_worktree(main, base=head_commit(main), snapshot={})
    with pytest.raises(WorktreeError):
        remove_worktree(repo, main, verdict=verdict)


@pytest.mark.parametrize("lock", [None, "on my USB stick"])
def test_a_worktree_that_lessor_did_not_make_is_refused(
    repo: Repository, main: Path, tmp_path: Path, git: Git, lock: str | None
):
    path = tmp_path / "by-hand"
    git(main, "worktree", "add", "-q", "-b", "by-hand", str(path))
    if lock:
        git(main, "worktree", "lock", "--reason", lock, str(path))
    verdict = inspect_worktree(path, base=head_commit(main), snapshot={})
    with pytest.raises(WorktreeError, match="isn't Lessor's"):
        remove_worktree(repo, path, verdict=verdict)
    assert path.exists()


def test_a_link_to_a_worktree_is_refused(
    repo: Repository, worktree: Path, main: Path, tmp_path: Path
):
    link = tmp_path / "link"
    link.symlink_to(worktree)
    verdict = inspect_worktree(worktree, base=head_commit(main), snapshot={})
    with pytest.raises(WorktreeError, match="link"):
        remove_worktree(repo, link, verdict=verdict)
    assert worktree.exists()


def test_a_link_inside_that_leads_out_is_not_followed(
    remove, worktree: Path, tmp_path: Path, git: Git
):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "precious").write_text("precious")
    (worktree / "way-out").symlink_to(outside)
    git(worktree, "add", "way-out")
    git(worktree, "commit", "-q", "-m", "link")
    (worktree / "build").symlink_to(outside)
    (worktree / ".gitignore").write_text("build\n")
    git(worktree, "commit", "-q", "-am", "ignore it")
    remove(snapshot=take_snapshot(worktree))
    assert not worktree.exists()
    assert (outside / "precious").read_text() == "precious"


def test_a_worktree_around_another_one_is_refused(
    remove, worktree: Path, repo: Repository, main: Path
):
    inner = worktree / "build" / "8-1"
    add_worktree(repo, path=inner, branch="ai/8-x", base="main", task="8", epoch=1, reason="task=8")
    with pytest.raises(WorktreeError, match="inside"):
        remove(snapshot=take_snapshot(worktree))
    assert inner.exists()


def test_where_git_refuses_nothing_is_deleted_and_the_lock_is_back(
    remove, worktree: Path, repo: Repository, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    # A git that fails at this one command, as it does where a file can't be unlinked.
    _let_git_refuse_to_remove(tmp_path, monkeypatch)
    with pytest.raises(WorktreeError, match="didn't remove"):
        remove()
    assert (worktree / "README").exists()
    assert next(found for found in list_worktrees(repo) if found.path == worktree).is_lessors


def _let_git_refuse_to_remove(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = shutil.which("git")
    assert real is not None
    wrapper = tmp_path / "bin" / "git"
    wrapper.parent.mkdir()
    wrapper.write_text(
        f'#!/bin/sh\ncase "$*" in *"worktree remove"*) echo no >&2; exit 128;; esac\n'
        f'exec {real} "$@"\n'
    )
    wrapper.chmod(0o755)
    monkeypatch.setenv("PATH", str(wrapper.parent), prepend=":")
