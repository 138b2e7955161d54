"""Leftovers are committed under the label, and each commit of a lease carries it exactly once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from lessor.errors import GitError, LabelInvalidError, WorktreeError
from lessor.git.changes import commits_without_trailer
from lessor.git.commit import commit_leftovers, ensure_trailer
from lessor.git.repository import current_branch, head_commit

Git = Callable[..., str]

LABEL = "owner=claude-1;branch=claude/7-totals;env=none;task=7;epoch=1"


@pytest.fixture
def leftovers(worktree: Path) -> Callable[..., str | None]:
    def run(message: str = "round half-even", *, label: str = LABEL, author=None) -> str | None:
        return commit_leftovers(worktree, message=message, label=label, author=author)

    return run


@pytest.fixture
def label_all(worktree: Path, main: Path) -> Callable[..., str]:
    def run(*, base: str | None = None) -> str:
        return ensure_trailer(worktree, base=base or head_commit(main), label=LABEL)

    return run


def lacking(worktree: Path, base: str, *excluding: str) -> list[str]:
    text = (worktree / ".git").read_text().removeprefix("gitdir: ").strip()
    common_dir = Path(text).parent.parent
    return commits_without_trailer(
        common_dir,
        since=base,
        head=head_commit(worktree),
        key="Lessor-Label",
        value=LABEL,
        excluding=excluding,
    )


def commit(git: Git, where: Path, message: str, *options: str) -> str:
    git(where, "commit", "-q", "--allow-empty", "-m", message, *options)
    return head_commit(where)


def test_all_that_is_not_ignored_is_committed_with_the_label(leftovers, worktree: Path, git: Git):
    (worktree / "src" / "app.py").write_text("edited")
    (worktree / "README").unlink()
    (worktree / "new").mkdir()
    (worktree / "new" / "-odd name\n").write_text("x")
    (worktree / "tool").write_text("x")
    (worktree / "tool").chmod(0o755)
    (worktree / ".env").write_text("KEY=1")
    base = head_commit(worktree)
    made = leftovers()
    assert made == head_commit(worktree) == git(worktree, "rev-parse", "claude/7-totals")
    assert git(worktree, "rev-parse", "HEAD~1") == base
    assert git(worktree, "status", "--porcelain") == ""
    assert git(worktree, "ls-tree", "HEAD", "tool").startswith("100755")
    assert git(worktree, "ls-files", ".env", "README") == ""
    assert git(worktree, "log", "-1", "--format=%s%n%(trailers:key=Lessor-Label,valueonly)") == (
        f"round half-even\n{LABEL}"
    )


def test_nothing_left_makes_no_commit(leftovers, worktree: Path):
    (worktree / ".env").write_text("KEY=1")
    before = head_commit(worktree)
    assert leftovers() is None
    assert head_commit(worktree) == before


def test_a_repository_inside_is_not_committed(leftovers, worktree: Path, git: Git):
    (worktree / "inner").mkdir()
    git(worktree / "inner", "init", "-q")
    commit(git, worktree / "inner", "x")
    assert leftovers() is None
    (worktree / "note").write_text("x")
    assert leftovers() is not None
    assert git(worktree, "ls-files", "inner") == ""


def test_a_submodule_whose_directory_is_gone_is_committed_as_gone(
    submodule: str, leftovers, worktree: Path, git: Git
):
    (worktree / submodule).rmdir()
    assert leftovers() is not None
    assert git(worktree, "ls-files", submodule) == ""
    assert git(worktree, "status", "--porcelain") == ""


def test_what_a_path_became_is_committed(leftovers, worktree: Path, git: Git):
    (worktree / "README").unlink()
    (worktree / "README").mkdir()
    (worktree / "README" / "part").write_text("x")
    (worktree / "src" / "app.py").unlink()
    (worktree / "src").rmdir()
    (worktree / "src").symlink_to("README")
    assert leftovers() is not None
    assert git(worktree, "status", "--porcelain") == ""
    assert git(worktree, "ls-tree", "HEAD", "src").startswith("120000")


def test_no_hook_runs_and_nothing_is_signed(
    leftovers, worktree: Path, main: Path, tmp_path: Path, git: Git
):
    for name in ("pre-commit", "commit-msg", "post-commit", "reference-transaction"):
        hook = main / ".git" / "hooks" / name
        hook.parent.mkdir(exist_ok=True)
        hook.write_text(f"#!/bin/sh\ntouch '{tmp_path}/hook-ran'\nexit 1\n")
        hook.chmod(0o755)
    git(main, "config", "commit.gpgSign", "true")
    git(main, "config", "gpg.program", "false")
    (worktree / "new").write_text("x")
    assert leftovers() is not None
    assert not (tmp_path / "hook-ran").exists()


def test_the_author_is_who_was_named_and_the_committer_who_is_configured(
    leftovers, worktree: Path, main: Path, git: Git
):
    (worktree / "one").write_text("x")
    leftovers()
    assert git(worktree, "log", "-1", "--format=%an %ae %cn") == "Lessor lessor@localhost Lessor"
    git(main, "config", "user.name", "Ada")
    git(main, "config", "user.email", "ada@example.org")
    (worktree / "two").write_text("x")
    leftovers(author=("claude", "claude@example.org"))
    assert git(worktree, "log", "-1", "--format=%an %ae %cn") == "claude claude@example.org Ada"


def test_a_message_with_a_forged_label_carries_only_the_true_one(leftovers, worktree: Path):
    base = head_commit(worktree)
    (worktree / "new").write_text("x")
    leftovers("work\n\nCo-authored-by: A <a@b>\nLessor-Label: owner=evil\nLessor-Label: again")
    assert lacking(worktree, base) == []


@pytest.mark.parametrize(
    "message", ["", "  \n", "a\0b", "# looks like a comment", "-F /etc/passwd"]
)
def test_any_message_is_only_a_message(leftovers, worktree: Path, message: str):
    base = head_commit(worktree)
    (worktree / "new").write_text("x")
    leftovers(message)
    assert lacking(worktree, base) == []


@pytest.mark.parametrize("label", ["", "a\nb", "a\rb"])
def test_a_label_that_is_no_line_is_refused(leftovers, worktree: Path, label: str):
    before = head_commit(worktree)
    (worktree / "new").write_text("x")
    with pytest.raises(LabelInvalidError):
        leftovers(label=label)
    assert head_commit(worktree) == before


def test_a_merge_in_progress_is_refused(leftovers, label_all, worktree: Path, main: Path, git: Git):
    commit(git, main, "theirs")
    commit(git, worktree, "ours")
    git(worktree, "merge", "-q", "--no-commit", "--no-ff", "main")
    before = head_commit(worktree)
    for refused in (leftovers, label_all):
        with pytest.raises(GitError, match="merge is in progress"):
            refused()
    assert head_commit(worktree) == before


def test_an_unresolved_conflict_is_refused(leftovers, worktree: Path, git: Git):
    (worktree / "README").write_text("stashed\n")
    git(worktree, "stash", "-q")
    (worktree / "README").write_text("committed\n")
    git(worktree, "commit", "-q", "-am", "other")
    git(worktree, "stash", "pop", "-q", check=False)
    with pytest.raises(GitError, match="conflict"):
        leftovers()


def test_a_detached_head_is_refused(leftovers, label_all, worktree: Path, git: Git):
    git(worktree, "checkout", "-q", "--detach")
    (worktree / "new").write_text("x")
    for refused in (leftovers, label_all):
        with pytest.raises(GitError, match="HEAD"):
            refused()


def test_commits_with_the_label_stay_as_they_are(label_all, leftovers, worktree: Path):
    (worktree / "new").write_text("x")
    made = leftovers()
    assert label_all() == made


def test_commits_without_the_label_get_it_once_and_keep_all_else(
    label_all, worktree: Path, main: Path, git: Git
):
    base = head_commit(main)
    (worktree / "README").write_text("edited\n")
    commit(
        git,
        worktree,
        "first\n\nbody",
        "-a",
        "--author=Ada <a@b>",
        "--date=2001-02-03T04:05:06+07:00",
    )
    commit(git, worktree, f"second\n\nCo-authored-by: A <a@b>\nLessor-Label: {LABEL}")
    commit(git, worktree, "third\n\nLessor-Label: owner=old;epoch=0")
    (worktree / "left").write_text("untouched")
    shown = "--format=%an|%ae|%ad|%cn|%cd|%T|%s"
    before = git(worktree, "log", shown, f"{base}..HEAD")
    head = label_all()
    assert head == head_commit(worktree) == git(main, "rev-parse", "claude/7-totals")
    assert lacking(worktree, base) == []
    assert git(worktree, "log", shown, f"{base}..HEAD") == before
    assert git(worktree, "status", "--porcelain") == "?? left"
    assert "body" in git(worktree, "log", "-1", "--format=%b", "HEAD~2")
    assert label_all() == head


def test_a_message_in_another_encoding_keeps_its_bytes(
    label_all, worktree: Path, main: Path, git: Git
):
    base = head_commit(main)
    git(
        worktree,
        *("-c", "i18n.commitEncoding=iso-8859-1", "commit", "-q", "--allow-empty", "-F", "-"),
        stdin=b"caf\xe9",
    )
    label_all()
    assert lacking(worktree, base) == []
    raw = git(worktree, "cat-file", "commit", "HEAD")
    assert "encoding iso-8859-1" in raw
    assert raw.encode(errors="surrogateescape").count(b"caf\xe9\n") == 1


def test_merges_keep_both_sides_and_the_target_s_commits_stay(
    label_all, worktree: Path, main: Path, git: Git
):
    base = head_commit(main)
    theirs = commit(git, main, "theirs")
    commit(git, worktree, "ours")
    git(worktree, "checkout", "-q", "-b", "side")
    commit(git, worktree, "on the side")
    git(worktree, "checkout", "-q", "claude/7-totals")
    git(worktree, "merge", "-q", "--no-ff", "--no-edit", "side")
    git(worktree, "branch", "-q", "-D", "side")
    git(worktree, "merge", "-q", "--no-edit", "main")
    label_all(base=base)
    assert lacking(worktree, base, "main") == []
    assert git(worktree, "rev-parse", "HEAD^2") == theirs == head_commit(main)
    subjects = git(worktree, "log", "--topo-order", "--format=%s", f"{base}..HEAD", "--not", "main")
    assert subjects.split("\n") == [
        "Merge branch 'main' into claude/7-totals",
        "Merge branch 'side' into claude/7-totals",
        "on the side",
        "ours",
    ]


def test_a_pushed_branch_still_gets_the_label(label_all, worktree: Path, main: Path, git: Git):
    base = head_commit(main)
    commit(git, worktree, "pushed")
    git(main, "update-ref", "refs/remotes/origin/claude/7-totals", head_commit(worktree))
    label_all()
    assert lacking(worktree, base) == []


def test_a_branch_without_commits_of_its_own_stays(label_all, worktree: Path, main: Path, git: Git):
    base = head_commit(main)
    theirs = commit(git, main, "theirs")
    git(worktree, "merge", "-q", "--ff-only", "main")
    assert label_all(base=base) == theirs


def test_a_worktree_that_lessor_did_not_make_keeps_its_commits(main: Path, git: Git):
    base = head_commit(main)
    mine = commit(git, main, "mine")
    with pytest.raises(WorktreeError):
        ensure_trailer(main, base=base, label=LABEL)
    assert head_commit(main) == mine
    assert current_branch(main) == "main"


def test_a_file_that_only_differs_in_case_is_committed_whatever_the_configuration_says(
    worktree: Path, main: Path, git: Git
):
    git(main, "config", "core.ignoreCase", "true")
    (worktree / "readme").write_text("another file")
    if (worktree / "README").read_text() == "another file":
        pytest.skip("this file system takes both for one file")
    commit_leftovers(worktree, message="work", label=LABEL, author=None)
    assert git(worktree, "show", "HEAD:readme") == "another file"
    assert git(worktree, "show", "HEAD:README") == "the shop"
