"""Who is inside a directory: real processes, whatever they are to it."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from run_rig import git
from supervisor_rig import until

from lessor.git.layout import layout_of
from lessor.git.status import read_status
from lessor.runner import occupants as module
from lessor.runner.occupants import mount_points, occupants

READY = "import sys; print('ready', flush=True); sys.stdin.read()"


@contextmanager
def process(code: str = READY, **how: object) -> Iterator[subprocess.Popen[bytes]]:
    """A process that has done what `code` says first and stays until the block ends."""
    started = subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, **how
    )
    assert started.stdout is not None
    assert started.stdout.readline() == b"ready\n"
    try:
        yield started
    finally:
        started.communicate()


def pids(found: tuple[str, ...] | None) -> list[int]:
    assert found is not None
    return [int(name.rpartition("pid ")[2].rstrip(")")) for name in found]


def test_an_empty_directory_has_nobody_inside(tmp_path: Path) -> None:
    assert occupants(tmp_path) == ()


def test_a_process_that_works_below_is_named(tmp_path: Path) -> None:
    below = tmp_path / "a" / "b"
    below.mkdir(parents=True)
    with process(cwd=below) as inside:
        (name,) = occupants(tmp_path) or ()
        assert name.endswith(f"(pid {inside.pid})")
        assert pids(occupants(below)) == [inside.pid]
    assert occupants(tmp_path) == ()


def test_a_process_that_only_has_a_file_open_is_named(tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    code = f"f = open({str(log)!r}, 'w'); {READY}"
    with process(code, cwd="/") as writer:
        assert pids(occupants(tmp_path)) == [writer.pid]


def test_a_look_of_another_cleaning_is_nobody(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    seen: list[tuple[str, ...] | None] = []
    slow = tmp_path / "slow"
    slow.write_text(
        f"#!/bin/sh\ntouch {tmp_path}/looks\nwhile [ ! -e {tmp_path}/go ]; do sleep 0.05; done\ncat\n"
    )
    slow.chmod(0o755)
    git(tmp_path, "config", "filter.slow.clean", str(slow))
    (tmp_path / ".gitattributes").write_text("*.txt filter=slow\n")
    (tmp_path / "a.txt").write_text("a")
    (tmp_path / "go").touch()
    git(tmp_path, "add", "a.txt")
    (tmp_path / "go").unlink()
    (tmp_path / "looks").unlink()
    (tmp_path / "a.txt").write_text("b")
    layout = replace(layout_of(tmp_path), only_looks=True)
    looking = threading.Thread(target=lambda: read_status(layout))
    looking.start()
    until((tmp_path / "looks").exists, "git looks at the file")
    seen.append(occupants(tmp_path))
    (tmp_path / "go").touch()
    looking.join()
    assert seen == [()]


def test_a_directory_with_a_longer_name_is_another_one(tmp_path: Path) -> None:
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree-2").mkdir()
    with process(cwd=tmp_path / "tree-2"):
        assert occupants(tmp_path / "tree") == ()


def test_a_directory_is_known_by_a_link_to_it(tmp_path: Path) -> None:
    (tmp_path / "tree").mkdir()
    (tmp_path / "link").symlink_to("tree")
    with process(cwd=tmp_path / "link") as inside:
        assert pids(occupants(tmp_path / "link")) == [inside.pid]


def test_a_container_that_knows_it_by_another_name_is_named(tmp_path: Path) -> None:
    (tmp_path / "tree" / "src").mkdir(parents=True)
    (tmp_path / "mnt").mkdir()
    script = f'mount --bind tree mnt && cd mnt/src && exec {sys.executable} -c "$0"'
    asked = ["unshare", "--mount", "--map-root-user", "sh", "-c", script, READY]
    started = subprocess.Popen(
        asked,
        cwd=tmp_path,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert started.stdout is not None
    if started.stdout.readline() != b"ready\n":
        started.communicate()
        pytest.skip("this machine allows no mount namespaces")
    try:
        assert Path(f"/proc/{started.pid}/cwd").readlink() != tmp_path / "tree" / "src"
        assert pids(occupants(tmp_path / "tree")) == [started.pid]
    finally:
        started.communicate()


def test_mount_points_are_read_with_blanks_in_their_names() -> None:
    text = (
        "22 27 0:21 / /proc rw,nosuid - proc proc rw\n"
        "31 22 8:1 /x /home/dana/with\\040blank\\134 rw - ext4 /dev/sda rw\n"
    )
    assert list(mount_points(text)) == [Path("/proc"), Path("/home/dana/with blank\\")]


def test_a_mount_point_may_hold_what_python_takes_for_a_line_end() -> None:
    text = "24 28 0:22 / /mnt/a\u2028b\x85c rw shared:13 - proc proc rw\n"
    assert list(mount_points(text)) == [Path("/mnt/a\u2028b\x85c")]


def test_a_file_system_mounted_below_is_named() -> None:
    found = occupants(Path("/"))
    assert found is not None
    assert "the file system mounted at /proc" in found


def test_where_there_is_no_proc_nobody_can_tell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "PROC", tmp_path / "no-proc")
    assert occupants(tmp_path) is None


def test_elsewhere_without_psutil_nobody_can_tell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "LINUX", False)
    monkeypatch.setitem(sys.modules, "psutil", None)
    assert occupants(tmp_path) is None
