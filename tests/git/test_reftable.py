"""Repositories in the reftable format: used where git has it, and answered with why where it hasn't."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from git_rig import nobody

from lessor.errors import ForeignCommitsError, GitError, HoldsWorkError
from lessor.git.advance import advance
from lessor.git.authorship import read_authorship, refuse_foreign, slips_before
from lessor.git.command import require_git
from lessor.git.inspection import Verdict, inspect_worktree
from lessor.git.landed import Asked, Landed, what_landed
from lessor.git.layout import layout_of
from lessor.git.progress import branch_at_head, operations_in_progress
from lessor.git.refs import read_ref
from lessor.git.registry import list_worktrees, references_lock, worktrees_of
from lessor.git.repository import Repository, current_branch, find_repository, head_commit
from lessor.git.restore import restore_salvage
from lessor.git.salvage import salvage
from lessor.git.target import Target, default_target, named_target, read_refs
from lessor.git.worktree import add_worktree, detach_head, discard_worktree, remove_worktree

Git = Callable[..., str]

BRANCH = "claude/7-totals"
HAS_REFTABLES = require_git() >= (2, 45)
with_reftables = pytest.mark.skipif(not HAS_REFTABLES, reason="this git has no reftables")
without_reftables = pytest.mark.skipif(HAS_REFTABLES, reason="this git has reftables")


# A git that has the format.


@pytest.fixture
def tabled(tmp_path: Path, git: Git) -> Repository:
    top = tmp_path / "tabled"
    git(tmp_path, "init", "-q", "-b", "main", "--ref-format=reftable", str(top))
    (top / "README").write_text("shop\n")
    git(top, "add", "-A")
    git(top, "commit", "-q", "-m", "begin")
    return find_repository(top)


def make(repo: Repository, place: Path, *, epoch: int = 1) -> Path:
    path = place / "trees" / f"7-{epoch}"
    add_worktree(
        repo, path=path, branch=BRANCH, base="main", task="7", epoch=epoch, reason="task=7"
    )
    return path


@with_reftables
def test_worktrees_are_made_handed_on_and_listed(tabled: Repository, tmp_path: Path, git: Git):
    old = make(tabled, tmp_path)
    git(old, "commit", "-q", "--allow-empty", "-m", "work")
    tip = head_commit(old)
    assert branch_at_head(layout_of(old).git_dir) == BRANCH
    assert (layout_of(old).git_dir, BRANCH) in worktrees_of(tabled.common_dir)
    detach_head(old)
    new = make(tabled, tmp_path, epoch=2)
    git(old, "commit", "-q", "--allow-empty", "-m", "too late")
    assert (current_branch(new), head_commit(new)) == (BRANCH, tip)
    assert read_ref(tabled.common_dir, f"refs/heads/{BRANCH}") == tip
    assert {tree.path for tree in list_worktrees(tabled)} == {tabled.root, old, new}


@with_reftables
def test_nothing_is_removed_unless_a_person_names_it(tabled: Repository, tmp_path: Path):
    """What was reset away there is in no file that could be read: unknown never counts as empty."""
    path = make(tabled, tmp_path)
    found = inspect_worktree(path, base="main", snapshot={}, occupants=nobody)
    assert found.verdict is Verdict.UNKNOWN
    assert "reftables" in found.reasons[0]
    with pytest.raises(HoldsWorkError, match="reftables"):
        remove_worktree(tabled, path, verdict=found, occupants=nobody)
    assert (path / "README").exists()


@with_reftables
def test_what_a_person_discards_is_saved_with_what_was_reset_away(
    tabled: Repository, tmp_path: Path, git: Git
):
    path = make(tabled, tmp_path)
    git(path, "commit", "-q", "--allow-empty", "-m", "reset away")
    lost = head_commit(path)
    git(path, "reset", "-q", "--hard", "HEAD~1")
    (path / "new").write_text("new\n")

    def save(place: Path):
        return salvage(
            place,
            common_dir=tabled.common_dir,
            task="7",
            epoch=1,
            snapshot={},
            archive_dir=tmp_path / "archives",
        )

    saved = discard_worktree(tabled, path, save=save, occupants=nobody)
    assert not path.exists()
    git(tabled.root, "gc", "-q", "--prune=now")
    git(tabled.root, "merge-base", "--is-ancestor", lost, saved.ref or "")
    back = tmp_path / "back"
    restore_salvage(
        common_dir=tabled.common_dir, commit=saved.commit, archive=saved.archive, into=back
    )
    assert (back / "new").read_text() == "new\n"


@with_reftables
def test_operations_in_progress_are_seen_though_they_are_no_files(
    tabled: Repository, tmp_path: Path, git: Git
):
    path = make(tabled, tmp_path)
    git(path, "rm", "-q", "README")
    git(path, "commit", "-q", "-m", "drop it")
    (tabled.root / "README").write_text("theirs\n")
    git(tabled.root, "commit", "-q", "-am", "theirs")
    git(path, "cherry-pick", "main", check=False)
    git_dir = layout_of(path).git_dir
    assert not (git_dir / "CHERRY_PICK_HEAD").exists()
    assert operations_in_progress(git_dir) == ("cherry-pick",)


@with_reftables
@pytest.mark.parametrize("reset", [False, True])
@pytest.mark.parametrize("on_top", [False, True])
def test_a_zombies_commit_is_refused(
    tabled: Repository, tmp_path: Path, git: Git, reset: bool, on_top: bool
):
    """HEAD's reflog shows only where it went to there, and a commit has what it was at for a parent."""
    old = make(tabled, tmp_path)
    detach_head(old)
    new = make(tabled, tmp_path, epoch=2)
    start = head_commit(new)
    git(new, "commit", "-q", "--allow-empty", "-m", "mine")
    git(old, "commit", "-q", "--allow-empty", "-m", "late")
    zombie = head_commit(old)
    git(old, "update-ref", f"refs/heads/{BRANCH}", zombie)
    if reset:
        git(new, "reset", "-q", "--hard")
    if on_top:
        git(new, "commit", "-q", "--allow-empty", "-m", "more")
    found = read_authorship(layout_of(new), since=start, branch=BRANCH, label="x")
    with pytest.raises(ForeignCommitsError):
        refuse_foreign(found, branch=BRANCH)
    assert zombie in found.slipped
    git_dir = layout_of(new).git_dir
    tip = head_commit(new)
    assert zombie in slips_before(git_dir, tip=tip, base=start, branch=BRANCH)


