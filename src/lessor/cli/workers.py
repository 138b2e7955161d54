"""The worker that a person or script is to the store: registered once, found again by its name."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Sequence
from pathlib import Path

from lessor.cli.invocation import Invocation
from lessor.errors import NotFoundError
from lessor.model.worker import NewWorker

_SLOT = re.compile(r"-\d+$")


def own_worker(
    invocation: Invocation, agent: str, *, kind: str = "", capabilities: Sequence[str] = ()
) -> str:
    """The id of the worker called `agent` of this person on this host.

    No boot and no process are recorded: a script's next command is another process, and may come
    after a reboot. Its leases end by their time, never by proof.

    Args:
        kind: which agents' tasks it may do; else the name without the slot's number.
    """
    registry = invocation.lessor.registry
    wanted = NewWorker(
        agent=agent,
        kind=kind or _SLOT.sub("", agent) or agent,
        host_id=invocation.host_id,
        capabilities=tuple(sorted(capabilities)),
    )
    path = _remembered(invocation, wanted)
    try:
        known = path.read_text(encoding="ascii").strip()
        if registry.worker(known).retired_ms is None:
            return known
    except (OSError, UnicodeDecodeError, NotFoundError):
        pass  # never registered, or in a store that is gone
    made = registry.add_worker(wanted).id
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    draft.touch(mode=0o600)
    draft.write_text(f"{made}\n", encoding="ascii")
    draft.replace(path)
    return made


def _remembered(invocation: Invocation, wanted: NewWorker) -> Path:
    body = [invocation.lessor.store.key, wanted.agent, wanted.kind, list(wanted.capabilities)]
    name = hashlib.sha256(json.dumps(body).encode()).hexdigest()[:32]
    return invocation.settings.workers_dir / name
