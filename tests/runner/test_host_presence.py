"""Presence: GONE is said only when it is proved."""

import os
import signal
import subprocess
import sys
from dataclasses import astuple, replace
from pathlib import Path

import pytest

import lessor
from lessor.errors import InvalidError
from lessor.runner.host import Presence, abilities, pid_namespace, presence, this_host

HERE = this_host("host_of_the_test")


@pytest.fixture
def sleeper():
    process = subprocess.Popen(["/bin/sleep", "600"])
    yield process
    process.kill()
    process.wait()


def test_a_running_process_is_alive(sleeper):
    sighting = presence(HERE.identify(sleeper.pid), HERE)
    assert sighting.presence is Presence.ALIVE
    assert sighting.reason == f"process {sleeper.pid} runs"


def test_a_stopped_process_is_alive(sleeper):
    identity = HERE.identify(sleeper.pid)
    os.kill(sleeper.pid, signal.SIGSTOP)
    os.waitpid(sleeper.pid, os.WUNTRACED)
    assert presence(identity, HERE).presence is Presence.ALIVE


def test_a_zombie_is_gone(sleeper):
    identity = HERE.identify(sleeper.pid)
    sleeper.kill()
    os.waitid(os.P_PID, sleeper.pid, os.WEXITED | os.WNOWAIT)
    assert Path(f"/proc/{sleeper.pid}").exists()
    sighting = presence(identity, HERE)
    assert sighting.presence is Presence.GONE
    assert "hasn't collected" in sighting.reason


def test_a_collected_process_is_gone(sleeper):
    identity = HERE.identify(sleeper.pid)
    sleeper.kill()
    sleeper.wait()
    assert presence(identity, HERE).presence is Presence.GONE
    assert HERE.identify(sleeper.pid) is None


def test_a_pid_that_passed_to_another_process_is_gone(sleeper):
    identity = HERE.identify(sleeper.pid)
    earlier = replace(identity, start_ticks=identity.start_ticks - 1)
    sighting = presence(earlier, HERE)
    assert sighting.presence is Presence.GONE
    assert "started later" in sighting.reason


def test_another_boot_of_this_host_is_gone(sleeper):
    identity = replace(HERE.identify(sleeper.pid), boot_id="00000000-0000-0000-0000-000000000000")
    assert presence(identity, HERE).presence is Presence.GONE


@pytest.mark.parametrize(
    "changes",
    [
        {"host_id": "host_elsewhere"},
        {"host_id": ""},
        {"boot_id": ""},
        {"pid_namespace": "4026999999/4026531834"},
        {"pid_namespace": ""},
        {"host_id": "host_elsewhere", "boot_id": "another"},
    ],
)
def test_what_counts_elsewhere_is_unknown_even_when_no_process_has_the_pid(sleeper, changes):
    identity = replace(HERE.identify(sleeper.pid), **changes)
    sleeper.kill()
    sleeper.wait()
    assert presence(identity, HERE).presence is Presence.UNKNOWN


def test_a_host_that_does_not_know_its_boot_knows_nothing(sleeper):
    assert presence(HERE.identify(sleeper.pid), replace(HERE, boot_id="")).presence is (
        Presence.UNKNOWN
    )


def test_a_process_that_exists_but_cannot_be_read_is_unknown(sleeper, monkeypatch, tmp_path):
    identity = HERE.identify(sleeper.pid)
    monkeypatch.setattr("lessor.runner.proctable.PROC", tmp_path)
    assert presence(identity, HERE).presence is Presence.UNKNOWN


@pytest.mark.parametrize("pid", [0, -1])
def test_a_pid_that_means_a_group_is_refused(pid):
    with pytest.raises(InvalidError):
        replace(HERE.identify(os.getpid()), pid=pid)


def test_a_process_of_another_pid_namespace_is_told_apart():
    code = "from lessor.runner.host import pid_namespace; print(pid_namespace())"
    env = os.environ | {"PYTHONPATH": str(Path(lessor.__file__).parents[1])}
    unshare = ["unshare", "--pid", "--fork", sys.executable, "-c", code]
    result = subprocess.run(unshare, env=env, capture_output=True, text=True, check=False)
    if result.returncode != 0:
        pytest.skip(f"this machine makes no pid namespaces: {result.stderr.strip()}")
    assert result.stdout.strip() not in ("", pid_namespace())


def test_abilities_say_what_they_are_worth():
    for ability in astuple(abilities()):
        available, sentence = ability
        assert isinstance(available, bool)
        assert sentence.endswith(".")
