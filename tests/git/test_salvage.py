"""Salvage keeps every byte and mode, touches nothing, and gives it all back."""

from __future__ import annotations

import os
import stat
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest
from git_rig import bury, nobody

from lessor.errors import GitError, WorktreeError
from lessor.git.inspection import Verdict, inspect_worktree, take_snapshot
from lessor.git.repository import Repository, head_commit
from lessor.git.restore import restore_salvage
from lessor.git.salvage import Salvage, salvage

Git = Callable[..., str]
Content = dict[str, tuple[str, bytes]]

ODD_NAME = os.fsdecode(b'caf\xe9 "quoted"\\\n\tname')


@pytest.fixture
def archives(tmp_path: Path) -> Path:
    return tmp_path / "archives"


@pytest.fixture
def save(worktree: Path, repo: Repository, archives: Path) -> Callable[..., Salvage]:
    def run(snapshot=None) -> Salvage:
        return salvage(
            worktree,
            common_dir=repo.common_dir,
            task="7",
            epoch=1,
            snapshot=snapshot or {},
            archive_dir=archives,
        )

    return run


@pytest.fixture
def restore(repo: Repository, tmp_path: Path) -> Callable[[Salvage], Path]:
    def run(saved: Salvage) -> Path:
        into = tmp_path / "restored"
        restore_salvage(
            common_dir=repo.common_dir, commit=saved.commit, archive=saved.archive, into=into
        )
        return into

    return run


def content(top: Path) -> Content:
    """Each file and link below `top` with kind, executable bit and bytes; `.git` left out."""
    found: Content = {}
    for path in top.rglob("*"):
        relative = str(path.relative_to(top))
        if path.is_symlink():
            found[relative] = ("link", os.fsencode(path.readlink()))
        elif path.is_file() and relative != ".git":
            executable = path.stat().st_mode & stat.S_IXUSR
            found[relative] = ("executable" if executable else "file", path.read_bytes())
    return found


def state(worktree: Path, git: Git) -> tuple[object, ...]:
    """What salvage must leave as it was."""
    index = Path(git(worktree, "rev-parse", "--git-path", "index"))
    return (
        index.read_bytes(),
        git(worktree, "status", "--porcelain=v2", "--ignored"),
        git(worktree, "symbolic-ref", "-q", "HEAD", check=False),
        content(worktree),
    )


def make_a_mess(worktree: Path, git: Git) -> None:
    """Tracked, staged and untracked changes of every kind that git can tell apart."""
    (worktree / "src" / "app.py").write_bytes(b"one\r\nnot utf-8 \xff\0\n")
    (worktree / "README").unlink()
    (worktree / "run.sh").chmod(0o644)
    (worktree / "link").unlink()
    (worktree / "link").write_text("a file now")
    (worktree / "staged.txt").write_text("staged, then edited")
    git(worktree, "add", "staged.txt")
    (worktree / "staged.txt").write_text("edited")
    (worktree / "gone.txt").write_text("staged, then deleted")
    git(worktree, "add", "gone.txt")
    (worktree / "gone.txt").unlink()
    (worktree / "intended.txt").write_text("only intended")
    git(worktree, "add", "-N", "intended.txt")
    (worktree / "empty").touch()
    (worktree / "tool").write_bytes(b"\x7fELF")
    (worktree / "tool").chmod(0o755)
    (worktree / "dangling").symlink_to("/nowhere/at all")
    (worktree / "to-dir").symlink_to("src")
    (worktree / ODD_NAME).write_bytes(b"odd")
    (worktree / "deep" / "er").mkdir(parents=True)
    (worktree / "deep" / "er" / "-dash").write_text("x")


def test_everything_uncommitted_comes_back_byte_for_byte(save, restore, worktree: Path, git: Git):
    make_a_mess(worktree, git)
    before = state(worktree, git)
    saved = save()
    assert state(worktree, git) == before
    assert content(restore(saved)) == content(worktree)
    assert saved.ref == "refs/lessor/salvage/7/1/1"
    assert saved.archive is None
    assert ODD_NAME in saved.files


def test_what_was_staged_is_kept_where_the_file_differs_now(
    save, worktree: Path, main: Path, git: Git
):
    make_a_mess(worktree, git)
    saved = save()
    parents = git(main, "log", "-1", "--format=%P", saved.commit).split()
    assert parents[0] == head_commit(worktree)
    assert git(main, "show", f"{parents[1]}:staged.txt") == "staged, then edited"
    assert git(main, "show", f"{parents[1]}:gone.txt") == "staged, then deleted"
    # Its date doesn't move, so that the same state is the same commit at any time.
    assert git(main, "log", "-1", "--format=%at %ct", parents[1]) == "0 0"


