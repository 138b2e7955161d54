"""What Lessor's hooks at a bare repository add to a small push on one machine.

Usage: push.py [TIMES]     default 30
Prints one JSON line: milliseconds of `git push` without hooks, with them to a branch that nobody
leases, and of a leased branch by the call that `lessor push` makes, with and without them.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from lessor import ClaimRequest, NewTask, NewWorker, connect
from lessor.git.repository import find_repository
from lessor.git.server_hooks import FOLDER, install_server_hooks
from lessor.hook import client
from lessor.ids import new_request_id, new_token
from lessor.publish.pushing import Errand, publish
from lessor.receive.keeper import SETTINGS, settings_text, stop_keeper

WARM = 3


def git(cwd: Path, *args: str) -> str:
    who = ["-c", "user.name=Bench", "-c", "user.email=bench@example.org"]
    done = subprocess.run(["git", *who, *args], cwd=cwd, capture_output=True, check=True)
    return os.fsdecode(done.stdout).strip()


def main() -> None:
    times = int(sys.argv[1]) if len(sys.argv) > 1 else 30
    with tempfile.TemporaryDirectory() as folder:
        print(json.dumps({"benchmark": "push", "times": times, "ms": measure(Path(folder), times)}))


def measure(folder: Path, times: int) -> dict[str, dict[str, float]]:
    bare, clone = folder / "site.git", folder / "clone"
    git(folder, "init", "-q", "--bare", "-b", "main", str(bare))
    git(folder, "clone", "-q", str(bare), str(clone))
    git(clone, "checkout", "-q", "-b", "main")
    git(clone, "commit", "-q", "--allow-empty", "-m", "begin")
    git(clone, "push", "-q", "origin", "main")
    store = f"sqlite:///{folder / 'lessor.db'}"
    lessor = connect(store)
    repository = lessor.registry.add_repository("example.org/bench/push").id
    lessor.tasks.submit([NewTask(title="push", repository=repository, scopes=("src",))])
    worker = lessor.registry.add_worker(NewWorker(agent="bench-1", kind="bench", heartbeat=False))
    (grant,) = lessor.leases.claim(
        ClaimRequest(
            worker=worker.id,
            request_id=new_request_id(),
            secret=new_token(),
            repository=repository,
            wanted=1,
        )
    )
    git(clone, "checkout", "-q", "-b", str(grant.branch))

    def plain() -> None:
        git(clone, "push", "-q", "origin", "HEAD:refs/heads/somebody")

    def leased() -> None:
        ref = f"refs/heads/{grant.branch}"
        head = git(clone, "rev-parse", "HEAD")
        repo = find_repository(clone)
        publish(
            lessor,
            grant.holder,
            Errand(repo=repo, remote="origin", ref=ref, commit=head, judged=True),
        )

    found = {"plain": timed(clone, plain, times), "leased": timed(clone, leased, times)}
    install_server_hooks(
        find_repository(bare),
        client=Path(client.__file__),
        base=sys.executable,
        python=sys.executable,
        beside={SETTINGS: settings_text(store=store, listen=None, repository=repository)},
    )
    found |= {
        "plain, hooks": timed(clone, plain, times),
        "leased, hooks": timed(clone, leased, times),
    }
    stop_keeper(bare / FOLDER)
    lessor.close()
    return found


def timed(clone: Path, push: Callable[[], None], times: int) -> dict[str, float]:
    took = []
    for n in range(times + WARM):
        (clone / "src").mkdir(exist_ok=True)
        (clone / "src" / "file").write_text(f"{time.time_ns()}\n")
        git(clone, "add", "-A")
        git(clone, "commit", "-q", "-m", f"work {n}")
        began = time.perf_counter()
        push()
        took.append(1e3 * (time.perf_counter() - began))
    took = took[WARM:]
    return {"median": round(statistics.median(took), 1), "best": round(min(took), 1)}


if __name__ == "__main__":
    main()
