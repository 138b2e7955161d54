"""The worker that a drill pauses in the middle of a push: claims, renews, pushes what it is told.

Run as `python -m lessor.demo.late_pusher TASK REPOSITORY CLONE REMOTE REF PAUSED LEASE_MS` with
LESSOR_STORE in its environment. A line on stdin is `push COMMIT`, or `pause COMMIT`: the same with
the clone's own pre-push hook, by which git is stopped once PAUSED is there. A third word, `untold`,
says that the remote takes no push options. It says what happened as lines of JSON on stderr, which
the drill reads from a file.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from lessor.connect import connect
from lessor.errors import LessorError
from lessor.git.repository import find_repository
from lessor.ids import new_request_id, new_token
from lessor.model.grant import ClaimRequest, Grant
from lessor.model.lease import Holder
from lessor.model.task import DRILL
from lessor.model.worker import NewWorker
from lessor.publish.claiming import claim_ready
from lessor.publish.pushing import Errand, publish
from lessor.service.lessor import Lessor

_RENEWALS = 4
_LOOK_S = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Orders:
    """What the worker is started with."""

    task: str
    repository: str
    clone: Path
    remote: str
    ref: str
    paused: Path
    lease_ms: int


def main(arguments: list[str]) -> int:
    """Claim, say so, and push until stdin ends."""
    task, repository, clone, remote, ref, paused, lease_ms = arguments
    orders = Orders(
        task=task,
        repository=repository,
        clone=Path(clone),
        remote=remote,
        ref=ref,
        paused=Path(paused),
        lease_ms=int(lease_ms),
    )
    lessor = connect(os.environ["LESSOR_STORE"])
    try:
        grants = _claim(lessor, orders)
    except LessorError as refused:
        _say("nothing", refused)
        return 1
    if not grants:
        _say("nothing", None, text="the task couldn't be claimed")
        return 1
    holder = grants[0].holder
    _say("claimed", None, epoch=holder.epoch, fence=grants[0].fence, lease=holder.lease)
    for line in sys.stdin:
        verb, commit, *more = line.split()
        _push(lessor, holder, orders, verb, commit, told="untold" not in more)
    return 0


def _push(
    lessor: Lessor, holder: Holder, orders: Orders, verb: str, commit: str, *, told: bool
) -> None:
    errand = Errand(
        repo=find_repository(orders.clone),
        remote=orders.remote,
        ref=orders.ref,
        commit=commit,
        judged=True,
        hooks=verb == "pause",
        told=told,
    )
    try:
        publish(lessor, holder, errand)
    except LessorError as refused:
        _say(verb, refused)
    else:
        _say(verb, None, taken=True)


def _claim(lessor: Lessor, orders: Orders) -> list[Grant]:
    worker = lessor.registry.add_worker(NewWorker(agent="drill-a", kind="drill"))
    request = ClaimRequest(
        worker=worker.id,
        request_id=new_request_id(),
        secret=new_token(),
        queue=DRILL,
        repository=orders.repository,
        task=orders.task,
        ttl_ms=orders.lease_ms,
    )
    beats: list[threading.Thread] = []

    def claim(wait_ms: int) -> Sequence[Grant]:
        grants = lessor.leases.claim(request, wait_ms=wait_ms)
        if grants and not beats:  # making it ready may take longer than it lasts
            beats.append(
                threading.Thread(target=_renew, args=(grants[0].holder, orders), daemon=True)
            )
            beats[0].start()
        return grants

    return claim_ready(
        lessor,
        orders.clone,
        orders.repository,
        claim,
        give_back=lambda grant, why: lessor.leases.release(grant.holder, reason=why),
    )


def _renew(holder: Holder, orders: Orders) -> None:
    """Renew until git is stopped; then say so, and touch the store no more.

    A process that is stopped in a transaction would hold a SQLite store's lock for as long.
    """
    own = connect(os.environ["LESSOR_STORE"])
    looks = int(orders.lease_ms / 1_000 / _RENEWALS / _LOOK_S)
    over, look = threading.Event(), 0
    while not orders.paused.exists() and not over.wait(_LOOK_S):
        look += 1
        if look % looks:
            continue
        try:
            holder = replace(holder, version=own.leases.renew_one(holder).version)
        except LessorError:
            over.set()
    own.close()
    _say("quiet", None)


def _say(what: str, refused: LessorError | None, **facts: object) -> None:
    if refused is not None:
        said = refused.facts.get("said", [])
        facts |= {"refused": refused.code, "text": refused.message, "said": said}
    sys.stderr.write(json.dumps({"what": what, **facts}) + "\n")
    sys.stderr.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
