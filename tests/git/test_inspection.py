"""The inspection is right where `git worktree remove` is wrong."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from git_rig import bury, nobody

from lessor.git.inspection import Inspection, Verdict, inspect_worktree, take_snapshot
from lessor.git.repository import Repository, head_commit
from lessor.git.worktree import detach_head

Git = Callable[..., str]


@pytest.fixture
def look(worktree: Path, main: Path) -> Callable[[], Inspection]:
    """Inspects the worktree against its base, with the snapshot of a setup that made nothing."""
    base = head_commit(main)
    return lambda: inspect_worktree(worktree, base=base, snapshot={}, occupants=nobody)


def test_an_untouched_worktree_is_empty(look):
    found = look()
    assert found.verdict is Verdict.EMPTY
    assert (found.reasons, found.commits, found.dirty) == ((), (), ())
    assert found.branch == "claude/7-totals"


def test_commits_on_the_branch_are_kept(look, worktree: Path, git: Git):
    (worktree / "new.py").write_text("x")
    git(worktree, "add", "new.py")
    git(worktree, "commit", "-q", "-m", "work")
    found = look()
    assert found.verdict is Verdict.KEPT
    assert found.commits == (head_commit(worktree),)
    assert found.head == head_commit(worktree)


def test_an_untracked_file_holds_work(look, worktree: Path):
    (worktree / "notes.txt").write_text("x")
    found = look()
    assert found.verdict is Verdict.HOLDS_WORK
    assert found.dirty == ("notes.txt",)


def test_a_modified_file_holds_work(look, worktree: Path):
    (worktree / "README").write_text("changed")
    assert (look().verdict, look().dirty) == (Verdict.HOLDS_WORK, ("README",))


def test_a_staged_file_holds_work(look, worktree: Path, git: Git):
    (worktree / "README").write_text("changed")
    git(worktree, "add", "README")
    assert look().verdict is Verdict.HOLDS_WORK


def test_a_deleted_file_holds_work(look, worktree: Path):
    (worktree / "README").unlink()
    assert look().verdict is Verdict.HOLDS_WORK


def test_a_changed_mode_holds_work(look, worktree: Path):
    (worktree / "README").chmod(0o755)
    assert look().verdict is Verdict.HOLDS_WORK


def test_a_conflict_holds_work(look, worktree: Path, main: Path, git: Git):
    (main / "README").write_text("theirs\n")
    git(main, "commit", "-q", "-am", "theirs")
    (worktree / "README").write_text("ours\n")
    git(worktree, "commit", "-q", "-am", "ours")
    git(worktree, "merge", "main", check=False)
    found = look()
    assert found.verdict is Verdict.HOLDS_WORK
    assert "merge in progress" in found.reasons


@pytest.mark.parametrize("path", [".env", "build/out/report.html", "debug.log", "vendor/lib.py"])
def test_an_ignored_file_that_setup_did_not_make_holds_work(look, worktree: Path, path: str):
    (worktree / path).parent.mkdir(parents=True, exist_ok=True)
    (worktree / path).write_text("bytes")
    found = look()
    assert found.verdict is Verdict.HOLDS_WORK
    assert found.dirty == (path,)


def test_an_ignored_file_from_setup_is_no_work_until_it_changes(worktree: Path):
    (worktree / ".env").write_text("KEY=1")
    (worktree / "build").mkdir()
    (worktree / "build" / "cache.bin").write_bytes(b"\0" * 100)
    snapshot = take_snapshot(worktree)
    base = head_commit(worktree)
    assert (
        inspect_worktree(worktree, base=base, snapshot=snapshot, occupants=nobody).verdict
        is Verdict.EMPTY
    )
    (worktree / ".env").write_text("KEY=12")
    found = inspect_worktree(worktree, base=base, snapshot=snapshot, occupants=nobody)
    assert (found.verdict, found.dirty) == (Verdict.HOLDS_WORK, (".env",))


def test_dependencies_and_caches_are_no_work(look, worktree: Path):
    for path in ("node_modules/a/index.js", "src/__pycache__/app.pyc"):
        (worktree / path).parent.mkdir(parents=True, exist_ok=True)
        (worktree / path).write_text("made again")
    tagged = worktree / "build"
    tagged.mkdir()
    (tagged / "CACHEDIR.TAG").write_bytes(b"Signature: 8a477f597d28d172789f06886806bc55\n")
    (tagged / "object.o").write_text("made again")
    venv = worktree / "vendor" / "env"
    venv.mkdir(parents=True)
    (venv / "pyvenv.cfg").write_text("home = /usr")
    assert look().verdict is Verdict.EMPTY


def test_ignored_files_inside_a_cache_that_git_tracks_are_no_work(look, worktree: Path, git: Git):
    (worktree / "lib" / "build").mkdir(parents=True)
    (worktree / "lib" / "pyvenv.cfg").write_text("home = /usr")
    git(worktree, "add", "lib")
    git(worktree, "commit", "-q", "-m", "an environment, tracked")
    (worktree / "lib" / "build" / "object.o").write_text("made again")
    (worktree / "lib" / "install.log").write_text("made again")
    assert look().verdict is Verdict.KEPT


def test_a_repository_inside_an_ignored_directory_holds_work(look, worktree: Path, git: Git):
    inner = worktree / "node_modules" / "fork"
    inner.mkdir(parents=True)
    git(inner, "init", "-q")
    (inner / "fix.js").write_text("fix")
    git(inner, "add", "-A")
    git(inner, "commit", "-q", "-m", "fix")
    found = look()
    assert found.verdict is Verdict.HOLDS_WORK
    assert "node_modules/fork/fix.js" in found.dirty


def test_a_commit_in_a_repository_that_setup_cloned_holds_work(worktree: Path, git: Git):
    inner = worktree / "vendor" / "fork"
    inner.mkdir(parents=True)
    git(inner, "init", "-q")
    snapshot = take_snapshot(worktree)
    base = head_commit(worktree)
    assert (
        inspect_worktree(worktree, base=base, snapshot=snapshot, occupants=nobody).verdict
        is Verdict.EMPTY
    )
    git(inner, "commit", "-q", "--allow-empty", "-m", "work")
    found = inspect_worktree(worktree, base=base, snapshot=snapshot, occupants=nobody)
    assert found.verdict is Verdict.HOLDS_WORK


def test_an_untracked_repository_holds_work(look, worktree: Path, git: Git):
    (worktree / "inner").mkdir()
    git(worktree / "inner", "init", "-q")
    assert look().verdict is Verdict.HOLDS_WORK


def test_hiding_untracked_files_by_configuration_hides_nothing(
    look, worktree: Path, main: Path, git: Git
):
    git(main, "config", "status.showUntrackedFiles", "no")
    (worktree / "notes.txt").write_text("x")
    assert look().verdict is Verdict.HOLDS_WORK


@pytest.mark.parametrize("flag", ["--assume-unchanged", "--skip-worktree"])
def test_an_edit_that_git_was_told_not_to_see_holds_work(look, worktree: Path, git: Git, flag: str):
    git(worktree, "update-index", flag, "README")
    assert look().verdict is Verdict.EMPTY
    (worktree / "README").write_text("hidden")
    found = look()
    assert (found.verdict, found.dirty) == (Verdict.HOLDS_WORK, ("README",))


def strip_outputs(main: Path, git: Git, take_out: str = "sed /OUTPUT/d") -> None:
    """A filter of the person's, as for notebooks: what was computed goes into no commit."""
    git(main, "config", "filter.strip.clean", take_out)
    git(main, "config", "filter.strip.smudge", "cat")
    (main / ".git" / "info" / "attributes").write_text("*.nb filter=strip\n")


