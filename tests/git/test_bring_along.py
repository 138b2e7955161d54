"""Ignored files come along where they are named, stay ignored, and no link is followed out."""

from __future__ import annotations

import contextlib
import errno
import os
import resource
import shutil
import signal
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from lessor.errors import GitError, InvalidError
from lessor.git.bring import DEFAULT_PATTERNS, bring_along, include_patterns

Git = Callable[..., str]


def write(top: Path, *paths: str) -> None:
    for path in paths:
        (top / path).parent.mkdir(parents=True, exist_ok=True)
        (top / path).write_text(f"content of {path}")


@pytest.fixture
def ignore_more(main: Path, git: Git) -> None:
    """Commits an ignore file that covers what the tests bring; asked for before the worktree."""
    (main / ".gitignore").write_text(
        ".env*\n*.local.json\nbuild/\nnode_modules/\nsecrets/\n*.odd\n"
    )
    git(main, "commit", "-q", "-am", "ignore more")


def test_the_default_is_environments_and_local_settings(ignore_more, main: Path, worktree: Path):
    write(main, ".env", ".env.local", "web/.env", ".claude/settings.local.json", "build/x")
    (main / ".env").chmod(0o600)
    brought = bring_along(main, worktree)
    assert brought == [".claude/settings.local.json", ".env", ".env.local", "web/.env"]
    assert (worktree / "web" / ".env").read_text() == "content of web/.env"
    assert stat.S_IMODE((worktree / ".env").stat().st_mode) == 0o600
    assert (worktree / ".env").stat().st_mtime_ns == (main / ".env").stat().st_mtime_ns


def test_patterns_are_those_of_gitignore(ignore_more, main: Path, worktree: Path):
    write(main, "secrets/a.pem", "secrets/b.pem", "secrets/deep/c.pem", ".env", "build/d.pem")
    patterns = include_patterns("# keys\nsecrets/**/*.pem\n!b.pem\n/.env\n")
    brought = bring_along(main, worktree, patterns)
    assert brought == [".env", "secrets/a.pem", "secrets/deep/c.pem"]


def test_what_git_tracks_or_leaves_untracked_is_not_brought(
    ignore_more, main: Path, worktree: Path
):
    write(main, "untracked")
    assert bring_along(main, worktree, ["*"]) == []


def test_dependencies_come_only_where_they_are_named(ignore_more, main: Path, worktree: Path):
    write(main, "node_modules/pkg/.env", "node_modules/pkg/index.js")
    assert bring_along(main, worktree) == []
    brought = bring_along(main, worktree, ["node_modules/"])
    assert brought == ["node_modules/pkg/.env", "node_modules/pkg/index.js"]


def test_another_repository_in_an_ignored_directory_is_left_alone(
    ignore_more, main: Path, worktree: Path, git: Git
):
    git(main, "worktree", "add", "-q", "-b", "other", str(main / "build" / "other"))
    write(main, "build/other/.env", "build/.env")
    assert bring_along(main, worktree) == ["build/.env"]


def test_what_is_there_already_stays(ignore_more, main: Path, worktree: Path):
    write(main, ".env")
    (worktree / ".env").write_text("the agent's")
    assert bring_along(main, worktree) == []
    assert (worktree / ".env").read_text() == "the agent's"


def test_links_stay_links_and_none_leads_out(
    ignore_more, main: Path, worktree: Path, tmp_path: Path
):
    (tmp_path / "outside").write_text("outside")
    write(main, ".env")
    (main / ".env.inside").symlink_to(".env")
    (main / ".env.outside").symlink_to("../outside")
    (main / ".env.absolute").symlink_to(main / ".env")
    (main / "secrets").symlink_to(tmp_path)
    assert bring_along(main, worktree, [".env*", "secrets", "secrets/"]) == [
        ".env",
        ".env.inside",
    ]
    assert (worktree / ".env.inside").readlink() == Path(".env")


def test_nothing_is_written_through_a_link_in_the_worktree(
    ignore_more, main: Path, worktree: Path, tmp_path: Path
):
    write(main, "secrets/key")
    outside = tmp_path / "outside"
    outside.mkdir()
    (worktree / "secrets").symlink_to(outside)
    assert bring_along(main, worktree, ["secrets/"]) == []
    assert list(outside.iterdir()) == []


def test_a_file_in_the_place_of_a_directory_stays(
    ignore_more, main: Path, worktree: Path, git: Git
):
    write(main, "secrets/key", ".env")
    write(worktree, "secrets")
    assert bring_along(main, worktree, ["secrets/", ".env"]) == [".env"]
    assert (worktree / "secrets").read_text() == "content of secrets"


_UNPRIVILEGED = (
    *("setpriv", "--bounding-set=-dac_override,-dac_read_search", "--inh-caps=-all"),
    *(sys.executable, "-c"),
)


