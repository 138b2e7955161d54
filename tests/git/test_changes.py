"""Every path that was touched between base and head is found, and only the worker's own."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from lessor.errors import GitError
from lessor.git.changes import (
    FileChange,
    Touch,
    commits_without_trailer,
    diff_summary,
    has_changes,
    pushed_touches,
    touched_paths,
    touches,
)

Git = Callable[..., str]


@pytest.fixture
def touched(main: Path, worktree: Path) -> Callable[..., tuple[str, ...]]:
    def run(base: str = "main", *, excluding: tuple[str, ...] = ()) -> tuple[str, ...]:
        return touched_paths(main / ".git", base, "claude/7-totals", excluding=excluding)

    return run


@pytest.fixture
def commit(worktree: Path, git: Git) -> Callable[..., str]:
    """Commits all there is in the worktree (or where given); the commit's id."""

    def run(message: str = "work", *, where: Path | None = None) -> str:
        git(where or worktree, "add", "-A")
        git(where or worktree, "commit", "-q", "--allow-empty", "-m", message)
        return git(where or worktree, "rev-parse", "HEAD")

    return run


def test_nothing_touched_is_nothing(touched, commit):
    assert touched() == ()
    commit()
    assert touched() == ()


def test_edits_additions_and_deletions_count(touched, commit, worktree: Path):
    (worktree / "src" / "app.py").write_text("edited")
    (worktree / "new.py").write_text("x")
    (worktree / "README").unlink()
    commit()
    assert touched() == ("README", "new.py", "src/app.py")


def test_a_rename_counts_on_both_sides(touched, commit, worktree: Path):
    (worktree / "moved").mkdir()
    (worktree / "src" / "app.py").rename(worktree / "moved" / "app.py")
    commit()
    assert touched() == ("moved/app.py", "src/app.py")


def test_modes_and_links_count(touched, commit, worktree: Path):
    (worktree / "run.sh").chmod(0o644)
    (worktree / "link").unlink()
    (worktree / "link").symlink_to("run.sh")
    (worktree / "README").unlink()
    (worktree / "README").symlink_to("link")
    commit()
    assert touched() == ("README", "link", "run.sh")


def test_a_submodule_s_commit_counts_whatever_the_configuration_hides(
    submodule: str, touched, commit, worktree: Path, main: Path, git: Git
):
    git(worktree, "submodule", "update", "-q", "--init")
    git(worktree / submodule, "commit", "-q", "--allow-empty", "-m", "work")
    commit()
    git(main, "config", "diff.ignoreSubmodules", "all")
    git(main, "config", "submodule.parts.ignore", "all")
    assert touched() == (submodule,)


def test_what_was_added_and_undone_again_counts(touched, commit, worktree: Path, main: Path):
    (worktree / "secret").write_text("x")
    commit()
    (worktree / "secret").unlink()
    commit()
    assert touched() == ("secret",)
    assert not has_changes(main / ".git", "main", "claude/7-totals")


def test_names_come_as_they_are(touched, commit, worktree: Path):
    names = [os.fsdecode(b"caf\xe9\n"), 'a "b"\\', ":100644 x", "é", "a" * 40]
    for name in names:
        (worktree / name).write_text("x")
    commit()
    assert touched() == tuple(sorted(names))


def test_each_path_is_told_with_its_commits(commit, main: Path, worktree: Path):
    (worktree / "a").write_text("1")
    first = commit()
    (worktree / "a").write_text("2")
    (worktree / "b").write_text("2")
    second = commit()
    found = touches(main / ".git", "main", "claude/7-totals")
    expected = [(path, oid) for path, oid in (("a", first), ("a", second), ("b", second))]
    assert found == tuple(sorted(Touch(path=path, commit=oid) for path, oid in expected))


def test_merging_the_target_does_not_count_what_the_target_changed(
    touched, commit, worktree: Path, main: Path, git: Git
):
    base = git(main, "rev-parse", "main")
    (main / "theirs").write_text("x")
    commit(where=main)
    (worktree / "ours").write_text("x")
    commit()
    git(worktree, "merge", "-q", "--no-edit", "main")
    assert touched(base, excluding=("main",)) == ("ours",)
    assert touched(base) == ("ours", "theirs")


def test_an_edit_hidden_in_a_merge_counts(touched, commit, worktree: Path, main: Path, git: Git):
    base = git(main, "rev-parse", "main")
    (main / "theirs").write_text("x")
    commit(where=main)
    commit()
    git(worktree, "merge", "-q", "--no-commit", "--no-ff", "main")
    (worktree / "evil").write_text("x")
    commit()
    assert touched(base, excluding=("main",)) == ("evil",)


def test_a_merge_whose_clock_was_behind_is_judged_as_a_merge(
    touched, commit, worktree: Path, main: Path, git: Git, monkeypatch: pytest.MonkeyPatch
):
    """Git, going by dates, would show its parent first, and then not know where that came from."""
    base = git(main, "rev-parse", "main")
    (main / "README").write_text("theirs\n")
    commit(where=main)
    (worktree / "ours").write_text("x")
    own = commit()
    monkeypatch.setenv("GIT_COMMITTER_DATE", "2001-01-01T00:00:00Z")
    git(worktree, "merge", "-q", "--no-edit", "main")
    merge = git(worktree, "rev-parse", "HEAD")
    monkeypatch.delenv("GIT_COMMITTER_DATE")
    git(worktree, "reset", "-q", "--hard", own)
    (worktree / "later").write_text("x")
    commit()
    git(worktree, "merge", "-q", "--no-edit", merge)
    assert touched(base, excluding=("main",)) == ("later", "ours")