def test_a_conflict_comes_back_with_its_markers(
    save, restore, worktree: Path, main: Path, git: Git
):
    (main / "README").write_text("theirs\n")
    git(main, "rm", "-q", "run.sh")
    git(main, "commit", "-q", "-am", "theirs")
    (worktree / "README").write_text("ours\n")
    (worktree / "run.sh").write_text("ours\n")
    git(worktree, "commit", "-q", "-am", "ours")
    git(worktree, "merge", "main", check=False)
    assert "UD run.sh" in git(worktree, "status", "--porcelain")
    before = state(worktree, git)
    saved = save()
    assert state(worktree, git) == before
    restored = restore(saved)
    assert content(restored) == content(worktree)
    assert b"<<<<<<<" in (restored / "README").read_bytes()


def test_line_ends_and_filters_do_not_change_a_saved_byte(
    save, restore, worktree: Path, main: Path, git: Git
):
    git(main, "config", "filter.shout.clean", "tr a-z A-Z")
    git(main, "config", "filter.shout.smudge", "tr A-Z a-z")
    (worktree / ".gitattributes").write_text("*.txt text eol=crlf\n*.loud filter=shout\n")
    (worktree / "mixed.txt").write_bytes(b"one\r\ntwo\nthree\r\n")
    (worktree / "song.loud").write_bytes(b"Quiet And LOUD")
    assert content(restore(save())) == content(worktree)


def test_a_clean_file_that_the_checkout_converts_comes_back_converted(
    save, restore, worktree: Path, git: Git
):
    (worktree / ".gitattributes").write_text("*.txt text eol=crlf\n")
    (worktree / "lines.txt").write_bytes(b"one\r\ntwo\r\n")
    git(worktree, "add", "-A")
    git(worktree, "commit", "-q", "-m", "lines")
    (worktree / "README").write_text("changed")
    assert (restore(save()) / "lines.txt").read_bytes() == b"one\r\ntwo\r\n"


@pytest.mark.parametrize("flag", ["--assume-unchanged", "--skip-worktree"])
def test_an_edit_that_git_was_told_not_to_see_is_saved(
    save, restore, worktree: Path, git: Git, flag: str
):
    git(worktree, "update-index", flag, "README")
    (worktree / "README").write_text("hidden")
    saved = save()
    assert saved.files == ("README",)
    assert (restore(saved) / "README").read_text() == "hidden"


def test_what_no_commit_would_hold_of_a_tracked_file_is_saved(
    save, restore, worktree: Path, main: Path, git: Git
):
    git(main, "config", "filter.strip.clean", "sed /OUTPUT/d")
    git(main, "config", "core.fileMode", "false")
    (main / ".git" / "info" / "attributes").write_text("*.nb filter=strip\n")
    (worktree / "a.nb").write_text("code\nOUTPUT\n")
    git(worktree, "add", ".")
    git(worktree, "commit", "-q", "-m", "notebook")
    (worktree / "README").chmod(0o755)
    saved = save()
    assert saved.files == ("README", "a.nb")
    back = restore(saved)
    assert (back / "a.nb").read_text() == "code\nOUTPUT\n"
    assert (back / "README").stat().st_mode & 0o100


def test_files_outside_a_sparse_cone_stay_in_the_saved_tree(
    save, worktree: Path, main: Path, git: Git
):
    git(worktree, "sparse-checkout", "set", "--no-cone", "src/")
    (worktree / "src" / "app.py").write_text("edited")
    saved = save()
    assert git(main, "show", f"{saved.commit}:README") == "the shop"
    assert saved.files == ("src/app.py",)


def test_a_directory_in_the_place_of_a_file_comes_back(save, restore, worktree: Path):
    (worktree / "README").unlink()
    (worktree / "README").mkdir()
    (worktree / "README" / "part").write_text("x")
    assert content(restore(save())) == content(worktree)


def test_a_link_in_the_place_of_a_directory_is_saved_as_a_link(
    save, restore, worktree: Path, tmp_path: Path
):
    (worktree / "src" / "app.py").unlink()
    (worktree / "src").rmdir()
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "app.py").write_text("another's")
    (worktree / "src").symlink_to(outside)
    restored = restore(save())
    assert (restored / "src").is_symlink()
    assert content(restored) == content(worktree)


