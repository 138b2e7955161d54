"""Removal refuses whatever could lose something, and says why."""

from __future__ import annotations

import errno
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from git_rig import nobody

from lessor.errors import GitError, HoldsWorkError, WorktreeError
from lessor.git.inspection import inspect_worktree, take_snapshot
from lessor.git.leaving import has_begun, leaving_path, mark_begun
from lessor.git.repository import Repository, head_commit
from lessor.git.restore import restore_salvage
from lessor.git.salvage import Salvage, salvage
from lessor.git.worktree import (
    add_worktree,
    discard_worktree,
    heal_worktree,
    list_worktrees,
    remove_worktree,
    resume_removals,
)

Git = Callable[..., str]


@pytest.fixture
def remove(repo: Repository, worktree: Path, main: Path) -> Callable[..., None]:
    """Inspects and removes; `between` is called between the two."""
    base = head_commit(main)

    def run(*, snapshot=None, between=lambda: None) -> None:
        verdict = inspect_worktree(worktree, base=base, snapshot=snapshot or {}, occupants=nobody)
        between()
        remove_worktree(repo, worktree, verdict=verdict, occupants=nobody)

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
    verdict = inspect_worktree(other, base=head_commit(main), snapshot={}, occupants=nobody)
    with pytest.raises(HoldsWorkError):
        remove_worktree(repo, worktree, verdict=verdict, occupants=nobody)
    assert worktree.exists()


def test_the_main_worktree_is_refused(repo: Repository, main: Path):
    verdict = inspect_worktree(main, base=head_commit(main), snapshot={}, occupants=nobody)
    with pytest.raises(WorktreeError):
        remove_worktree(repo, main, verdict=verdict, occupants=nobody)


@pytest.mark.parametrize("lock", [None, "on my USB stick"])
def test_a_worktree_that_lessor_did_not_make_is_refused(
    repo: Repository, main: Path, tmp_path: Path, git: Git, lock: str | None
):
    path = tmp_path / "by-hand"
    git(main, "worktree", "add", "-q", "-b", "by-hand", str(path))
    if lock:
        git(main, "worktree", "lock", "--reason", lock, str(path))
    verdict = inspect_worktree(path, base=head_commit(main), snapshot={}, occupants=nobody)
    with pytest.raises(WorktreeError, match="isn't Lessor's"):
        remove_worktree(repo, path, verdict=verdict, occupants=nobody)
    assert path.exists()


def test_a_link_to_a_worktree_is_refused(
    repo: Repository, worktree: Path, main: Path, tmp_path: Path
):
    link = tmp_path / "link"
    link.symlink_to(worktree)
    verdict = inspect_worktree(worktree, base=head_commit(main), snapshot={}, occupants=nobody)
    with pytest.raises(WorktreeError, match="link"):
        remove_worktree(repo, link, verdict=verdict, occupants=nobody)
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


