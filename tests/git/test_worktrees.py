"""Worktrees are made whole or not at all, and a branch is handed on so that no zombie moves it."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from lessor.errors import GitError, WorktreeError
from lessor.git.layout import layout_of
from lessor.git.repository import Repository, current_branch, find_repository, head_commit
from lessor.git.worktree import (
    Worktree,
    add_worktree,
    detach_head,
    forget_worktree,
    heal_worktree,
    list_worktrees,
    relock_worktree,
)

Git = Callable[..., str]

BRANCH = "claude/7-totals"


@pytest.fixture
def add(repo: Repository, tmp_path: Path) -> Callable[..., Path]:
    def run(name: str = "7-2", *, branch: str = BRANCH, base: str = "main", epoch: int = 2) -> Path:
        path = tmp_path / "trees" / name
        add_worktree(
            repo, path=path, branch=branch, base=base, task="7", epoch=epoch, reason="task=7"
        )
        return path

    return run


def entry(repo: Repository, path: Path) -> Worktree:
    return next(found for found in list_worktrees(repo) if found.path == path)


def branches(main: Path, git: Git) -> list[str]:
    return git(main, "for-each-ref", "--format=%(refname:short)", "refs/heads").split()


def test_a_new_worktree_is_locked_on_its_branch_at_a_pinned_base(
    worktree: Path, repo: Repository, main: Path, git: Git
):
    made = entry(repo, worktree)
    assert (made.branch, made.detached, made.head) == (BRANCH, False, head_commit(main))
    assert made.locked_reason == "lessor:task=7"
    assert made.is_lessors
    assert git(main, "rev-parse", "refs/lessor/base/7/1") == head_commit(main)
    assert (worktree / "README").read_text() == "the shop\n"


def test_a_new_branch_follows_no_remote_and_the_shared_configuration_stays(
    add, repo: Repository, main: Path, tmp_path: Path, git: Git
):
    git(tmp_path, "clone", "-q", "--bare", str(main), "origin.git")
    git(main, "remote", "add", "origin", str(tmp_path / "origin.git"))
    git(main, "fetch", "-q", "origin")
    before = (main / ".git" / "config").read_bytes()
    add(base="origin/main")
    assert (main / ".git" / "config").read_bytes() == before


def test_a_branch_with_commits_is_inherited(add, worktree: Path, main: Path, git: Git):
    git(worktree, "commit", "-q", "--allow-empty", "-m", "epoch 1")
    tip = head_commit(worktree)
    detach_head(worktree)
    path = add()
    assert (current_branch(path), head_commit(path)) == (BRANCH, tip)
    assert git(main, "rev-parse", "refs/lessor/base/7/2") == head_commit(main)


def test_a_zombie_s_commit_does_not_move_a_branch_that_was_handed_on(
    add, worktree: Path, main: Path, git: Git
):
    (worktree / "README").write_text("edited")
    detach_head(worktree)
    path = add()
    git(worktree, "commit", "-q", "-am", "too late")
    assert git(main, "rev-parse", BRANCH) == head_commit(path) == head_commit(main)
    assert current_branch(worktree) is None


@pytest.mark.parametrize("end", ["--continue", "--abort"])
def test_a_zombie_s_rebase_ends_without_moving_the_branch(
    add, worktree: Path, main: Path, git: Git, end: str
):
    (main / "README").write_text("theirs\n")
    git(main, "commit", "-q", "-am", "theirs")
    (worktree / "README").write_text("ours\n")
    git(worktree, "commit", "-q", "-am", "ours")
    tip = head_commit(worktree)
    git(worktree, "rebase", "-q", "main", check=False)
    detach_head(worktree)
    path = add()
    (worktree / "README").write_text("resolved\n")
    git(worktree, "add", "README")
    git(worktree, "-c", "core.editor=true", "rebase", end)
    assert git(main, "rev-parse", BRANCH) == tip == head_commit(path)


def test_a_zombie_s_bisect_gives_the_branch_up_and_goes_back_to_its_commit(
    add, worktree: Path, main: Path, git: Git
):
    git(worktree, "commit", "-q", "--allow-empty", "-m", "ours")
    tip = head_commit(worktree)
    git(worktree, "bisect", "start", "HEAD", "HEAD~2")
    detach_head(worktree)
    path = add()
    assert head_commit(path) == tip
    git(worktree, "bisect", "reset")
    assert (current_branch(worktree), head_commit(worktree)) == (None, tip)
    git(worktree, "commit", "-q", "--allow-empty", "-m", "too late")
    assert git(main, "rev-parse", BRANCH) == tip


def test_during_a_rebase_and_a_bisect_the_list_still_names_the_branch(
    worktree: Path, repo: Repository, main: Path, git: Git
):
    (main / "README").write_text("theirs\n")
    git(main, "commit", "-q", "-am", "theirs")
    (worktree / "README").write_text("ours\n")
    git(worktree, "commit", "-q", "-am", "ours")
    git(worktree, "rebase", "-q", "main", check=False)
    found = entry(repo, worktree)
    assert (found.branch, found.detached) == (BRANCH, True)
    git(worktree, "rebase", "--abort")
    git(worktree, "bisect", "start", "HEAD", "HEAD~2")
    found = entry(repo, worktree)
    assert (found.branch, found.detached) == (BRANCH, True)


def test_the_list_reads_paths_and_reasons_with_line_ends(
    repo: Repository, main: Path, tmp_path: Path, git: Git
):
    path = tmp_path / "odd\nname"
    git(main, "worktree", "add", "-q", "--detach", str(path))
    git(main, "worktree", "lock", "--reason", 'two\nlines "quoted"', str(path))
    found = entry(repo, path)
    assert found.locked_reason == 'two\nlines "quoted"'
    assert not found.is_lessors


def test_a_branch_that_is_checked_out_elsewhere_is_refused(add, worktree: Path, repo: Repository):
    with pytest.raises(WorktreeError, match="is checked out in") as refused:
        add()
    assert refused.value.__cause__.facts["holder"] == str(worktree)
    assert len(list_worktrees(repo)) == 2


def test_a_path_that_holds_a_worktree_is_refused(add, worktree: Path):
    with pytest.raises(WorktreeError, match="already"):
        add(worktree.name, branch="claude/7-other")


def test_a_directory_with_somebody_s_files_is_refused_and_left(
    add, tmp_path: Path, main: Path, git: Git
):
    (tmp_path / "trees" / "7-2").mkdir(parents=True)
    (tmp_path / "trees" / "7-2" / "mine").write_text("mine")
    with pytest.raises(WorktreeError):
        add(branch="claude/7-other")
    assert (tmp_path / "trees" / "7-2" / "mine").read_text() == "mine"
    assert branches(main, git) == ["main"]


def test_a_link_as_the_path_is_refused(add, tmp_path: Path):
    (tmp_path / "trees").mkdir()
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "trees" / "7-2").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(WorktreeError, match="link"):
        add()


def test_a_failed_add_leaves_no_branch_and_no_pin(add, tmp_path: Path, main: Path, git: Git):
    (tmp_path / "trees").write_text("a file where the parent should be")
    with pytest.raises(WorktreeError):
        add()
    assert git(main, "for-each-ref", "--format=%(refname)") == "refs/heads/main"


def test_a_failed_add_keeps_a_branch_that_was_there(add, tmp_path: Path, main: Path, git: Git):
    git(main, "branch", BRANCH)
    (tmp_path / "trees").write_text("a file where the parent should be")
    with pytest.raises(WorktreeError):
        add()
    assert BRANCH in branches(main, git)


@pytest.mark.parametrize("branch", ["-x", "a..b", "x.lock", "a b", "@{-1}", "", "a\nb", "-"])
def test_a_branch_name_that_git_refuses_is_refused(add, main: Path, git: Git, branch: str):
    with pytest.raises(GitError):
        add(branch=branch)
    assert branches(main, git) == ["main"]


@pytest.mark.parametrize("base", ["nowhere", "--all", "", "main\nmain", "HEAD:README"])
def test_a_base_that_is_no_commit_is_refused(add, main: Path, git: Git, base: str):
    with pytest.raises(GitError):
        add(base=base)
    assert branches(main, git) == ["main"]


def test_the_pinned_base_of_an_epoch_never_changes(add, worktree: Path, main: Path, git: Git):
    with pytest.raises(WorktreeError, match="refs/lessor/base/7/1"):
        add(branch="claude/7-other", base="main~1", epoch=1)
    assert git(main, "rev-parse", "refs/lessor/base/7/1") == head_commit(main)


def test_no_hook_of_the_repository_runs(add, main: Path, tmp_path: Path):
    for name in ("post-checkout", "reference-transaction"):
        hook = main / ".git" / "hooks" / name
        hook.parent.mkdir(exist_ok=True)
        hook.write_text(f"#!/bin/sh\ntouch '{tmp_path}/hook-ran'\nexit 1\n")
        hook.chmod(0o755)
    add()
    assert not (tmp_path / "hook-ran").exists()


def test_an_entry_without_its_directory_heals_with_its_branch_and_commits_kept(
    add, worktree: Path, repo: Repository, main: Path, git: Git
):
    git(worktree, "commit", "-q", "--allow-empty", "-m", "on the branch")
    tip = head_commit(worktree)
    git(worktree, "commit", "-q", "--allow-empty", "-m", "reset away")
    lost = head_commit(worktree)
    git(worktree, "reset", "-q", "--hard", tip)
    (worktree / "staged").write_text("staged only")
    git(worktree, "add", "staged")
    shutil.rmtree(worktree)
    path = add(worktree.name)
    assert (current_branch(path), head_commit(path)) == (BRANCH, tip)
    git(main, "merge-base", "--is-ancestor", lost, "refs/lessor/salvage/7/2/1")
    assert git(main, "show", "refs/lessor/salvage/7/2/1:staged") == "staged only"
    assert entry(repo, path).is_lessors


def test_what_was_staged_beside_a_conflict_survives_the_directory(
    add, worktree: Path, main: Path, git: Git
):
    (main / "README").write_text("theirs\n")
    git(main, "commit", "-q", "-am", "theirs")
    (worktree / "README").write_text("ours\n")
    git(worktree, "commit", "-q", "-am", "ours")
    git(worktree, "merge", "-q", "main", check=False)
    (worktree / "staged").write_text("staged only")
    git(worktree, "add", "staged")
    shutil.rmtree(worktree)
    add(worktree.name)
    assert git(main, "show", "refs/lessor/salvage/7/2/1:staged") == "staged only"


def test_an_entry_of_another_place_without_its_directory_gives_the_branch_up(
    add, worktree: Path, repo: Repository
):
    shutil.rmtree(worktree)
    path = add("elsewhere")
    assert current_branch(path) == BRANCH
    assert entry(repo, worktree).branch is None


def test_a_missing_worktree_that_somebody_else_locked_stays_registered(
    add, main: Path, repo: Repository, tmp_path: Path, git: Git
):
    path = tmp_path / "trees" / "7-2"
    git(main, "worktree", "add", "-q", "-b", "theirs", str(path))
    git(main, "worktree", "lock", "--reason", "on my USB stick", str(path))
    shutil.rmtree(path)
    with pytest.raises(WorktreeError):
        add()
    assert entry(repo, path).locked_reason == "on my USB stick"


def test_a_directory_without_its_entry_heals_with_its_files_kept(
    add, worktree: Path, repo: Repository, git: Git
):
    git(worktree, "commit", "-q", "--allow-empty", "-m", "work")
    tip = head_commit(worktree)
    (worktree / "README").write_text("edited")
    (worktree / "notes").write_text("new")
    shutil.rmtree(repo.common_dir / "worktrees" / worktree.name)
    path = add(worktree.name)
    assert (current_branch(path), head_commit(path)) == (BRANCH, tip)
    assert git(path, "status", "--porcelain") == " M README\n?? notes"
    assert entry(repo, path).locked_reason == "lessor:task=7"


def heal(repo: Repository, worktree: Path, main: Path) -> None:
    base = head_commit(main)
    heal_worktree(repo, worktree, branch="claude/7-totals", base=base, reason="task=7")


def test_healing_gives_a_directory_its_entry_back_with_its_branch_and_files(
    worktree: Path, repo: Repository, main: Path, git: Git
):
    (worktree / "README").write_text("edited")
    git(worktree, "commit", "-q", "--allow-empty", "-m", "work")
    tip = head_commit(worktree)
    shutil.rmtree(layout_of(worktree).git_dir)
    heal(repo, worktree, main)
    assert (worktree / "README").read_text() == "edited"
    assert git(worktree, "status", "--porcelain") == " M README"
    assert (head_commit(worktree), git(worktree, "branch", "--show-current")) == (
        tip,
        "claude/7-totals",
    )
    assert next(w for w in list_worktrees(repo) if w.path == worktree).is_lessors


def killed_healing(main: Path, worktree: Path, git: Git, *, has_pointer: bool) -> None:
    """What is left where git was about to be told of the directory, or had been."""
    beside = worktree.with_name(f"{worktree.name}-healed")
    shutil.rmtree(layout_of(worktree).git_dir)
    made = ("worktree", "add", "-q", "--no-checkout", "--lock", "--reason", "lessor:task=7")
    git(main, *made, str(beside), BRANCH)
    if has_pointer:
        (beside / ".git").replace(worktree / ".git")


@pytest.mark.parametrize("has_pointer", [False, True])
def test_a_healing_that_was_killed_is_gone_on_from(
    worktree: Path, repo: Repository, main: Path, git: Git, has_pointer: bool
):
    (worktree / "README").write_text("edited")
    killed_healing(main, worktree, git, has_pointer=has_pointer)
    heal(repo, worktree, main)
    assert git(worktree, "branch", "--show-current") == BRANCH
    assert git(worktree, "status", "--porcelain") == " M README"
    assert [w.path for w in list_worktrees(repo)] == [main, worktree]
    assert not worktree.with_name(f"{worktree.name}-healed").exists()


@pytest.mark.parametrize("has_pointer", [False, True])
def test_a_worktree_whose_healing_was_killed_is_made_whole_by_the_next_making(
    add, worktree: Path, repo: Repository, main: Path, git: Git, has_pointer: bool
):
    (worktree / "README").write_text("edited")
    killed_healing(main, worktree, git, has_pointer=has_pointer)
    path = add(worktree.name)
    assert git(path, "branch", "--show-current") == BRANCH
    assert git(path, "status", "--porcelain") == " M README"


def test_healing_never_takes_a_directory_with_files_for_its_own_beginning(
    worktree: Path, repo: Repository, main: Path, git: Git
):
    killed_healing(main, worktree, git, has_pointer=False)
    beside = worktree.with_name(f"{worktree.name}-healed")
    (beside / "notes").write_text("somebody's")
    with pytest.raises(GitError):
        heal(repo, worktree, main)
    assert (beside / "notes").read_text() == "somebody's"


def test_healing_takes_no_branch_from_another_worktree(
    worktree: Path, repo: Repository, main: Path, tmp_path: Path, git: Git
):
    shutil.rmtree(layout_of(worktree).git_dir)
    git(main, "worktree", "add", "-q", str(tmp_path / "other"), "claude/7-totals")
    heal(repo, worktree, main)
    assert git(worktree, "branch", "--show-current") == ""
    assert head_commit(worktree) == head_commit(main)


@pytest.mark.parametrize("left", ["nothing", "an empty file"])
def test_healing_writes_a_git_file_that_was_deleted(
    worktree: Path, repo: Repository, main: Path, left: str
):
    """An empty one is what a power cut, or a kill in the middle of its writing, leaves."""
    (worktree / "README").write_text("edited")
    entry = layout_of(worktree).git_dir
    (worktree / ".git").unlink()
    if left == "an empty file":
        (worktree / ".git").touch()
    heal(repo, worktree, main)
    assert layout_of(worktree).git_dir == entry
    assert (worktree / "README").read_text() == "edited"


def test_healing_leaves_what_is_whole_and_what_never_was_a_worktree(
    worktree: Path, repo: Repository, main: Path, tmp_path: Path
):
    with pytest.raises(WorktreeError):
        heal(repo, worktree, main)
    foreign = tmp_path / "foreign"
    foreign.mkdir()
    (foreign / "precious").write_text("precious")
    with pytest.raises(WorktreeError):
        heal(repo, foreign, main)
    assert [path.name for path in foreign.iterdir()] == ["precious"]


def test_mails_of_an_operation_half_done_are_kept_where_the_directory_is_gone(
    worktree: Path, repo: Repository, main: Path, git: Git, tmp_path: Path
):
    """They are in no commit, and a new worktree at the same place would take their entry."""
    git(main, "commit", "-q", "--allow-empty", "-m", "meanwhile")
    for n in (1, 2):
        (main / "README").write_text(f"{n}\n")
        git(main, "commit", "-q", "-am", f"mail {n}")
    mails = git(main, "format-patch", "-2", "-o", str(tmp_path / "mails")).split("\n")
    (worktree / "README").write_text("otherwise\n")
    git(worktree, "commit", "-q", "-am", "otherwise")
    git(worktree, "am", *mails, check=False)
    entry = layout_of(worktree).git_dir
    shutil.rmtree(worktree)
    with pytest.raises(WorktreeError, match="half done"):
        add_worktree(
            repo,
            path=worktree,
            branch="claude/7-totals",
            base=git(main, "merge-base", "main", "claude/7-totals"),
            task="7",
            epoch=1,
            reason="task=7",
        )
    assert (entry / "rebase-apply" / "0002").exists()


def test_forgetting_a_directory_that_is_gone_keeps_branch_and_staged_content(
    worktree: Path, repo: Repository, main: Path, git: Git
):
    (worktree / "staged").write_text("staged")
    git(worktree, "add", "staged")
    tip = head_commit(worktree)
    shutil.rmtree(worktree)
    ref = forget_worktree(repo, worktree, task="7", epoch=1)
    assert git(main, "show", f"{ref}:staged") == "staged"
    assert git(main, "rev-parse", "claude/7-totals") == tip
    assert [w.path for w in list_worktrees(repo)] == [main]


def test_a_directory_that_may_only_be_away_stays_registered(
    worktree: Path, repo: Repository, main: Path, tmp_path: Path, git: Git
):
    """Its disk isn't mounted; or it is there; or half a merge would be lost."""
    with pytest.raises(WorktreeError, match="its directory is there"):
        forget_worktree(repo, worktree, task="7", epoch=1)
    worktree.parent.rename(tmp_path / "away")
    with pytest.raises(WorktreeError, match="mounted"):
        forget_worktree(repo, worktree, task="7", epoch=1)
    (tmp_path / "away").rename(worktree.parent)
    git(worktree, "checkout", "-q", "--detach")
    git(worktree, "commit", "-q", "--allow-empty", "-m", "other")
    git(worktree, "checkout", "-q", "claude/7-totals")
    git(worktree, "merge", "-q", "--no-commit", "--no-ff", "HEAD@{1}")
    shutil.rmtree(worktree)
    with pytest.raises(WorktreeError, match="merge in progress"):
        forget_worktree(repo, worktree, task="7", epoch=1)
    assert worktree in [w.path for w in list_worktrees(repo)]


