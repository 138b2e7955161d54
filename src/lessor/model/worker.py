"""A worker: a registered session of an agent runner; its id is issued by Lessor."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NewType

WorkerId = NewType("WorkerId", str)


@dataclass(frozen=True, slots=True, kw_only=True)
class NewWorker:
    """What a runner says of itself when it registers.

    Attributes:
        agent: the agent's name, the label's owner: "claude-1".
        kind: the agent's kind that tasks may ask for: "claude"; empty means the name itself.
        host_id: Lessor's own id of the host, never a host name.
        boot_id: the host's boot; another one later proves a restart, on that host's store.
        pid: the process, meaningful only inside `pid_namespace` and with `start_ticks`.
        heartbeat: whether a process of its own renews; it decides the default terms.
    """

    agent: str
    kind: str = ""
    host_id: str = ""
    boot_id: str = ""
    pid: int | None = None
    pid_namespace: str = ""
    start_ticks: int | None = None
    capabilities: tuple[str, ...] = ()
    heartbeat: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Worker:
    """A registered worker."""

    id: WorkerId
    agent: str
    kind: str
    host_id: str
    boot_id: str
    pid: int | None
    pid_namespace: str
    start_ticks: int | None
    capabilities: tuple[str, ...]
    heartbeat: bool
    registered_ms: int
    retired_ms: int | None