def test_commits_on_a_detached_head_and_in_the_reflog_are_pinned(
    save, worktree: Path, main: Path, git: Git
):
    git(worktree, "commit", "-q", "--allow-empty", "-m", "first try")
    first = head_commit(worktree)
    git(worktree, "reset", "-q", "--hard", "HEAD~1")
    git(worktree, "checkout", "-q", "--detach")
    git(worktree, "commit", "-q", "--allow-empty", "-m", "adrift")
    adrift = head_commit(worktree)
    saved = save()
    assert saved.ref is not None
    for commit in (first, adrift):
        git(main, "merge-base", "--is-ancestor", commit, saved.ref)


def test_the_other_side_of_a_merge_in_progress_is_pinned(
    save, worktree: Path, main: Path, git: Git
):
    tree = git(main, "rev-parse", "HEAD^{tree}")
    other = git(main, "commit-tree", tree, "-p", "HEAD~1", "-m", "on no branch")
    git(worktree, "commit", "-q", "--allow-empty", "-m", "ours")
    git(worktree, "merge", "-q", "--no-ff", "--no-commit", other, check=False)
    git(main, "merge-base", "--is-ancestor", other, save().ref)


def test_an_autostash_of_a_rebase_in_progress_is_pinned(save, worktree: Path, main: Path, git: Git):
    (main / "README").write_text("theirs\n")
    git(main, "commit", "-q", "-am", "theirs")
    (worktree / "README").write_text("ours\n")
    git(worktree, "commit", "-q", "-am", "ours")
    (worktree / "run.sh").write_text("stashed away")
    git(worktree, "rebase", "-q", "--autostash", "main", check=False)
    stashed = Path(git(worktree, "rev-parse", "--git-path", "rebase-merge/autostash"))
    saved = save()
    git(main, "merge-base", "--is-ancestor", stashed.read_text().strip(), saved.ref)
    with tarfile.open(saved.archive) as tar:
        assert "git/rebase-merge/git-rebase-todo" in tar.getnames()


def test_ignored_files_go_to_an_archive_that_its_owner_alone_reads(save, restore, worktree: Path):
    (worktree / ".env").write_text("KEY=1")
    (worktree / ".env").chmod(0o640)
    (worktree / "build" / "out").mkdir(parents=True)
    (worktree / "build" / "out" / "tool").write_bytes(b"\0\xff")
    (worktree / "build" / "out" / "tool").chmod(0o755)
    (worktree / "build" / "link").symlink_to("/etc/hostname")
    (worktree / "build" / os.fsdecode(b"caf\xe9\n")).write_text("odd")
    (worktree / "build" / "empty").touch()
    before = content(worktree)
    saved = save()
    assert content(worktree) == before
    assert (saved.ref, saved.commit) == (None, None)
    assert stat.S_IMODE(saved.archive.stat().st_mode) == 0o600
    restored = restore(saved)
    kept = {path: found for path, found in before.items() if path in saved.files}
    assert content(restored) == kept
    assert stat.S_IMODE((restored / ".env").stat().st_mode) == 0o640
    changed = [(top / ".env").stat().st_mtime_ns for top in (restored, worktree)]
    assert changed[0] == changed[1]


def test_an_unchanged_secret_and_dependencies_are_never_archived(save, worktree: Path):
    (worktree / ".env").write_text("KEY=1")
    snapshot = take_snapshot(worktree)
    (worktree / "node_modules" / "left-pad").mkdir(parents=True)
    (worktree / "node_modules" / "left-pad" / "index.js").write_text("x")
    assert save(snapshot) == Salvage(ref=None, commit=None, archive=None, files=())
    (worktree / ".env").write_text("KEY=2, by the agent")
    assert save(snapshot).files == (".env",)


@pytest.mark.parametrize("ignored", [True, False])
def test_a_gigabyte_of_dependencies_adds_nothing_ignored_or_not(
    save, worktree: Path, main: Path, git: Git, ignored: bool
):
    if not ignored:
        (worktree / ".gitignore").write_text(".env\n")
        git(worktree, "commit", "-qam", "ignore less")
    library = worktree / "node_modules" / "library"
    library.mkdir(parents=True)
    (library / "index.js").write_text("made again by npm")
    with (library / "blob.bin").open("wb") as file:
        file.truncate(1_000_000_000)
    (worktree / "notes.txt").write_text("work")
    before = git(main, "count-objects", "-v")
    saved = save()
    assert saved.files == ("notes.txt",)
    assert saved.archive is None
    grown = int(git(main, "count-objects", "-v").splitlines()[1].split()[1])
    assert grown - int(before.splitlines()[1].split()[1]) < 10_000  # kB


