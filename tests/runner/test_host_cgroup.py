"""Cgroups: found where they are mounted, used only where they are ours."""

import os
import subprocess

import pytest
from supervisor_rig import until

from lessor.runner import cgroup
from lessor.runner.cgroup import Cgroup, delegated_directory, locate, make_cgroup

UNIFIED = "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n"
HYBRID = (
    "31 23 0:27 / /sys/fs/cgroup ro shared:9 - tmpfs tmpfs ro\n"
    "32 31 0:28 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n"
    "33 31 0:29 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"
)


@pytest.mark.parametrize(
    ("mounts", "membership", "expected"),
    [
        (UNIFIED, "0::/user.slice/s.scope\n", "/sys/fs/cgroup/user.slice/s.scope"),
        (HYBRID, "4:cpu:/x\n0::/\n", "/sys/fs/cgroup/unified"),
        (UNIFIED.replace("/sys/fs/cgroup", "/a\\040b"), "0::/x\n", "/a b/x"),
        (UNIFIED.replace("0:26 /", "0:26 /pod"), "0::/pod/x\n", "/sys/fs/cgroup/x"),
        (UNIFIED.replace("0:26 /", "0:26 /pod"), "0::/other\n", None),
        (UNIFIED, "4:cpu:/x\n", None),
        (HYBRID.splitlines()[1], "0::/\n", None),
        ("", "0::/\n", None),
    ],
)
def test_our_group_is_located(mounts, membership, expected):
    found = locate(mounts=mounts, membership=membership)
    assert (None if found is None else str(found)) == expected


def test_without_cgroups_none_is_made(monkeypatch, tmp_path):
    monkeypatch.setattr(cgroup, "MOUNTS", tmp_path / "nothing")
    assert make_cgroup("of-the-test") is None


def test_a_group_that_systemd_has_not_delegated_is_left_alone(monkeypatch, tmp_path):
    (tmp_path / "group").mkdir()
    (tmp_path / "group" / "cgroup.procs").touch()
    (tmp_path / "mounts").write_text(f"30 23 0:26 / {tmp_path} rw - cgroup2 cgroup2 rw\n")
    (tmp_path / "membership").write_text("0::/group\n")
    monkeypatch.setattr(cgroup, "MOUNTS", tmp_path / "mounts")
    monkeypatch.setattr(cgroup, "MEMBERSHIP", tmp_path / "membership")
    monkeypatch.setattr(cgroup, "SYSTEMD", tmp_path / "no-systemd")
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert delegated_directory() == tmp_path / "group"
    monkeypatch.setattr(cgroup, "SYSTEMD", tmp_path)
    assert delegated_directory() is None


@pytest.fixture
def group():
    made = make_cgroup(f"of-the-test-{os.getpid()}")
    if made is None:
        pytest.skip("no cgroup v2 is delegated to this process")
    yield made
    made.kill()
    made.remove()


def test_a_group_freezes_and_kills_all_that_was_born_in_it(group):
    shell = subprocess.Popen(
        ["/bin/sh", "-c", "setsid sleep 600 & wait"],
        preexec_fn=group.enter,  # noqa: PLW1509 - this process has one thread
    )
    try:
        group.remove()
        assert group.path.exists()
        assert group.freeze(frozen=True)
        until(lambda: "frozen 1" in (group.path / "cgroup.events").read_text(), "frozen")
        assert group.kill()
        assert shell.wait() == -9
        until(lambda: not (group.path / "cgroup.procs").read_text(), "the detached one ends too")
    finally:
        shell.kill()
        shell.wait()


def test_a_group_that_is_not_there_does_nothing(tmp_path):
    assert not Cgroup(tmp_path / "nothing").kill()
    assert not Cgroup(tmp_path / "nothing").freeze(frozen=True)