def test_a_merge_that_drops_the_other_side_counts(
    touched, commit, worktree: Path, main: Path, git: Git
):
    base = git(main, "rev-parse", "main")
    (main / "theirs").write_text("x")
    commit(where=main)
    commit()
    git(worktree, "merge", "-q", "--no-edit", "-s", "ours", "main")
    assert touched(base, excluding=("main",)) == ("theirs",)


def test_a_resolved_conflict_counts(touched, commit, worktree: Path, main: Path, git: Git):
    base = git(main, "rev-parse", "main")
    (main / "README").write_text("theirs\n")
    commit(where=main)
    commit()
    git(worktree, "merge", "-q", "--no-commit", "main", check=False)
    (worktree / "README").write_text("resolved\n")
    commit()
    assert touched(base, excluding=("main",)) == ("README",)


def test_a_merge_of_three_counts_every_difference_to_any_parent(
    touched, commit, worktree: Path, main: Path, git: Git
):
    base = git(main, "rev-parse", "main")
    for name in ("one", "two"):
        git(main, "checkout", "-q", "-b", name, base)
        (main / name).write_text("x")
        commit(where=main)
    git(main, "checkout", "-q", "main")
    commit()
    git(worktree, "merge", "-q", "--no-edit", "one", "two")
    assert len(git(worktree, "log", "-1", "--format=%P").split()) == 3
    assert touched(base, excluding=("one", "two")) == ("one", "two")


def test_a_branch_that_left_its_base_behind_counts_what_it_lacks(
    touched, commit, worktree: Path, git: Git
):
    git(worktree, "reset", "-q", "--hard", "HEAD~1")
    (worktree / "other").write_text("x")
    commit()
    assert touched() == ("README", "other")


def test_the_reader_s_configuration_hides_nothing(
    touched, commit, worktree: Path, main: Path, tmp_path: Path, git: Git
):
    (worktree / "src" / "app.py").rename(worktree / "app.py")
    commit()
    tree = git(main, "rev-parse", "main^{tree}")
    root = git(main, "commit-tree", tree, "-m", "a root of its own")
    for key, value in {
        "log.showRoot": "false",
        "log.showSignature": "true",
        "log.diffMerges": "off",
        "diff.renames": "copies",
        "diff.relative": "true",
        "diff.orderFile": str(tmp_path / "nowhere"),
        "diff.external": "false",
        "color.ui": "always",
    }.items():
        git(main, "config", key, value)
    assert touched() == ("app.py", "src/app.py")
    assert "README" in touched_paths(main / ".git", "main", root)


def test_looking_at_merges_leaves_no_objects(touched, commit, worktree: Path, main: Path, git: Git):
    (main / "README").write_text("theirs\n")
    commit(where=main)
    (worktree / "README").write_text("ours\n")
    commit()
    git(worktree, "merge", "-q", "main", check=False)
    commit()
    before = git(main, "count-objects", "-v")
    assert "README" in touched("main~1")
    assert git(main, "count-objects", "-v") == before


def test_a_push_of_many_commits_and_merges_is_judged_by_as_few_processes_as_one_of_one(
    commit, worktree: Path, main: Path, git: Git, processes: Callable[[], int]
):
    """A process for each commit would make a large push wait for seconds, under the remote's locks."""

    def started() -> int:
        before = processes()
        head = git(worktree, "rev-parse", "HEAD")
        known = [git(main, "rev-parse", "main")]
        here = processes()
        assert pushed_touches(main / ".git", head, known=known, target=known[0], env={})
        assert here > before
        return processes() - here

    (worktree / "file").write_text("first")
    commit()
    few = started()
    for n in range(12):
        (worktree / f"file{n}").write_text("x")
        commit()
        (main / f"theirs{n}").write_text("x")
        commit(where=main)
        git(worktree, "merge", "-q", "--no-edit", "main")
    assert started() == few


def test_a_missing_base_is_refused(main: Path, worktree: Path):
    for function in (touched_paths, diff_summary, has_changes):
        with pytest.raises(GitError):
            function(main / ".git", "0" * 39 + "1", "claude/7-totals")


def test_the_summary_counts_lines_and_names_binaries(commit, worktree: Path, main: Path):
    (worktree / "src" / "app.py").write_text("one\nTWO\nthree\nfour\n")
    (worktree / "logo").write_bytes(b"\0\1")
    (worktree / "README").unlink()
    commit()
    assert diff_summary(main / ".git", "main", "claude/7-totals") == (
        FileChange(path="README", added=0, removed=1),
        FileChange(path="logo", added=None, removed=None),
        FileChange(path="src/app.py", added=2, removed=1),
    )


@pytest.mark.parametrize(
    ("message", "carries"),
    [
        ("work\n\nLessor-Label: x", True),
        ("work\n\nCo-authored-by: A <a@b>\nlessor-label: x", True),
        ("work", False),
        ("work\n\nLessor-Label: y", False),
        ("work\n\nLessor-Label: x\nLessor-Label: x", False),
        ("work\n\nLessor-Label: x\n\nand more text", False),
    ],
)
def test_the_trailer_counts_once_and_in_its_place(commit, main: Path, message: str, carries: bool):
    oid = commit(message)
    lacking = commits_without_trailer(
        main / ".git", since="main", head="claude/7-totals", key="Lessor-Label", value="x"
    )
    assert lacking == ([] if carries else [oid])


def test_a_target_that_was_merged_in_needs_no_trailer(commit, worktree: Path, main: Path, git: Git):
    base = git(main, "rev-parse", "main")
    commit("theirs", where=main)
    commit("ours\n\nLessor-Label: x")
    git(worktree, "merge", "-q", "-m", "merge\n\nLessor-Label: x", "main")
    lacking = commits_without_trailer(
        main / ".git",
        since=base,
        head="claude/7-totals",
        key="Lessor-Label",
        value="x",
        excluding=("main",),
    )
    assert lacking == []
