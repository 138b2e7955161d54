"""A branch moves forward with whoever has it checked out, and nothing in that checkout is lost."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from pathlib import Path

import pytest

from lessor.errors import ConflictError, GitError
from lessor.git.advance import advance
from lessor.git.refs import landing_ref, put_ref
from lessor.git.repository import Repository, find_repository, head_commit

Git = Callable[..., str]


def landing(git: Git, worktree: Path, **files: str) -> str:
    """A commit on the worktree's branch with `files`, ignored ones too."""
    for path, text in files.items():
        (worktree / path).write_text(text)
    git(worktree, "add", "--force", "-A")
    git(worktree, "commit", "-q", "-m", "result")
    return head_commit(worktree)


def test_a_checkout_follows(repo: Repository, main: Path, worktree: Path, git: Git):
    old, new = head_commit(main), landing(git, worktree, README="theirs\n")
    assert advance(repo, branch="main", old=old, new=new)
    assert (main / "README").read_text() == "theirs\n"


@pytest.mark.parametrize("kind", ["submodule", "git directory elsewhere"])
def test_a_checkout_whose_git_directory_lies_elsewhere_follows(
    main: Path, tmp_path: Path, git: Git, kind: str
):
    """Git lists such a repository's main worktree by its git directory."""
    place, around = tmp_path / "around" / "lib", tmp_path / "around"
    if kind == "submodule":
        git(tmp_path, "init", "-q", str(around))
        allowed = ("-c", "protocol.file.allow=always")
        git(around, *allowed, "submodule", "add", "-q", "-b", "main", str(main), "lib")
    else:
        git(
            tmp_path,
            "clone",
            "-q",
            f"--separate-git-dir={tmp_path / 'store'}",
            str(main),
            str(place),
        )
    repo = find_repository(place)
    old = head_commit(place)
    git(place, "worktree", "add", "-q", "-b", "work", str(tmp_path / "work"))
    new = landing(git, tmp_path / "work", README="theirs\n")
    (place / "README").write_text("mine\n")
    with pytest.raises(ConflictError, match="uncommitted"):
        advance(repo, branch="main", old=old, new=new)
    git(place, "checkout", "-q", "--", ".")
    assert advance(repo, branch="main", old=old, new=new)
    assert (place / "README").read_text() == "theirs\n"


def test_an_ignored_file_of_the_persons_is_never_written_over(
    repo: Repository, main: Path, worktree: Path, git: Git
):
    (main / ".env").write_text("KEY=mine\n")
    old, new = head_commit(main), landing(git, worktree, **{".env": "KEY=theirs\n"})
    with pytest.raises(ConflictError, match=r"\.env"):
        advance(repo, branch="main", old=old, new=new)
    assert (main / ".env").read_text() == "KEY=mine\n"
    assert head_commit(main) == old


def test_an_ignored_directory_of_the_persons_is_never_taken_for_a_file(
    repo: Repository, main: Path, worktree: Path, git: Git
):
    (main / "build").mkdir()
    (main / "build" / "notes").write_text("mine\n")
    old, new = head_commit(main), landing(git, worktree, build="a file\n")
    with pytest.raises(ConflictError, match="build"):
        advance(repo, branch="main", old=old, new=new)
    assert (main / "build" / "notes").read_text() == "mine\n"
    assert head_commit(main) == old


def test_a_checkout_that_changes_its_branch_meanwhile_is_not_taken_for_a_landing(
    repo: Repository, main: Path, worktree: Path, git: Git
):
    """Git moves the branch that HEAD is on at its end; a filter is where another one can come in."""
    git(main, "branch", "other")
    old, new = head_commit(main), landing(git, worktree, **{".gitattributes": "* filter=away\n"})
    new = landing(git, worktree, README="theirs\n")
    away = (
        f"cat; git --git-dir={shlex.quote(str(repo.common_dir))} symbolic-ref HEAD refs/heads/other"
    )
    git(main, "config", "filter.away.smudge", f"env -u GIT_INDEX_FILE sh -c {shlex.quote(away)}")
    with pytest.raises(ConflictError, match="other"):
        advance(repo, branch="main", old=old, new=new)
    assert git(main, "rev-parse", "refs/heads/main") == old