def test_what_is_written_between_the_looks_and_the_deletion_is_seen(
    repo: Repository, worktree: Path, main: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    """A writer that the looks missed: it writes while the worktree is moved aside."""
    let_git(tmp_path, monkeypatch, "worktree repair", f"echo late > {leaving_path(worktree)}/late")
    verdict = inspect_worktree(worktree, base=head_commit(main), snapshot={}, occupants=nobody)
    with pytest.raises(HoldsWorkError, match="late"):
        remove_worktree(repo, worktree, verdict=verdict, occupants=nobody)
    assert (worktree / "late").read_text() == "late\n"
    assert (worktree / "README").exists()
    assert is_lessors(repo, worktree)


def test_a_process_that_comes_in_meanwhile_stops_it(repo: Repository, worktree: Path, main: Path):
    verdict = inspect_worktree(worktree, base=head_commit(main), snapshot={}, occupants=nobody)

    def late(place: Path) -> list[str]:
        return [] if place == worktree else ["vim (pid 12)"]

    with pytest.raises(HoldsWorkError, match="vim"):
        remove_worktree(repo, worktree, verdict=verdict, occupants=late)
    assert (worktree / "README").exists()
    assert is_lessors(repo, worktree)


def test_a_refusal_under_the_lock_stops_it(repo: Repository, worktree: Path, main: Path):
    verdict = inspect_worktree(worktree, base=head_commit(main), snapshot={}, occupants=nobody)

    def leased() -> None:
        raise HoldsWorkError("it is leased")

    with pytest.raises(HoldsWorkError, match="leased"):
        remove_worktree(repo, worktree, verdict=verdict, occupants=nobody, allowed=leased)
    assert (worktree / "README").exists()


@pytest.mark.parametrize("last", ["before it is moved", "before git is told", "before the mark"])
def test_a_removal_that_was_killed_before_it_deleted_is_undone(
    repo: Repository, worktree: Path, main: Path, git: Git, last: str
):
    entry = entry_of(repo, worktree)
    aside = leaving_path(worktree)
    if last != "before it is moved":
        worktree.rename(aside)
    if last == "before the mark":
        git(main, "worktree", "repair", str(aside))
    (aside if aside.exists() else worktree).joinpath("precious").write_text("precious")
    assert resume_removals(repo) == []
    assert (worktree / "precious").read_text() == "precious"
    assert is_lessors(repo, worktree)
    assert git(worktree, "status", "--porcelain") == "?? precious"
    assert entry.exists()


def test_a_removal_begins_without_the_word_of_one_that_somebody_took_back(
    repo: Repository, worktree: Path, main: Path
):
    """Else, killed before its last look, it would be finished without one."""
    git_dir = entry_of(repo, worktree)
    mark_begun(git_dir)
    seen: list[tuple[Path, bool]] = []

    def inside(place: Path) -> list[str]:
        seen.append((place, has_begun(git_dir)))
        return []

    verdict = inspect_worktree(worktree, base=head_commit(main), snapshot={}, occupants=nobody)
    remove_worktree(repo, worktree, verdict=verdict, occupants=inside)
    assert (leaving_path(worktree), False) in seen
    assert (leaving_path(worktree), True) not in seen


def test_a_removal_that_was_killed_in_the_middle_is_finished(
    remove, repo: Repository, worktree: Path, main: Path, git: Git, tmp_path: Path
):
    """Git and the program that ran it die together, with half of the files deleted."""
    (worktree / ".env").write_text("KEY=1")
    (worktree / "node_modules").mkdir()
    (worktree / "node_modules" / "x.js").write_text("x")
    tip = git(worktree, "rev-parse", "HEAD")
    kill_in_the_middle(
        repo, worktree, main, tmp_path, keep=".env", snapshot=take_snapshot(worktree)
    )
    aside = leaving_path(worktree)
    assert (aside / ".env").exists()
    assert not (aside / ".gitignore").exists()
    assert not (aside / ".git").exists()
    assert resume_removals(repo) == []
    assert not aside.exists()
    assert paths(repo) == [main]
    assert git(main, "rev-parse", "claude/7-totals") == tip


def test_a_removal_whose_git_file_was_left_empty_is_finished(
    repo: Repository, worktree: Path, main: Path, tmp_path: Path
):
    """A finishing removal writes it anew, and may be killed in the middle of that."""
    kill_in_the_middle(repo, worktree, main, tmp_path, keep="README")
    (leaving_path(worktree) / ".git").touch()
    assert resume_removals(repo) == []
    assert not leaving_path(worktree).exists()


def test_what_was_written_into_half_a_removal_is_kept(
    repo: Repository, worktree: Path, main: Path, tmp_path: Path
):
    kill_in_the_middle(repo, worktree, main, tmp_path, keep="README")
    aside = leaving_path(worktree)
    (aside / "found-it").write_text("new")
    (refused,) = resume_removals(repo)
    assert isinstance(refused, HoldsWorkError)
    assert "found-it" in refused.message
    assert (aside / "found-it").read_text() == "new"
    (aside / "found-it").unlink()
    assert resume_removals(repo) == []
    assert not aside.exists()


def test_what_was_moved_into_half_a_removal_is_kept_however_old_it_is(
    repo: Repository, worktree: Path, main: Path, tmp_path: Path
):
    (tmp_path / "old").write_text("old work")
    os.utime(tmp_path / "old", (0, 0))
    kill_in_the_middle(repo, worktree, main, tmp_path, keep="README")
    aside = leaving_path(worktree)
    (tmp_path / "old").rename(aside / "old")
    (refused,) = resume_removals(repo)
    assert isinstance(refused, HoldsWorkError)
    assert (aside / "old").read_text() == "old work"


@pytest.mark.parametrize("what", ["a directory", "a link to a directory"])
def test_a_directory_that_was_moved_into_half_a_removal_is_kept_however_old_it_is(
    repo: Repository, worktree: Path, main: Path, tmp_path: Path, what: str
):
    """Moving it dates its own entry alone, and none of the files in it."""
    old = tmp_path / "old"
    old.mkdir()
    (old / "notes").write_text("old work")
    kill_in_the_middle(repo, worktree, main, tmp_path, keep="README")
    aside = leaving_path(worktree)
    if what == "a directory":
        old.rename(aside / "old")
    else:
        (aside / "old").symlink_to(old)
    (refused,) = resume_removals(repo)
    assert isinstance(refused, HoldsWorkError)
    assert (aside / "old" / "notes").read_text() == "old work"
    (aside / "old").rename(tmp_path / "away")
    assert resume_removals(repo) == []
    assert not aside.exists()


def test_a_removal_that_fails_as_it_begins_leaves_no_word_that_it_has_begun(
    remove, repo: Repository, worktree: Path, monkeypatch: pytest.MonkeyPatch
):
    """Else the next one that is killed halfway would be finished without a last look."""

    def fails(handle: int) -> None:
        raise OSError(errno.EIO, "the disk is gone")

    with monkeypatch.context() as broken:
        broken.setattr(os, "fsync", fails)
        with pytest.raises(OSError, match="the disk is gone"):
            remove()
    assert (worktree / "README").exists()
    git_dir = next(found.git_dir for found in list_worktrees(repo) if found.path == worktree)
    assert not has_begun(git_dir)


def test_a_directory_that_uses_another_repository_stays(
    remove, worktree: Path, main: Path, tmp_path: Path, git: Git
):
    git(tmp_path, "clone", "-q", "--bare", str(main), str(tmp_path / "other.git"))

    def swap() -> None:
        (worktree / ".git").write_text(f"gitdir: {tmp_path / 'other.git'}\n")

    with pytest.raises(WorktreeError, match="repository of its own"):
        remove(between=swap)
    assert (worktree / "README").exists()


def test_the_branch_of_half_a_removal_can_be_taken_again(
    repo: Repository, worktree: Path, main: Path, tmp_path: Path
):
    kill_in_the_middle(repo, worktree, main, tmp_path, keep="README")
    again = tmp_path / "trees" / "7-2"
    add_worktree(
        repo, path=again, branch="claude/7-totals", base="main", task="7", epoch=2, reason="task=7"
    )
    assert resume_removals(repo) == []
    assert paths(repo) == [main, again]


def test_a_directory_that_cannot_be_emptied_is_refused_before_anything_is_deleted(
    remove, repo: Repository, worktree: Path, monkeypatch: pytest.MonkeyPatch
):
    closed = worktree / "node_modules" / "closed"
    closed.mkdir(parents=True)
    (closed / "x.js").write_text("x")
    closed.chmod(0o555)
    if os.getuid() == 0:  # root may write everywhere
        may = os.access
        monkeypatch.setattr(
            os, "access", lambda path, mode: may(path, mode) and Path(path) != closed
        )
    with pytest.raises(WorktreeError, match="can't be written"):
        remove()
    closed.chmod(0o755)
    assert (worktree / "README").exists()
    assert is_lessors(repo, worktree)


def test_another_worktree_that_git_cant_mend_keeps_none_from_going(
    remove, repo: Repository, worktree: Path, main: Path
):
    """As one that its agent has closed; git looks at all when it is told where one is."""
    other = worktree.with_name("8-1")
    add_worktree(repo, path=other, branch="ai/8", base="main", task="8", epoch=1, reason="task=8")
    (other / ".git").unlink()
    (other / ".git").symlink_to(other / "nowhere" / ".git")
    remove()
    assert not worktree.exists()
    assert paths(repo) == [main, other]


def test_another_worktree_that_git_cant_mend_keeps_none_from_being_healed(
    repo: Repository, worktree: Path, main: Path
):
    other = worktree.with_name("8-1")
    add_worktree(repo, path=other, branch="ai/8", base="main", task="8", epoch=1, reason="task=8")
    (other / ".git").unlink()
    (other / ".git").symlink_to(other / "nowhere" / ".git")
    shutil.rmtree(main / ".git" / "worktrees" / worktree.name)
    heal_worktree(
        repo, worktree, branch="claude/7-totals", base="main", reason="task=7", allowed=lambda: None
    )
    assert worktree in paths(repo)


def test_a_directory_in_the_way_stops_the_move(remove, worktree: Path):
    leaving_path(worktree).mkdir()
    with pytest.raises(WorktreeError, match="in the way"):
        remove()
    assert (worktree / "README").exists()


def test_two_removals_at_once_are_one(repo: Repository, worktree: Path, main: Path):
    verdict = inspect_worktree(worktree, base=head_commit(main), snapshot={}, occupants=nobody)
    outcomes: list[str] = []

    def one() -> None:
        try:
            remove_worktree(repo, worktree, verdict=verdict, occupants=nobody)
            outcomes.append("removed")
        except WorktreeError as late:
            outcomes.append(late.message)

    threads = [threading.Thread(target=one) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert outcomes.count("removed") == 1
    assert sum("is no linked worktree" in outcome for outcome in outcomes) == 3
    assert paths(repo) == [main]


@pytest.fixture
def discard(repo: Repository, worktree: Path, tmp_path: Path) -> Callable[..., Salvage]:
    def save(place: Path) -> Salvage:
        return salvage(
            place,
            common_dir=repo.common_dir,
            task="7",
            epoch=1,
            snapshot={},
            archive_dir=tmp_path / "archives",
        )

    def run(save=save) -> Salvage:
        return discard_worktree(repo, worktree, save=save, occupants=nobody)

    run.save = save
    return run


def test_a_discarded_worktree_is_saved_whole_before_it_goes(
    discard, repo: Repository, worktree: Path, tmp_path: Path, main: Path, git: Git
):
    git(worktree, "commit", "-q", "--allow-empty", "-m", "on the branch")
    (worktree / "staged").write_text("staged")
    git(worktree, "add", "staged")
    (worktree / "staged").write_text("then edited")
    (worktree / ".env").write_text("KEY=1")
    saved = discard()
    assert not worktree.exists()
    assert paths(repo) == [main]
    back = tmp_path / "back"
    restore_salvage(
        common_dir=repo.common_dir, commit=saved.commit, archive=saved.archive, into=back
    )
    assert (back / "staged").read_text() == "then edited"
    assert (back / ".env").read_text() == "KEY=1"
    assert git(main, "show", f"{saved.commit}^2:staged") == "staged"
    assert git(main, "for-each-ref", "--format=%(refname)", "refs/lessor/salvage") == saved.ref


def test_one_that_changes_while_it_is_saved_stays(discard, repo: Repository, worktree: Path):
    (worktree / "log").write_text("1")

    def save(place: Path) -> Salvage:
        found = discard.save(place)
        (place / "log").write_text("2")
        return found

    with pytest.raises(HoldsWorkError, match="changed while it was saved or looked at"):
        discard(save)
    assert (worktree / "log").read_text() == "2"
    assert is_lessors(repo, worktree)


def test_one_with_a_submodule_is_saved_and_goes(submodule: str, discard, worktree: Path, git: Git):
    git(worktree, "submodule", "update", "-q", "--init")
    git(worktree / submodule, "commit", "-q", "--allow-empty", "-m", "only here")
    saved = discard()
    assert saved.archive is not None
    assert not worktree.exists()


@pytest.mark.parametrize("place", ["late.txt", "parts/late.txt", "its store"])
def test_one_with_a_submodule_that_changes_while_it_is_saved_stays(
    submodule: str, repo: Repository, worktree: Path, git: Git, place: str
):
    """Git can't look at a submodule elsewhere; what changed, the files themselves say."""
    git(worktree, "submodule", "update", "-q", "--init")

    def save(path: Path) -> Salvage:
        if place == "its store":
            git(path / submodule, "commit", "-q", "--allow-empty", "-m", "late")
        else:
            (path / place).write_text("late")
        return Salvage(ref=None, commit=None, archive=None, files=())

    with pytest.raises(HoldsWorkError, match="changed while"):
        discard_worktree(repo, worktree, save=save, occupants=nobody)
    assert (worktree / submodule / "part").exists()
    assert git(worktree / submodule, "log", "-1", "--format=%s") in {"late", "part"}


def test_a_directory_that_is_moved_in_while_one_with_a_submodule_is_saved_stays(
    submodule: str, repo: Repository, worktree: Path, git: Git, tmp_path: Path
):
    git(worktree, "submodule", "update", "-q", "--init")
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "notes").write_text("old work")

    def save(path: Path) -> Salvage:
        (tmp_path / "old").rename(path / "old")
        return Salvage(ref=None, commit=None, archive=None, files=())

    with pytest.raises(HoldsWorkError, match="changed while"):
        discard_worktree(repo, worktree, save=save, occupants=nobody)
    assert (worktree / "old" / "notes").read_text() == "old work"


def test_one_that_cannot_be_saved_stays(discard, worktree: Path):
    def save(place: Path) -> Salvage:
        raise GitError("the disk is full")

    with pytest.raises(GitError, match="full"):
        discard(save)
    assert (worktree / "README").exists()


def test_where_git_refuses_nothing_is_deleted_and_the_lock_is_back(
    remove, worktree: Path, repo: Repository, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    # A git that fails at this one command, as it does where a file can't be unlinked.
    let_git(tmp_path, monkeypatch, "worktree remove", "echo no >&2; exit 128")
    with pytest.raises(WorktreeError, match="didn't remove"):
        remove()
    assert (worktree / "README").exists()
    assert is_lessors(repo, worktree)
    assert resume_removals(repo) == []
    assert (worktree / "README").exists()


def is_lessors(repo: Repository, worktree: Path) -> bool:
    return next(found for found in list_worktrees(repo) if found.path == worktree).is_lessors


def entry_of(repo: Repository, worktree: Path) -> Path:
    return next(found.git_dir for found in list_worktrees(repo) if found.path == worktree)


def let_git(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, verb: str, do: str) -> None:
    """Let git do something else first when it is called with `verb`."""
    wrapper = git_that(tmp_path, verb, do)
    monkeypatch.setenv("PATH", str(wrapper.parent), prepend=":")


def git_that(tmp_path: Path, verb: str, do: str) -> Path:
    real = shutil.which("git")
    assert real is not None
    wrapper = tmp_path / "bin" / "git"
    wrapper.parent.mkdir()
    wrapper.write_text(f'#!/bin/sh\ncase "$*" in *"{verb}"*) {do};; esac\nexec {real} "$@"\n')
    wrapper.chmod(0o755)
    return wrapper


def kill_in_the_middle(
    repo: Repository, worktree: Path, main: Path, tmp_path: Path, *, keep: str, snapshot=None
) -> None:
    """Remove it in a process that dies with its git once all but one file is deleted."""
    aside = leaving_path(worktree)
    die = f"find {aside} -type f ! -name {keep} -delete; kill -9 $PPID; kill -9 $$"
    wrapper = git_that(tmp_path, "worktree remove", die)
    code = (
        "import sys, json; from pathlib import Path\n"
        "from lessor.git.repository import find_repository\n"
        "from lessor.git.inspection import inspect_worktree\n"
        "from lessor.git.worktree import remove_worktree\n"
        "path, main, base, marks = sys.argv[1:]\n"
        "marks = {name: tuple(mark) for name, mark in json.loads(marks).items()}\n"
        "nobody = lambda _: ()\n"
        "found = inspect_worktree(Path(path), base=base, snapshot=marks, occupants=nobody)\n"
        "remove_worktree(find_repository(Path(main)), Path(path), verdict=found, occupants=nobody)\n"
    )
    marks = json.dumps({name: list(mark) for name, mark in (snapshot or {}).items()})
    done = subprocess.run(
        [sys.executable, "-c", code, str(worktree), str(main), head_commit(main), marks],
        env={**os.environ, "PATH": f"{wrapper.parent}:{os.environ['PATH']}"},
        check=False,
    )
    assert done.returncode == -signal.SIGKILL
