"""A short run of the live harness: it fits the product as it is, and finds nothing."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

RUN = Path(__file__).resolve().parents[2] / "torture" / "run"


@pytest.mark.race
def test_a_short_run_finds_nothing_and_did_something() -> None:
    asked = ["--seconds", "4", "--workers", "3", "--faults", "git,stop,kill", "--seed", "1"]
    done = subprocess.run(
        [sys.executable, RUN, *asked], check=False, capture_output=True, text=True, timeout=200
    )
    assert done.returncode == 0, done.stdout + done.stderr
    told = json.loads(done.stdout.splitlines()[-1])
    assert told["violations"] == {}
    assert told["claims"] > 0
    assert told["completions"] > 0


def test_a_fault_that_there_isnt_is_refused() -> None:
    done = subprocess.run(
        [sys.executable, RUN, "--faults", "stop,earthquake"],
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2
    assert "earthquake" in done.stderr