def test_a_branch_that_a_checkout_has_whose_directory_is_away_is_not_moved(
    repo: Repository, main: Path, worktree: Path, git: Git, tmp_path: Path
):
    """When its disk is mounted again, all that landed would look undone there."""
    git(main, "branch", "release")
    git(main, "worktree", "add", "-q", str(tmp_path / "stick"), "release")
    (tmp_path / "stick").rename(tmp_path / "unmounted")
    old, new = head_commit(main), landing(git, worktree, README="theirs\n")
    with pytest.raises(ConflictError, match="stick"):
        advance(repo, branch="release", old=old, new=new)
    assert git(main, "rev-parse", "release") == old
    git(main, "worktree", "prune")
    assert advance(repo, branch="release", old=old, new=new)


@pytest.mark.parametrize("option", ["--squash", "--verify-signatures", "--no-ff"])
def test_the_person_s_options_for_merges_hold_for_merges_alone(
    repo: Repository, main: Path, worktree: Path, git: Git, option: str
):
    """With `--squash` git would write the files, and leave the branch where it is."""
    git(main, "config", "branch.main.mergeOptions", option)
    git(main, "config", "merge.verifySignatures", "true")
    old, new = head_commit(main), landing(git, worktree, README="theirs\n")
    assert advance(repo, branch="main", old=old, new=new)
    assert head_commit(main) == new
    assert git(main, "status", "--porcelain") == ""


@pytest.fixture
def cut_short(main: Path, repo: Repository, worktree: Path, git: Git) -> tuple[str, str]:
    """A landing whose git was killed in the middle; where the branch is, and where it was to go."""
    (worktree / "src" / "app.py").write_text("theirs\n")
    old = head_commit(main)
    new = landing(git, worktree, README="theirs\n", **{"new file": "theirs\n"})
    put_ref(repo.common_dir, landing_ref("task_7"), new)
    (main / "new file").write_text("theirs\n")
    return old, new


@pytest.mark.parametrize("begun", ["a new file alone", "a changed one", "one that was taken away"])
def test_what_a_landing_that_was_killed_left_is_told_from_work(
    repo: Repository, main: Path, git: Git, cut_short: tuple[str, str], begun: str
):
    old, new = cut_short
    if begun != "a new file alone":
        (main / "README").write_text("theirs\n")
    if begun == "one that was taken away":
        (main / "src" / "app.py").unlink()
    with pytest.raises(ConflictError, match="was cut short") as refusal:
        advance(repo, branch="main", old=old, new=new)
    command = refusal.value.next_step.partition("git -C ")[2].partition(". Then")[0]
    place, *put_aside = shlex.split(command)
    git(Path(place), *put_aside)
    assert advance(repo, branch="main", old=old, new=new)
    assert git(main, "status", "--porcelain") == ""


def test_work_is_never_called_what_a_landing_left(
    repo: Repository, main: Path, cut_short: tuple[str, str]
):
    old, new = cut_short
    (main / "new file").write_text("mine\n")
    (main / "README").write_text("mine\n")
    with pytest.raises(ConflictError, match=r"uncommitted changes \(README\)"):
        advance(repo, branch="main", old=old, new=new)


def test_what_is_no_file_in_the_way_is_told_in_git_s_words(
    repo: Repository, main: Path, worktree: Path, git: Git
):
    old, new = head_commit(main), landing(git, worktree, README="theirs\n")
    (main / ".git" / "index.lock").touch()
    with pytest.raises(GitError, match=r"index\.lock") as refusal:
        advance(repo, branch="main", old=old, new=new)
    assert "remove that file" in refusal.value.next_step
    assert not isinstance(refusal.value, ConflictError)