def test_what_a_filter_takes_out_of_a_file_holds_work(look, worktree: Path, main: Path, git: Git):
    strip_outputs(main, git)
    (worktree / "a.nb").write_text("code\nOUTPUT\n")
    (worktree / "b.nb").write_text("code\n")
    git(worktree, "add", ".")
    git(worktree, "commit", "-q", "-m", "notebooks")
    assert git(worktree, "status", "--short") == ""
    found = look()
    assert (found.verdict, found.dirty) == (Verdict.HOLDS_WORK, ("a.nb",))
    (worktree / "a.nb").write_text("code\n")
    git(worktree, "add", ".")
    assert look().verdict is Verdict.KEPT


def test_what_git_takes_out_of_a_keyword_holds_work(look, worktree: Path, git: Git):
    (worktree / ".gitattributes").write_text("*.py ident\n")
    (worktree / "a.py").write_text("# $Id$\n")
    (worktree / "b.py").write_text("# $Id$\n")
    git(worktree, "add", ".")
    git(worktree, "commit", "-q", "-m", "keywords")
    assert look().verdict is Verdict.KEPT
    (worktree / "b.py").write_text(f"# $Id: {'1' * 40} $\n")  # of what was checked out before
    (worktree / "a.py").write_text("# $Id: notes $\n")
    git(worktree, "add", ".")
    assert git(worktree, "status", "--short") == ""
    found = look()
    assert (found.verdict, found.dirty) == (Verdict.HOLDS_WORK, ("a.py",))