@with_reftables
def test_the_holders_own_commits_are_its_own(tabled: Repository, tmp_path: Path, git: Git):
    path = make(tabled, tmp_path)
    start = head_commit(path)
    for n in range(3):
        (path / f"file{n}").write_text("x")
        git(path, "add", "-A")
        git(path, "commit", "-q", "-m", f"{n}")
    git(path, "commit", "-q", "--amend", "-m", "better")
    git(path, "checkout", "-q", "-b", "side", start)
    git(path, "commit", "-q", "--allow-empty", "-m", "side")
    git(path, "checkout", "-q", BRANCH)
    git(path, "merge", "-q", "--no-edit", "side")
    git(path, "revert", "--no-edit", "HEAD~1")
    found = read_authorship(layout_of(path), since=start, branch=BRANCH, label="x")
    assert (found.slipped, found.labelled) == ((), ())


@with_reftables
def test_results_land_and_are_told(tabled: Repository, tmp_path: Path, git: Git):
    common_dir = tabled.common_dir
    start = head_commit(tabled.root)
    path = make(tabled, tmp_path)
    (path / "new").write_text("new\n")
    git(path, "add", "-A")
    git(path, "commit", "-q", "-m", "work")
    tip = head_commit(path)

    def judge() -> Landed:
        asked = Asked(branch=BRANCH, base=start, seen=tip)
        return what_landed(common_dir, [asked], target=named_target(common_dir, "main"))[0].verdict

    assert default_target(common_dir, read_refs(common_dir), remote=None, said=None).name == "main"
    assert judge() is Landed.OPEN
    assert advance(tabled, branch="main", old=start, new=tip)
    assert (tabled.root / "new").read_text() == "new\n"
    assert judge() is Landed.MERGED


@with_reftables
def test_a_lock_on_all_references_is_named(tabled: Repository):
    assert references_lock(tabled) is None
    lock = tabled.common_dir / "reftable" / "tables.list.lock"
    lock.touch()
    assert references_lock(tabled) == lock


# A git that doesn't: it refuses such a repository, and that is told as it is.


@pytest.fixture
def refused(main: Path, repo: Repository, worktree: Path, git: Git) -> Path:
    """A worktree of a repository that says of itself that it is in the format."""
    git(main, "config", "core.repositoryFormatVersion", "1")
    git(main, "config", "extensions.refStorage", "reftable")
    return worktree


READERS: list[Callable[[Repository, Path], object]] = [
    lambda repo, _: find_repository(repo.root),
    lambda _, worktree: current_branch(worktree),
    lambda _, worktree: head_commit(worktree),
    lambda repo, _: list_worktrees(repo),
    lambda repo, _: read_ref(repo.common_dir, f"refs/heads/{BRANCH}"),
    lambda repo, _: read_refs(repo.common_dir),
    lambda _, worktree: detach_head(worktree),
    lambda repo, worktree: make(repo, worktree.parent.parent, epoch=2),
    lambda repo, _: advance(repo, branch="main", old="0" * 40, new="0" * 40),
    lambda repo, worktree: salvage(
        worktree,
        common_dir=repo.common_dir,
        task="7",
        epoch=1,
        snapshot={},
        archive_dir=worktree.parent / "archives",
    ),
]


@without_reftables
@pytest.mark.parametrize("reader", range(len(READERS)))
def test_a_git_without_the_format_is_told_why_at_every_door_and_nothing_is_lost(
    refused: Path, repo: Repository, reader: int
):
    def everything() -> dict[str, bytes]:
        found = [*(repo.common_dir / "refs").rglob("*"), *refused.rglob("*")]
        return {str(path): path.read_bytes() for path in found if path.is_file()}

    before = everything()
    with pytest.raises(GitError, match=r"unknown repository extension|refstorage|isn't"):
        READERS[reader](repo, refused)
    assert everything() == before


@without_reftables
def test_a_git_without_the_format_judges_such_a_worktree_unknown(refused: Path, repo: Repository):
    found = inspect_worktree(refused, base="0" * 40, snapshot={}, occupants=nobody)
    assert found.verdict is Verdict.UNKNOWN
    assert "refstorage" in found.reasons[0]
    with pytest.raises(GitError):
        remove_worktree(repo, refused, verdict=found, occupants=nobody)
    assert (refused / "README").exists()


@without_reftables
def test_a_git_without_the_format_says_of_no_branch_what_became_of_it(
    refused: Path, repo: Repository
):
    asked = [Asked(branch=BRANCH)]
    (found,) = what_landed(repo.common_dir, asked, target=Target(name="main", commit="0" * 40))
    assert found.verdict is Landed.UNKNOWN
    assert "refstorage" in found.why