@pytest.mark.parametrize(
    ("patterns", "told"),
    [
        (DEFAULT_PATTERNS, "['.env']"),
        (["build/"], "Permission denied"),
        (["/build/key"], "Permission denied"),
    ],
)
def test_a_directory_that_cant_be_read_matters_where_a_pattern_leads_into_it(
    ignore_more, main: Path, worktree: Path, patterns: list[str], told: str
):
    """As of a container's data, which is another user's."""
    write(main, "build/x", ".env")
    (main / "build").chmod(0)
    program = (
        "from pathlib import Path\n"
        "from lessor.git.bring import bring_along\n"
        f"print(bring_along(Path({str(main)!r}), Path({str(worktree)!r}), {patterns!r}))\n"
    )
    asroot = os.geteuid() == 0
    if asroot and shutil.which("setpriv") is None:
        pytest.skip("root reads everything")
    command = [*_UNPRIVILEGED[(0 if asroot else -2) :], program]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    (main / "build").chmod(0o700)
    assert told in done.stdout + done.stderr


def test_what_goes_while_it_is_looked_at_is_left_out(
    ignore_more, main: Path, worktree: Path, monkeypatch: pytest.MonkeyPatch
):
    """A build is at work in the person's checkout."""
    write(main, "build/a/x", "build/b/.env", ".env", ".env.gone")
    scandir = os.scandir

    def building(path: Path) -> object:
        monkeypatch.setattr(os, "scandir", scandir)
        (main / "build/b/.env").unlink()
        (main / "build/b").rmdir()
        (main / ".env.gone").unlink()
        with scandir(path) as listing:
            return contextlib.nullcontext([*listing, *gone])

    with scandir(main / "build") as listing:
        gone = [entry for entry in listing if entry.name == "b"]
    monkeypatch.setattr(os, "scandir", building)
    assert bring_along(main, worktree) == [".env"]


def test_odd_names_come_along(ignore_more, main: Path, worktree: Path):
    name = os.fsdecode(b'caf\xe9\n"quoted".odd')
    (main / name).write_text("x")
    assert bring_along(main, worktree, ["*.odd"]) == [name]


def test_a_pattern_that_cannot_be_read_is_refused(ignore_more, main: Path, worktree: Path):
    with pytest.raises(InvalidError, match="worktreeinclude"):
        bring_along(main, worktree, ["!"])


def test_a_secret_that_the_other_commit_does_not_ignore_stays_away(
    main: Path, worktree: Path, git: Git
):
    (main / ".gitignore").write_text("*.pem\n")
    git(main, "commit", "-q", "-am", "ignore keys from now on")
    write(main, "server.pem")
    assert bring_along(main, worktree, ["*.pem"]) == []


def test_without_a_file_the_default_patterns_hold():
    assert include_patterns(None) == DEFAULT_PATTERNS
    assert include_patterns("") == ()
    assert include_patterns(".env\r\na\u2028b\n") == (".env", "a\u2028b")


def test_half_a_copy_is_never_taken_for_a_file_that_was_there(main: Path, worktree: Path):
    """A full disk ends it in the middle; here a limit does."""
    (main / ".env").write_text("KEY=1\n" * 10_000)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, before[1]))
    try:
        with pytest.raises(GitError, match="can't be brought"):
            bring_along(main, worktree)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert bring_along(main, worktree) == [".env"]
    assert (worktree / ".env").read_text() == (main / ".env").read_text()


def test_who_is_killed_while_it_copies_leaves_nothing_that_passes_for_the_file(
    main: Path, worktree: Path
):
    (main / ".env").write_bytes(b"x" * 300_000)
    killed = subprocess.run(
        [sys.executable, "-c", _KILLED_AT_A_THIRD, str(main), str(worktree)], check=False
    )
    assert killed.returncode == -signal.SIGXFSZ
    assert (worktree / ".env").stat().st_size == 100_000
    assert bring_along(main, worktree) == [".env"]
    assert (worktree / ".env").read_bytes() == b"x" * 300_000


def test_a_copy_is_on_the_disk_before_it_passes_for_the_file(
    main: Path, worktree: Path, monkeypatch: pytest.MonkeyPatch
):
    """Else a power cut could leave its mode and none of its bytes."""
    (main / ".env").write_bytes(b"x" * 300_000)
    flushed: list[tuple[int, int]] = []
    fsync = os.fsync

    def recorded(handle: int) -> None:
        fsync(handle)
        found = os.fstat(handle)
        flushed.append((found.st_size, stat.S_IMODE(found.st_mode)))

    monkeypatch.setattr(os, "fsync", recorded)
    assert bring_along(main, worktree) == [".env"]
    assert flushed == [(300_000, 0o200)]
    assert (worktree / ".env").stat().st_mtime_ns == (main / ".env").stat().st_mtime_ns


_KILLED_AT_A_THIRD = """
import resource, signal, sys
from pathlib import Path
from lessor.git.bring import bring_along
signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
bring_along(Path(sys.argv[1]), Path(sys.argv[2]))
"""


def test_a_file_that_cant_be_brought_stays_open_nowhere(
    main: Path, worktree: Path, monkeypatch: pytest.MonkeyPatch
):
    (main / ".env").write_text("secret")
    really, opened = os.open, []

    def refusing(path: Path, flags: int, *more: int) -> int:
        if flags & os.O_CREAT:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        opened.append(really(path, flags, *more))
        return opened[-1]

    with monkeypatch.context() as full:
        full.setattr(os, "open", refusing)
        with pytest.raises(GitError, match="No space left"):
            bring_along(main, worktree)
    for number in opened:
        with pytest.raises(OSError, match="Bad file descriptor"):
            os.fstat(number)