def test_a_filter_that_fails_leaves_it_unknown(look, worktree: Path, main: Path, git: Git):
    strip_outputs(main, git)
    (worktree / "a.nb").write_text("code\n")
    git(worktree, "add", ".")
    git(worktree, "commit", "-q", "-m", "notebook")
    git(main, "config", "filter.strip.required", "true")
    git(main, "config", "filter.strip.smudge", "false")
    assert look().verdict is Verdict.UNKNOWN


def test_a_changed_mode_holds_work_whatever_the_configuration_says(
    look, worktree: Path, main: Path, git: Git
):
    git(main, "config", "core.fileMode", "false")
    assert look().verdict is Verdict.EMPTY
    (worktree / "README").chmod(0o755)
    found = look()
    assert (found.verdict, found.dirty) == (Verdict.HOLDS_WORK, ("README",))
    (worktree / ".git").chmod(0o755)  # as on a file system that tells no modes apart
    assert look().verdict is Verdict.EMPTY


def test_an_edit_of_the_same_length_with_its_old_time_put_back_holds_work(
    look, worktree: Path, main: Path, git: Git
):
    """Whatever the shared configuration says that git may trust."""
    git(main, "config", "core.trustctime", "false")
    git(main, "config", "core.checkStat", "minimal")
    before = (worktree / "README").stat()
    git(worktree, "status")
    text = (worktree / "README").read_text()
    (worktree / "README").write_text(text.swapcase())
    os.utime(worktree / "README", ns=(before.st_atime_ns, before.st_mtime_ns))
    assert look().reasons == ("uncommitted: README",)


def test_a_file_outside_of_a_sparse_cone_holds_work(look, worktree: Path, main: Path, git: Git):
    """Also where git was told to expect such files, and says nothing of them."""
    git(main, "config", "sparse.expectFilesOutsideOfPatterns", "true")
    git(worktree, "sparse-checkout", "set", "docs")
    (worktree / "src").mkdir(exist_ok=True)
    (worktree / "src" / "app.py").write_text("edited outside of the cone")
    assert git(worktree, "status", "--porcelain") == ""
    found = look()
    assert found.verdict is Verdict.HOLDS_WORK
    assert found.dirty == ("src/app.py",)


def test_a_sparse_worktree_is_empty_without_its_missing_files(look, worktree: Path, git: Git):
    git(worktree, "sparse-checkout", "set", "--no-cone", "src/")
    assert not (worktree / "README").exists()
    assert look().verdict is Verdict.EMPTY


