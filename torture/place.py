"""Where a run happens: its folder, its store, the ways to it, its remote, and what can be done to them here."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from lessor.connect import connect
from lessor.model.shadow import Unlanded
from lessor.service.lessor import Lessor
from torture import bouncer, clocks, disk, namespaces
from torture.arena import POLICY
from torture.bare import BareRemote
from torture.cluster import Cluster, url_of
from torture.proxy import Proxy

FAULTS = {
    "stop": "SIGSTOP, mostly for longer than a lease, then SIGCONT",
    "kill": "SIGKILL",
    "midcall": "death in the middle of a call",
    "git": "fenced pushes to a real remote, with a hook that makes them slow and late",
    "full": "a full disk under the store (SQLite) and under the workers' clones",
    "clock": "steps of the store's wall clock",
    "net": "the way to PostgreSQL cut, silent, deaf, slow, or cut after the server has answered",
    "partition": "half of the workers cut off, packets lost without a word: a network namespace's link, else the proxy",
    "failover": "SIGKILL to the primary, the synchronous standby promoted",
    "pooler": "PgBouncer in transaction mode between one host and the server",
}
ONLY_POSTGRES = frozenset({"net", "partition", "failover", "pooler"})
HOSTS = 2
SPARED = 2
"""Workers that are never stopped, killed or partitioned, beside those that are."""


class Place:
    """Made at once, and taken away by `close`.

    Attributes:
        skipped: a reason for each fault that there can't be here.
        fronts: the way of each host to PostgreSQL.
        no_namespaces: why partitions are made by the proxy instead.
    """

    def __init__(self, store: str, faults: Sequence[str]) -> None:
        self.store = store
        self.skipped: dict[str, str] = {}
        self.faults = {fault for fault in faults if self._can(fault)}
        self.folder = Path(tempfile.mkdtemp(prefix="lessor-torture-"))
        self.folder.chmod(0o755)
        self.logs = self.folder / "logs"
        self.logs.mkdir()
        self._undo = ExitStack()
        self.disk: disk.SmallDisk | None = None
        self.clock: clocks.SteppedClock | None = None
        self.cluster: Cluster | None = None
        self.fronts: list[Proxy] = []
        self.no_namespaces = ""
        self.hosts: list[namespaces.Namespace] = []
        self.remote: BareRemote | None = None
        try:
            self._make()
        except BaseException:
            self.close(keep=False)
            raise

    @property
    def way(self) -> str:
        """What a partition is made of here."""
        if self.hosts:
            return "network namespaces (veth links that go down)"
        return "the harness's own TCP proxy"

    def url(self, host: int | None) -> str:
        """The store as a worker reaches it that runs on one of the hosts; None is nobody's, and never partitioned."""
        if not self.fronts:
            return self.direct_url
        if host is None:
            return url_of("127.0.0.1", self.fronts[HOSTS].port)
        address = self.hosts[host % HOSTS].address if self.hosts else "127.0.0.1"
        return url_of(address, self.fronts[host % HOSTS].port)

    @property
    def direct_url(self) -> str:
        """The store as the harness reaches it, without a fault on the way."""
        return self.cluster.url if self.cluster else f"sqlite://{self.state / 'lessor.db'}"

    def prefix(self, host: int | None) -> list[str]:
        """What a worker's command line begins with."""
        if host is None or not self.hosts:
            return []
        return self.hosts[host % HOSTS].prefix()

    @property
    def clock_file(self) -> str:
        """What a SQLite store's workers read how far their wall clock is ahead from; empty without."""
        return str(self.clock.file) if self.clock and self.store == "sqlite" else ""

    def lessor(self) -> Lessor:
        """A connection of the harness's own."""
        clock = self.clock.seen() if self.clock_file and self.clock else None
        return connect(self.direct_url, policy=POLICY, clock=clock)

    def repositories(self) -> tuple[str, str]:
        """The plain repository and the fenced one, registered; the latter is empty without git."""
        lessor = self.lessor()
        try:
            plain = str(lessor.registry.add_repository("torture/plain").id)
            fenced = ""
            if self.remote is not None:
                fenced = str(lessor.registry.add_repository("torture/fenced").id)
                lessor.registry.set_fence_remote(fenced, "origin")
            for repository in filter(None, (plain, fenced)):
                lessor.registry.set_unlanded(repository, Unlanded.IGNORE)
        finally:
            lessor.close()
        return plain, fenced

    def close(self, *, keep: bool) -> None:
        """Take everything away; `keep` leaves the logs."""
        self._undo.close()
        if not keep:
            shutil.rmtree(self.folder, ignore_errors=True)

    def _can(self, fault: str) -> bool:
        why = ""
        if self.store == "sqlite" and fault in ONLY_POSTGRES:
            return False
        if fault == "full":
            why = disk.why_not()
        elif fault == "clock" and self.store == "postgres":
            why = clocks.why_not()
        elif fault == "pooler":
            why = bouncer.why_not()
        elif fault == "git" and shutil.which("git") is None:
            why = "there is no git here"
        if why:
            self.skipped[fault] = why
        return not why

    def _make(self) -> None:
        self.state = self.folder / "state"
        if "full" in self.faults:
            self.disk = disk.SmallDisk(self.state)
            self._undo.callback(self.disk.close)
        else:
            self.state.mkdir()
        if "clock" in self.faults:
            self.clock = clocks.SteppedClock(self.folder / "clock")
        if "git" in self.faults:
            self.remote = BareRemote(self.folder / "remote.git")
        if self.store == "postgres":
            self._make_postgres()

    def _make_postgres(self) -> None:
        env = self.clock.env if self.clock else {}
        self.cluster = Cluster(self.folder / "postgres", standby="failover" in self.faults, env=env)
        self._undo.callback(self.cluster.close)
        self.no_namespaces = namespaces.why_not() if "partition" in self.faults else ""
        if "partition" in self.faults and not self.no_namespaces:
            self.hosts = namespaces.make_namespaces(HOSTS)
            self._undo.callback(namespaces.remove_namespaces, self.hosts)
        # Behind a pooler the way to the server may be moved; before it, it is cut.
        self._back = Proxy(self.cluster.place)
        self._undo.callback(self._back.close)
        direct = pooled = ("127.0.0.1", self._back.port)
        if "pooler" in self.faults:
            pool = bouncer.Bouncer(direct)
            self._undo.callback(pool.close)
            pooled = pool.place
        here = [host.address for host in self.hosts] or ["127.0.0.1"] * HOSTS
        # One host's workers go through the pooler, the others' straight to the server, with plans that it keeps.
        ways = [pooled, *[direct] * (HOSTS - 1), direct]
        for address, target in zip([*here, "127.0.0.1"], ways, strict=True):
            front = Proxy(target, host=address)
            self._undo.callback(front.close)
            self.fronts.append(front)

    def fail_over(self) -> None:
        """Kill the primary, promote the standby, and lead everybody there."""
        if self.cluster is None:
            return
        self.cluster.kill_primary()
        self.cluster.promote()
        self._back.target = self.cluster.place
        self._back.cut()