@pytest.mark.parametrize("place", ["inner", "vendor/inner", "node_modules/inner"])
def test_a_repository_inside_is_archived_whole(save, restore, worktree: Path, git: Git, place: str):
    inner = worktree / place
    inner.mkdir(parents=True)
    git(inner, "init", "-q")
    snapshot = take_snapshot(worktree)
    (inner / "fix.py").write_text("fix")
    git(inner, "add", "-A")
    git(inner, "commit", "-q", "-m", "fix")
    restored = restore(save(snapshot))
    assert head_commit(restored / place) == head_commit(inner)
    assert git(restored / place, "status", "--porcelain") == ""


def test_a_commit_in_a_submodule_is_archived_with_its_objects(
    submodule: str, save, worktree: Path, tmp_path: Path, git: Git
):
    git(worktree, "submodule", "update", "-q", "--init")
    git(worktree / submodule, "commit", "-q", "--allow-empty", "-m", "work")
    saved = save()
    with tarfile.open(saved.archive) as tar:
        tar.extractall(tmp_path / "out", filter="data")
    store = tmp_path / "out" / "git" / "modules" / submodule
    assert git(
        tmp_path,
        *(f"--git-dir={store}", f"--work-tree={tmp_path}", "cat-file", "-t"),
        head_commit(worktree / submodule),
    )
    gitlink = git(worktree, "rev-parse", f"{saved.commit}:{submodule}")
    assert gitlink == head_commit(worktree / submodule)


def test_what_was_archived_of_the_git_directory_comes_back_beside_the_files(
    submodule: str, save, restore, worktree: Path, git: Git
):
    git(worktree, "submodule", "update", "-q", "--init")
    git(worktree / submodule, "commit", "-q", "--allow-empty", "-m", "work")
    tip = head_commit(worktree / submodule)
    restored = restore(save())
    store = restored.with_name(f"{restored.name}.git-state") / "modules" / submodule
    git(worktree.parent, "init", "-q", "again")
    git(worktree.parent / "again", "fetch", "-q", str(store), "HEAD")
    assert git(worktree.parent / "again", "rev-parse", "FETCH_HEAD") == tip


def test_a_repository_inside_with_packed_references_comes_back(
    save, restore, worktree: Path, git: Git
):
    inner = worktree / "vendor" / "lib"
    inner.mkdir(parents=True)
    git(inner, "init", "-q")
    git(inner, "commit", "-q", "--allow-empty", "-m", "begin")
    git(inner, "pack-refs", "--all")
    assert not list((inner / ".git" / "refs").rglob("*.?"))
    restored = restore(save())
    assert head_commit(restored / "vendor" / "lib") == head_commit(inner)


@pytest.mark.parametrize("mode", [0o600, 0o400, 0o664, 0o700, 0o755, 0o644])
def test_a_file_s_mode_comes_back_whatever_git_keeps_of_it(
    save, restore, worktree: Path, git: Git, mode: int
):
    for path in ("key", "src/app.py", ODD_NAME, "build/out"):
        (worktree / path).parent.mkdir(exist_ok=True)
        (worktree / path).write_text("changed")
        (worktree / path).chmod(mode)
    restored = restore(save())
    for path in ("key", "src/app.py", ODD_NAME, "build/out"):
        assert stat.S_IMODE((restored / path).stat().st_mode) == mode


def test_another_mode_is_another_state(save, worktree: Path):
    (worktree / "key").write_text("secret")
    (worktree / "key").chmod(0o644)
    assert save().ref == "refs/lessor/salvage/7/1/1"
    (worktree / "key").chmod(0o600)
    assert save().ref == "refs/lessor/salvage/7/1/2"
    assert save().ref == "refs/lessor/salvage/7/1/2"


def test_a_clean_worktree_needs_no_salvage(save, worktree: Path, git: Git):
    git(worktree, "commit", "-q", "--allow-empty", "-m", "on the branch")
    assert save() == Salvage(ref=None, commit=None, archive=None, files=())


def test_the_same_state_is_saved_once_and_a_later_one_again(save, worktree: Path, git: Git):
    make_a_mess(worktree, git)
    (worktree / ".env").write_text("KEY=1")
    git(worktree, "commit", "-q", "--allow-empty", "-m", "first try")
    git(worktree, "reset", "-q", "--soft", "HEAD~1")
    first = save()
    assert save() == first
    (worktree / "more").write_text("x")
    (worktree / ".env").write_text("KEY=12")
    later = save()
    assert later.ref == "refs/lessor/salvage/7/1/2"
    assert later.archive != first.archive