def test_a_commit_on_a_detached_head_holds_work(look, worktree: Path, git: Git):
    git(worktree, "checkout", "-q", "--detach")
    git(worktree, "commit", "-q", "--allow-empty", "-m", "adrift")
    found = look()
    assert found.verdict is Verdict.HOLDS_WORK
    assert head_commit(worktree)[:12] in found.reasons[0]


def test_a_detached_head_on_a_kept_commit_is_kept(look, worktree: Path, git: Git):
    git(worktree, "commit", "-q", "--allow-empty", "-m", "work")
    detach_head(worktree)
    found = look()
    assert (found.verdict, found.branch) == (Verdict.KEPT, None)


def test_a_detached_head_that_only_a_remote_reference_keeps_holds_work(
    look, worktree: Path, main: Path, git: Git
):
    git(worktree, "checkout", "-q", "--detach")
    git(worktree, "commit", "-q", "--allow-empty", "-m", "pushed once")
    git(main, "update-ref", "refs/remotes/origin/x", head_commit(worktree))
    assert look().verdict is Verdict.HOLDS_WORK


def test_a_commit_that_was_reset_away_holds_work(look, worktree: Path, git: Git):
    git(worktree, "commit", "-q", "--allow-empty", "-m", "work")
    git(worktree, "reset", "-q", "--hard", "HEAD~1")
    assert look().verdict is Verdict.HOLDS_WORK


def test_a_commit_that_was_amended_holds_work(look, worktree: Path, git: Git):
    git(worktree, "commit", "-q", "--allow-empty", "-m", "work")
    git(worktree, "commit", "-q", "--allow-empty", "--amend", "-m", "better")
    assert look().verdict is Verdict.HOLDS_WORK


def test_a_commit_in_a_reference_of_the_worktree_alone_holds_work(look, worktree: Path, git: Git):
    tree = git(worktree, "rev-parse", "HEAD^{tree}")
    commit = git(worktree, "commit-tree", tree, "-m", "private")
    git(worktree, "update-ref", "refs/worktree/draft", commit)
    assert look().verdict is Verdict.HOLDS_WORK


def test_half_a_rebase_with_a_clean_index_holds_work(look, worktree: Path, main: Path, git: Git):
    for number in (1, 2):
        git(worktree, "commit", "-q", "--allow-empty", "-m", f"step {number}")
    (main / "other").write_text("x")
    git(main, "add", "other")
    git(main, "commit", "-q", "-m", "other")
    git(
        worktree,
        *("-c", "sequence.editor=sed -i 2ibreak", "rebase", "-q", "-i", "--keep-empty", "main"),
    )
    assert git(worktree, "status", "--porcelain") == ""
    found = look()
    assert found.verdict is Verdict.HOLDS_WORK
    assert "rebase in progress" in found.reasons


@pytest.mark.parametrize("how", ["rebase --apply", "am"])
def test_half_a_rebase_by_patches_and_half_applied_mail_hold_work(
    look, worktree: Path, main: Path, git: Git, how: str
):
    """Both wait in `rebase-apply`; the conflict is resolved and staged, and then put back."""
    (main / "README").write_text("theirs\n")
    git(main, "commit", "-q", "-am", "theirs")
    (worktree / "README").write_text("ours\n")
    git(worktree, "commit", "-q", "-am", "ours")
    if how == "am":
        mail = git(main, "format-patch", "--stdout", "-1", "main")
        git(worktree, "am", "-q", "-3", check=False, stdin=f"{mail}\n".encode())
    else:
        git(worktree, "rebase", "-q", "--apply", "main", check=False)
    git(worktree, "checkout", "-q", "-f", "HEAD", "--", "README")
    assert git(worktree, "status", "--porcelain") == ""
    found = look()
    assert found.verdict is Verdict.HOLDS_WORK
    assert "rebase in progress" in found.reasons