def test_an_adopted_worktree_carries_the_new_label(worktree: Path, repo: Repository):
    relock_worktree(repo, worktree, reason="task=7;epoch=2")
    assert entry(repo, worktree).locked_reason == "lessor:task=7;epoch=2"


def test_somebody_else_s_lock_is_not_replaced(
    worktree: Path, repo: Repository, main: Path, git: Git
):
    git(main, "worktree", "unlock", str(worktree))
    git(main, "worktree", "lock", "--reason", "mine", str(worktree))
    with pytest.raises(WorktreeError, match="mine"):
        relock_worktree(repo, worktree, reason="task=7;epoch=2")
    with pytest.raises(WorktreeError):
        relock_worktree(repo, main, reason="task=7;epoch=2")


def test_a_locked_worktree_whose_directory_is_away_survives_a_prune(
    worktree: Path, repo: Repository, main: Path, git: Git
):
    worktree.rename(worktree.with_name("away"))
    git(main, "worktree", "prune", "--expire=now")
    worktree.with_name("away").rename(worktree)
    assert entry(repo, worktree).branch == BRANCH


def test_worktrees_of_a_bare_repository(main: Path, tmp_path: Path, git: Git):
    git(tmp_path, "clone", "-q", "--bare", str(main), "bare.git")
    bare = find_repository(tmp_path / "bare.git")
    path = tmp_path / "trees" / "1-1"
    add_worktree(bare, path=path, branch="ai/1-x", base="main", task="1", epoch=1, reason="task=1")
    assert [found.path for found in list_worktrees(bare)] == [bare.root, path]
    assert find_repository(path) == bare
    reflog = Path(git(path, "rev-parse", "--git-path", "logs/HEAD"))
    assert reflog.is_file()
