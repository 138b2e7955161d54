"""What an idle worker holds in memory: `lessor run` and the heartbeats of agents that only sleep.

Usage: memory.py [AGENTS]     default 1, side by side; Linux only
Prints one JSON line: kilobytes of the worker and of all heartbeats. `pss` counts a page that two processes share once,
its share to each; `rss` counts it in each.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

LONGEST_S = 60
HEARTBEAT = "lessor.runner.supervisor"


def main(agents: int = 1) -> None:
    with tempfile.TemporaryDirectory() as folder:
        environment = {
            **os.environ,
            "HOME": folder,
            "XDG_STATE_HOME": f"{folder}/state",
            "LESSOR_STORE": f"{folder}/lessor.db",
            **{
                f"GIT_{who}_{what}": "bench@example.org"
                for who in ("AUTHOR", "COMMITTER")
                for what in ("NAME", "EMAIL")
            },
        }
        repository = Path(folder, "repository")
        for command in (
            ["git", "init", "-q", str(repository)],
            ["git", "-C", str(repository), "commit", "-q", "--allow-empty", "-m", "begin"],
        ):
            subprocess.run(command, env=environment, check=True)
        lessor = str(Path(sys.executable).with_name("lessor"))
        for number in range(agents):
            subprocess.run(
                [lessor, "add", f"sleep {number}"],
                env=environment,
                cwd=repository,
                check=True,
                stdout=subprocess.DEVNULL,
            )
        worker = subprocess.Popen(
            [lessor, "run", "-n", str(agents), "--", "sleep", "120"],
            env=environment,
            cwd=repository,
            stdout=subprocess.DEVNULL,
        )
        try:
            heartbeats = _heartbeats_of(worker.pid, agents)
            time.sleep(5)  # past their first renewals
            sizes = {"worker": _sizes([worker.pid]), "heartbeat": _sizes(heartbeats)}
        finally:
            _stop(worker)
    total = {kind: sum(size[kind] for size in sizes.values()) for kind in ("pss", "rss")}
    print(
        json.dumps(
            {"benchmark": "memory", "agents": agents, "kilobytes": {**sizes, "together": total}}
        )
    )


def _stop(worker: subprocess.Popen[bytes]) -> None:
    """Twice stops what runs; two signals that come together are one, so again until it has ended."""
    while worker.poll() is None:
        worker.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            worker.wait(1)


def _heartbeats_of(parent: int, wanted: int) -> list[int]:
    until = time.monotonic() + LONGEST_S
    while time.monotonic() < until:
        found = [child for child in _children(parent) if HEARTBEAT in _command(child)]
        if len(found) == wanted:
            return found
        time.sleep(0.1)
    raise SystemExit(f"{len(found)} heartbeats of {wanted} were started.")


def _children(parent: int) -> list[int]:
    threads = Path(f"/proc/{parent}/task").glob("*/children")
    return [int(child) for thread in threads for child in thread.read_text().split()]


def _command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace")
    except OSError:  # it has ended since
        return ""


def _sizes(pids: list[int]) -> dict[str, int]:
    found = {"pss": 0, "rss": 0}
    for pid in pids:
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:]:
            kind = line.split(":")[0].lower()
            if kind in found:
                found[kind] += int(line.split()[1])
    return found


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