def test_half_a_series_of_picks_with_a_clean_index_holds_work(
    look, worktree: Path, main: Path, git: Git
):
    """Between two picks nothing is left but the list of what is still to do."""
    for name in ("README", "new", "last"):
        (main / name).write_text("theirs\n")
        git(main, "add", "-A")
        git(main, "commit", "-q", "-m", name)
    (worktree / "new").write_text("ours\n")
    git(worktree, "add", "new")
    git(worktree, "commit", "-q", "-m", "ours")
    git(worktree, "cherry-pick", "main~3..main", check=False)
    git(worktree, "reset", "-q", "--hard")
    marks = Path(git(worktree, "rev-parse", "--absolute-git-dir"))
    assert not (marks / "CHERRY_PICK_HEAD").exists()
    assert git(worktree, "status", "--porcelain") == ""
    assert "cherry-pick in progress" in look().reasons


def test_a_bisect_holds_work(look, worktree: Path, git: Git):
    git(worktree, "bisect", "start", "-q", "HEAD", "HEAD~1", check=False)
    assert "bisect in progress" in look().reasons


def test_a_merge_without_conflicts_holds_work(look, worktree: Path, main: Path, git: Git):
    git(main, "commit", "-q", "--allow-empty", "-m", "theirs")
    git(worktree, "commit", "-q", "--allow-empty", "-m", "ours")
    git(worktree, "merge", "--no-commit", "--no-ff", "-q", "main")
    assert "merge in progress" in look().reasons


def test_a_cherry_pick_and_a_revert_hold_work(look, worktree: Path, git: Git):
    for command in ("cherry-pick", "revert"):
        git(worktree, command, "--no-edit", "HEAD~1", check=False)
        assert look().verdict is Verdict.HOLDS_WORK
        git(worktree, command, "--abort", check=False)


def test_a_stash_made_on_the_branch_holds_work(look, worktree: Path, git: Git):
    (worktree / "README").write_text("stashed")
    git(worktree, "stash", "-q")
    found = look()
    assert found.verdict is Verdict.HOLDS_WORK
    assert found.reasons == ("stash@{0} was stashed on this branch",)


def test_a_stash_made_on_a_detached_head_holds_work(look, worktree: Path, main: Path, git: Git):
    git(worktree, "checkout", "-q", "--detach")
    (worktree / "README").write_text("stashed")
    git(worktree, "stash", "-q")
    assert look().reasons == ("stash@{0} was stashed on a detached HEAD",)


def test_a_stash_made_elsewhere_is_not_this_worktree_s(look, main: Path, git: Git):
    (main / "README").write_text("stashed")
    git(main, "stash", "-q")
    assert look().verdict is Verdict.EMPTY


def test_a_worktree_that_somebody_else_locked_holds_work(
    look, worktree: Path, main: Path, git: Git
):
    git(main, "worktree", "unlock", str(worktree))
    git(main, "worktree", "lock", "--reason", "on my USB stick", str(worktree))
    found = look()
    assert found.verdict is Verdict.HOLDS_WORK
    assert found.reasons == ("locked by somebody else: on my USB stick",)


def test_an_occupied_worktree_is_in_use(worktree: Path, main: Path):
    found = inspect_worktree(
        worktree, base=head_commit(main), snapshot={}, occupants=lambda _: ["vim (pid 12)"]
    )
    assert found.verdict is Verdict.IN_USE
    assert not found.may_be_removed


def test_where_nobody_can_tell_who_is_inside_it_is_unknown(worktree: Path, main: Path):
    found = inspect_worktree(
        worktree, base=head_commit(main), snapshot={}, occupants=lambda _: None
    )
    assert found.verdict is Verdict.UNKNOWN
    assert not found.may_be_removed


def test_an_ignored_file_of_setup_s_with_its_old_time_put_back_holds_work(
    worktree: Path, main: Path
):
    secret = worktree / ".env"
    secret.write_text("KEY=1")
    snapshot = take_snapshot(worktree)
    before = secret.stat()
    secret.write_text("KEY=2")
    os.utime(secret, ns=(before.st_atime_ns, before.st_mtime_ns))
    found = inspect_worktree(worktree, base=head_commit(main), snapshot=snapshot, occupants=nobody)
    assert (found.verdict, found.dirty) == (Verdict.HOLDS_WORK, (".env",))


