"""What an idle worker holds in memory: `lessor run` and the heartbeat of an agent that only sleeps.

Usage: memory.py     Linux only
Prints one JSON line: kilobytes of each process. `pss` counts a page that two processes share once,
half to each; `rss` counts it twice.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

LONGEST_S = 60
HEARTBEAT = "lessor.runner.supervisor"


def main() -> None:
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
        subprocess.run(
            [lessor, "add", "sleep"],
            env=environment,
            cwd=repository,
            check=True,
            stdout=subprocess.DEVNULL,
        )
        worker = subprocess.Popen(
            [lessor, "run", "--", "sleep", "120"],
            env=environment,
            cwd=repository,
            stdout=subprocess.DEVNULL,
        )
        try:
            heartbeat = _heartbeat_of(worker.pid)
            time.sleep(5)  # past its first renewals
            sizes = {"worker": _sizes(worker.pid), "heartbeat": _sizes(heartbeat)}
        finally:
            worker.terminate()
            worker.terminate()
            worker.wait()
    total = {kind: sum(size[kind] for size in sizes.values()) for kind in ("pss", "rss")}
    print(json.dumps({"benchmark": "memory", "kilobytes": {**sizes, "together": total}}))


def _heartbeat_of(parent: int) -> int:
    until = time.monotonic() + LONGEST_S
    while time.monotonic() < until:
        threads = Path(f"/proc/{parent}/task").glob("*/children")
        for child in " ".join(thread.read_text() for thread in threads).split():
            if HEARTBEAT.encode() in Path(f"/proc/{child}/cmdline").read_bytes():
                return int(child)
        time.sleep(0.1)
    raise SystemExit("No heartbeat was started.")


def _sizes(pid: int) -> dict[str, int]:
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    found = {line.split(":")[0].lower(): int(line.split()[1]) for line in lines[1:]}
    return {kind: found[kind] for kind in ("pss", "rss")}


main()
