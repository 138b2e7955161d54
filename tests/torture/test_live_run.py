"""A short run of the live harness: it fits the product as it is, and finds nothing."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

RUN = Path(__file__).resolve().parents[2] / "torture" / "run"


@pytest.mark.race
def test_a_short_run_finds_nothing_and_did_something() -> None:
    """A busy machine does nothing in four seconds now and then: then once more, and longer."""
    for seed, seconds in enumerate((4, 8, 16, 32), start=1):
        told = _told(seconds=seconds, seed=seed)
        assert told["violations"] == {}
        if told["claims"] and told["completions"]:
            return
    raise AssertionError(f"nothing was claimed or completed: {told}")


def _told(*, seconds: int, seed: int) -> dict[str, Any]:
    asked = ["--seconds", str(seconds), "--workers", "3", "--faults", "git,stop,kill"]
    done = subprocess.run(
        [sys.executable, RUN, *asked, "--seed", str(seed)],
        check=False,
        capture_output=True,
        text=True,
        timeout=200,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    told: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return told


def test_a_fault_that_there_isnt_is_refused() -> None:
    done = subprocess.run(
        [sys.executable, RUN, "--faults", "stop,earthquake"],
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2
    assert "earthquake" in done.stderr