def test_an_untracked_file_that_only_differs_in_case_holds_work_whatever_the_configuration_says(
    look, worktree: Path, main: Path, git: Git
):
    git(main, "config", "core.ignoreCase", "true")
    (worktree / "readme").write_text("another file")
    if (worktree / "README").read_text() == "another file":
        pytest.skip("this file system takes both for one file")
    assert (look().verdict, look().dirty) == (Verdict.HOLDS_WORK, ("readme",))


def test_a_directory_that_git_cannot_open_is_unknown(look, worktree: Path):
    """Git leaves it out with a warning, and ends well."""
    bury(worktree)
    found = look()
    assert found.verdict is Verdict.UNKNOWN
    assert "deep" in found.reasons[0]


def test_a_clone_in_the_place_of_the_worktree_is_unknown(
    look, worktree: Path, main: Path, tmp_path: Path, git: Git
):
    """Its branches would go with it, and nobody else has them."""
    git(tmp_path, "clone", "-q", str(main), str(tmp_path / "clone"))
    (worktree / ".git").unlink()
    (tmp_path / "clone" / ".git").rename(worktree / ".git")
    git(worktree, "commit", "-q", "--allow-empty", "-m", "only here")
    found = look()
    assert found.verdict is Verdict.UNKNOWN
    assert "repository of its own" in found.reasons[0]


@pytest.mark.timeout(30)
def test_a_pipe_in_the_place_of_the_git_file_is_unknown(look, worktree: Path):
    """Reading it would wait for ever."""
    (worktree / ".git").unlink()
    os.mkfifo(worktree / ".git")
    assert look().verdict is Verdict.UNKNOWN


def test_links_that_lead_to_one_another_are_unknown(look, worktree: Path, tmp_path: Path):
    worktree.rename(tmp_path / "moved")
    worktree.symlink_to(worktree)
    assert look().verdict is Verdict.UNKNOWN


def test_a_repository_that_was_added_as_a_directory_holds_work(look, worktree: Path, git: Git):
    """Git keeps a commit's id of it, and its objects lie in the worktree alone."""
    inner = worktree / "lib"
    inner.mkdir()
    git(inner, "init", "-q")
    git(inner, "commit", "-q", "--allow-empty", "-m", "work")
    git(worktree, "-c", "advice.addEmbeddedRepo=false", "add", "lib")
    git(worktree, "commit", "-q", "-m", "add it")
    assert git(worktree, "status", "--porcelain", "--ignored") == ""
    found = look()
    assert found.verdict is Verdict.HOLDS_WORK
    assert found.reasons == ("submodule lib has commits of its own",)


def test_a_submodule_as_cloned_is_no_work(submodule: str, look, worktree: Path, git: Git):
    git(worktree, "submodule", "update", "-q", "--init")
    assert look().verdict is Verdict.EMPTY


def test_a_commit_in_a_submodule_holds_work(submodule: str, look, worktree: Path, git: Git):
    git(worktree, "submodule", "update", "-q", "--init")
    git(worktree / submodule, "commit", "-q", "--allow-empty", "-m", "work")
    assert "submodule parts has commits of its own" in look().reasons


def test_a_commit_in_a_submodule_that_the_branch_points_at_holds_work(
    submodule: str, look, worktree: Path, git: Git
):
    git(worktree, "submodule", "update", "-q", "--init")
    git(worktree / submodule, "commit", "-q", "--allow-empty", "-m", "work")
    git(worktree, "commit", "-q", "-am", "use it")
    assert look().reasons == ("submodule parts has commits of its own",)


def test_a_commit_in_a_submodule_that_was_deinitialised_holds_work(
    submodule: str, look, worktree: Path, git: Git
):
    git(worktree, "submodule", "update", "-q", "--init")
    git(worktree / submodule, "commit", "-q", "--allow-empty", "-m", "work")
    git(worktree, "submodule", "deinit", "-q", "-f", submodule)
    assert look().reasons == ("submodule parts has commits of its own",)


