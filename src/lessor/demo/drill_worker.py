"""The worker that a drill pauses: claims, waits to be woken, then tries every write of a holder.

Run as `python -m lessor.demo.drill_worker TASK REPOSITORY LEASE_MS` with LESSOR_STORE in its
environment (a store's URL may hold a password, and arguments are everybody's to read); it says what
happened as lines of JSON on stderr, which the drill reads from a file.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable

from lessor.connect import connect
from lessor.errors import LessorError
from lessor.ids import new_request_id, new_token
from lessor.model.grant import ClaimRequest, Failure, Result
from lessor.model.lease import Holder
from lessor.model.task import DRILL
from lessor.model.worker import NewWorker
from lessor.service.lessor import Lessor


def main(arguments: list[str]) -> int:
    """Claim, say so, then try everything once a line comes on stdin, and again after the next."""
    task, repository, lease_ms = arguments
    lessor = connect(os.environ["LESSOR_STORE"])
    worker = lessor.registry.add_worker(NewWorker(agent="drill-a", kind="drill"))
    grants = lessor.leases.claim(
        ClaimRequest(
            worker=worker.id,
            request_id=new_request_id(),
            secret=new_token(),
            queue=DRILL,
            repository=repository,
            task=task,
            ttl_ms=int(lease_ms),
        )
    )
    if not grants:
        _say("nothing", "the task couldn't be claimed")
        return 1
    _say("claimed", "", epoch=grants[0].epoch, fence=grants[0].fence)
    for _ in sys.stdin:
        _try_all(lessor, grants[0].holder)
        _say("tried", "")
    return 0


def _try_all(lessor: Lessor, holder: Holder) -> None:
    tries: dict[str, Callable[[], object]] = {
        "renew": lambda: lessor.leases.renew_one(holder),
        "widen": lambda: lessor.leases.widen(holder, ["drill/late"]),
        "release": lambda: lessor.leases.release(holder, reason="late"),
        "fail": lambda: lessor.leases.fail(holder, Failure(error="late")),
        "ask": lambda: lessor.leases.ask(holder, "late?"),
        "complete": lambda: lessor.leases.complete_one(
            holder, Result(said="the paused worker's result")
        ),
    }
    for name, write in tries.items():
        try:
            write()
        except LessorError as refused:
            _say(name, str(refused), refused=refused.code)
        else:
            _say(name, "", accepted=True)


def _say(what: str, text: str, **facts: object) -> None:
    sys.stderr.write(json.dumps({"what": what, "text": text, **facts}) + "\n")
    sys.stderr.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