def test_other_bytes_of_the_same_length_and_time_are_saved_again(save, restore, worktree: Path):
    secret = worktree / ".env"
    secret.write_text("KEY=1")
    before, first = secret.stat(), save()
    secret.write_text("KEY=2")
    os.utime(secret, ns=(before.st_atime_ns, before.st_mtime_ns))
    later = save()
    assert later.archive != first.archive
    assert (restore(later) / ".env").read_text() == "KEY=2"


def test_what_git_cannot_open_is_never_left_out_of_a_salvage(save, worktree: Path):
    bury(worktree)
    with pytest.raises(GitError, match="can't be opened"):
        save()


def test_commits_that_were_pinned_hold_the_worktree_no_longer(
    save, worktree: Path, main: Path, git: Git
):
    git(worktree, "commit", "-q", "--allow-empty", "-m", "work")
    git(worktree, "commit", "-q", "--allow-empty", "--amend", "-m", "better")
    base = head_commit(main)
    assert (
        inspect_worktree(worktree, base=base, snapshot={}, occupants=nobody).verdict
        is Verdict.HOLDS_WORK
    )
    assert save().ref is not None
    assert (
        inspect_worktree(worktree, base=base, snapshot={}, occupants=nobody).verdict is Verdict.KEPT
    )


def test_a_stash_made_on_the_branch_is_pinned_and_holds_the_worktree_no_longer(
    save, worktree: Path, main: Path, git: Git
):
    (worktree / "README").write_text("stashed")
    git(worktree, "stash", "-q")
    entry = git(worktree, "rev-parse", "refs/stash")
    base = head_commit(main)

    def verdict() -> Verdict:
        return inspect_worktree(worktree, base=base, snapshot={}, occupants=nobody).verdict

    assert verdict() is Verdict.HOLDS_WORK
    saved = save()
    assert verdict() is Verdict.EMPTY
    git(main, "stash", "drop", "-q")
    git(main, "gc", "-q", "--prune=now")
    assert git(main, "show", f"{entry}:README") == "stashed"
    assert git(main, "merge-base", "--is-ancestor", entry, saved.ref) == ""


def test_what_was_saved_survives_the_hardest_garbage_collection(
    save, restore, worktree: Path, main: Path, git: Git
):
    make_a_mess(worktree, git)
    saved = save()
    before = content(worktree)
    git(main, "worktree", "unlock", str(worktree))
    git(main, "worktree", "remove", "--force", str(worktree))
    git(main, "-c", "gc.reflogExpire=now", "gc", "-q", "--prune=now")
    assert content(restore(saved)) == before


def test_a_branch_without_a_commit_is_saved(save, restore, worktree: Path, git: Git):
    git(worktree, "checkout", "-q", "--orphan", "fresh")
    (worktree / "README").write_text("fresh")
    assert content(restore(save())) == content(worktree)


def test_salvage_of_another_repository_s_worktree_is_refused(
    worktree: Path, tmp_path: Path, archives: Path, git: Git
):
    other = tmp_path / "other"
    other.mkdir()
    git(other, "init", "-q")
    with pytest.raises(WorktreeError):
        salvage(
            worktree,
            common_dir=other / ".git",
            task="7",
            epoch=1,
            snapshot={},
            archive_dir=archives,
        )


def test_a_restore_into_a_directory_that_holds_something_is_refused(
    save, repo: Repository, worktree: Path, tmp_path: Path
):
    (worktree / "notes").write_text("x")
    saved = save()
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine").write_text("mine")
    with pytest.raises(WorktreeError):
        restore_salvage(
            common_dir=repo.common_dir,
            commit=saved.commit,
            archive=None,
            into=tmp_path / "full",
        )
    assert [path.name for path in (tmp_path / "full").iterdir()] == ["mine"]


@pytest.mark.parametrize("name", ["files/../escape", "files//etc/escape", "files/link/escape"])
def test_an_archive_never_writes_outside_of_the_directory(
    repo: Repository, tmp_path: Path, name: str
):
    archive = tmp_path / "evil.tar"
    with tarfile.open(archive, "w") as tar:
        link = tarfile.TarInfo("files/link")
        link.type, link.linkname = tarfile.SYMTYPE, str(tmp_path)
        tar.addfile(link)
        tar.addfile(tarfile.TarInfo(name))
    with pytest.raises(GitError):
        restore_salvage(
            common_dir=repo.common_dir, commit=None, archive=archive, into=tmp_path / "into"
        )
    assert not (tmp_path / "escape").exists()


def test_an_archive_that_cannot_be_written_refuses_the_salvage(
    save, worktree: Path, archives: Path
):
    archives.write_text("a file in the way")
    (worktree / ".env").write_text("KEY=1")
    with pytest.raises(GitError):
        save()