def test_an_edit_in_a_submodule_holds_work_whatever_the_configuration_says(
    submodule: str, look, worktree: Path, main: Path, git: Git
):
    git(worktree, "submodule", "update", "-q", "--init")
    git(main, "config", "submodule.parts.ignore", "all")
    (worktree / submodule / "part").write_text("edited")
    assert look().verdict is Verdict.HOLDS_WORK


def test_an_ignored_file_in_a_submodule_holds_work(submodule: str, look, worktree: Path, git: Git):
    git(worktree, "submodule", "update", "-q", "--init")
    (worktree / submodule / "own.log").write_text("x")
    exclude = git(worktree / submodule, "rev-parse", "--git-path", "info/exclude")
    Path(worktree / submodule / exclude).write_text("*.log\n")
    assert look().dirty == ("parts/own.log",)


def test_a_missing_directory_is_unknown(main: Path, tmp_path: Path):
    found = inspect_worktree(
        tmp_path / "nowhere", base=head_commit(main), snapshot={}, occupants=nobody
    )
    assert found.verdict is Verdict.UNKNOWN


def test_a_directory_whose_entry_is_gone_is_unknown(look, worktree: Path, repo: Repository):
    for path in sorted((repo.common_dir / "worktrees").rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    assert look().verdict is Verdict.UNKNOWN


def test_a_directory_whose_git_file_is_gone_is_unknown(look, worktree: Path):
    (worktree / ".git").unlink()
    assert look().verdict is Verdict.UNKNOWN


def test_a_worktree_below_another_repository_is_never_answered_by_that_one(
    look, worktree: Path, git: Git
):
    git(worktree.parent, "init", "-q")
    (worktree / ".git").unlink()
    assert look().verdict is Verdict.UNKNOWN


def test_a_missing_base_is_unknown(worktree: Path):
    found = inspect_worktree(worktree, base="0" * 39 + "1", snapshot={}, occupants=nobody)
    assert found.verdict is Verdict.UNKNOWN


@pytest.mark.parametrize("lock", ["index.lock", "HEAD.lock"])
def test_a_running_git_command_is_unknown(look, worktree: Path, git: Git, lock: str):
    Path(git(worktree, "rev-parse", "--git-path", lock)).touch()
    found = look()
    assert found.verdict is Verdict.UNKNOWN
    assert lock in found.reasons[0]


def test_a_missing_reflog_is_unknown(look, worktree: Path, git: Git):
    Path(git(worktree, "rev-parse", "--git-path", "logs/HEAD")).unlink()
    assert look().verdict is Verdict.UNKNOWN


def test_a_corrupt_index_is_unknown(look, worktree: Path, git: Git):
    Path(git(worktree, "rev-parse", "--git-path", "index")).write_bytes(b"DIRC broken")
    assert look().verdict is Verdict.UNKNOWN


def test_a_branch_without_a_commit_is_unknown(look, worktree: Path, git: Git):
    git(worktree, "checkout", "-q", "--orphan", "fresh")
    assert look().verdict is Verdict.UNKNOWN


def test_a_copy_of_a_worktree_is_unknown(worktree: Path, main: Path, tmp_path: Path):
    copy = tmp_path / "copy"
    copy.mkdir()
    (copy / ".git").write_bytes((worktree / ".git").read_bytes())
    found = inspect_worktree(copy, base=head_commit(main), snapshot={}, occupants=nobody)
    assert found.verdict is Verdict.UNKNOWN


def test_looking_changes_no_byte_of_the_index(look, worktree: Path, git: Git):
    index = Path(git(worktree, "rev-parse", "--git-path", "index"))
    (worktree / "README").touch()
    before = (index.read_bytes(), index.stat().st_mtime_ns)
    look()
    assert (index.read_bytes(), index.stat().st_mtime_ns) == before
