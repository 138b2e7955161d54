"""A host's id: one per machine, whoever makes it first."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import lessor
from lessor.runner import host_id as module
from lessor.runner.host_id import host_id


def test_an_id_is_made_once_and_kept(tmp_path):
    first = host_id(tmp_path / "state")
    assert first.startswith("host_")
    assert host_id(tmp_path / "state") == first
    assert (tmp_path / "state").stat().st_mode & 0o777 == 0o700


def test_two_state_directories_have_different_ids(tmp_path):
    assert host_id(tmp_path / "a") != host_id(tmp_path / "b")


def test_two_machines_that_share_a_home_directory_have_different_ids(tmp_path, monkeypatch):
    machine = tmp_path / "machine-id"
    monkeypatch.setattr(module, "MACHINE_IDS", (machine,))
    machine.write_text("3d1219c7c4c5404aaa1f6d2a48adfda4\n")
    first = host_id(tmp_path)
    machine.write_text("0aa219c7c4c5404aaa1f6d2a48adfda4\n")
    assert host_id(tmp_path) != first


@pytest.mark.parametrize("content", [None, ""])
def test_a_machine_without_an_id_of_its_own_goes_by_its_name(tmp_path, monkeypatch, content):
    machine = tmp_path / "machine-id"
    if content is not None:
        machine.write_text(content)
    monkeypatch.setattr(module, "MACHINE_IDS", (machine,))
    first = host_id(tmp_path)
    assert host_id(tmp_path) == first
    monkeypatch.setattr(os, "uname", lambda: os.uname_result(("Linux", "renamed", "", "", "")))
    assert host_id(tmp_path) != first


def test_processes_that_make_it_at_once_get_the_same(tmp_path):
    code = (
        "import sys; from pathlib import Path; from lessor.runner.host_id import host_id;"
        "print('ready', flush=True); sys.stdin.read(); print(host_id(Path(sys.argv[1])))"
    )
    env = os.environ | {"PYTHONPATH": str(Path(lessor.__file__).parents[1])}
    makers = [
        subprocess.Popen(
            [sys.executable, "-c", code, str(tmp_path / "state")],
            env=env,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(6)
    ]
    for maker in makers:
        assert maker.stdout.readline() == "ready\n"
    for maker in makers:
        maker.stdin.close()
    ids = set()
    for maker in makers:
        ids.add(maker.stdout.read().strip())
        maker.stdout.close()
        assert maker.wait() == 0
    assert len(ids) == 1
    assert ids == {host_id(tmp_path / "state")}
    assert [path.name for path in (tmp_path / "state").iterdir() if path.name[0] == "."] == []
