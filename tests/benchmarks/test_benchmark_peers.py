"""A peer is a process that is asked line by line; what it can't do is a line of the result."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from contestants import FailedError, PeerProcess
from peers.environments import NotInstalledError, Peer, command

PEERS = Path(__file__).resolve().parents[2] / "benchmarks" / "peers"
SCRIPT = """
import os, sys
sys.path.insert(0, sys.argv[1])
from serve import rate, serve

class Calls:
    def one(self, count):
        print("a library says something")
        return rate(count, lambda: None)
    def batch(self, count):
        return None
    def stale(self):
        raise KeyError("no such lease")
    def die(self):
        sys.stderr.write("ValueError: broken\\nat the end\\n")
        sys.stderr.flush()
        os._exit(1)

serve(Calls())
"""


@pytest.fixture
def process(tmp_path: Path) -> Iterator[PeerProcess]:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT, encoding="utf-8")
    started = PeerProcess([sys.executable, str(script), str(PEERS)], tmp_path / "log")
    yield started
    started.close()


def test_what_a_peer_prints_itself_is_no_answer(process: PeerProcess) -> None:
    answer = process.ask("one", count=7)
    assert answer is not None
    assert answer["per_s"] > 0
    assert process.ask("batch", count=7) is None


def test_a_call_that_fails_is_told_and_the_next_one_is_answered(process: PeerProcess) -> None:
    with pytest.raises(FailedError, match="KeyError: 'no such lease'"):
        process.ask("stale")
    assert process.ask("one", count=1)


def test_a_peer_that_dies_is_told_by_its_last_error(process: PeerProcess) -> None:
    with pytest.raises(FailedError, match=r"^ValueError: broken$"):
        process.ask("die")
    with pytest.raises(FailedError, match=r"^ValueError: broken$"):
        process.ask("one", count=1)


def test_a_peer_whose_interpreter_is_missing_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(NotInstalledError, match="node is not on PATH"):
        command(Peer("nobody", ("nothing@1.0",), "nothing.mjs", "postgres"))
