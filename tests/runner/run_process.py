"""A run in a process of its own, told by a file of JSON; notes go to stdout, a line each."""

from __future__ import annotations

import faulthandler
import json
import signal
import sys
from dataclasses import asdict, replace
from pathlib import Path

from supervisor_rig import QUICK

from lessor.clock import SystemClock
from lessor.connect import connect
from lessor.errors import LessorError
from lessor.git.repository import find_repository
from lessor.model.lease import terms_for
from lessor.model.retry import RetryPolicy
from lessor.runner.desk import Desk, Plan, RunOptions
from lessor.runner.host import this_host
from lessor.runner.host_id import host_id
from lessor.runner.noting import Note
from lessor.runner.run import Run
from lessor.runner.stopping import Stopping


class Lines:
    def note(self, note: Note) -> None:
        sys.stdout.write(json.dumps({**asdict(note), "kind": note.kind}) + "\n")
        sys.stdout.flush()


def main() -> int:
    faulthandler.register(signal.SIGUSR1)  # a run that doesn't end can be asked where it is
    config = json.loads(Path(sys.argv[1]).read_text())
    root, state = Path(config["root"]), Path(config["state"])
    host = this_host(host_id(Path(config.get("host_state", state))))
    policy = RetryPolicy(first_ms=10, factor=1, ceiling_ms=10)
    plan = Plan(**config.get("plan", {}))
    lessor = connect(config["url"], host_id=host.id, policy=policy)
    desk = Desk(
        lessor=lessor,
        repo=find_repository(root),
        cwd=root,
        repository=config["repository"],
        store_url=config["url"],
        listen_dsn=None,
        state_dir=state,
        host=host,
        clock=SystemClock(),
        options=RunOptions(
            command=tuple(config["command"]),
            agent=config.get("name", "claude"),
            kind="claude",
            workers=config.get("workers", 1),
            terms=terms_for(config.get("ttl_ms", 300_000)),
            patience=replace(QUICK, lost_ms=config.get("lost_ms", QUICK.lost_ms)),
            stay=config.get("stay", False),
        ),
        plan_at=lambda _commit: plan,
        reporter=Lines(),
    )
    stopping = Stopping()
    try:
        with stopping.by_signals():
            return Run(desk, stopping).run()
    except LessorError as error:
        sys.stderr.write(f"{error.code}: {error}\n")
        return error.exit_code
    finally:
        lessor.close()


if __name__ == "__main__":
    sys.exit(main())
