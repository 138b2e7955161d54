"""Starts the workers of a run, replaces those that died, and does to all of them what a seed says."""

from __future__ import annotations

import heapq
import itertools
import json
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from random import Random

import psycopg

from lessor.clock import SystemClock
from torture.log import Log, boottime_ns
from torture.place import HOSTS, SPARED, Place
from torture.worker import Orders

ROOT = Path(__file__).resolve().parents[1]
TICK_MS = 20
FAILOVER_EVERY = 20
"""Of so many faults' time one is a failover, which takes as long as all others."""
LONGEST_START_MS = 60_000
LONGEST_STOP_MS = 45_000
CALM_MS = 2_000
"""Between two faults of the way to the store: one after the other is to be survived, all at once isn't."""
ON_THE_WAY = frozenset({"net", "partition", "failover"})
LONG = 0.1
"""How many stops and partitions are long: several terms, and longer than a server waits for anybody."""
WEIGHTS = {
    "stop": 5,
    "kill": 4,
    "midcall": 4,
    "net": 5,
    "partition": 3,
    "git": 2,
    "full": 1,
    "clock": 2,
}


@dataclass(slots=True, kw_only=True)
class Running:
    """A worker's process."""

    name: str
    place: int
    process: subprocess.Popen[bytes]
    errors: Path
    stopped: bool = False
    doomed_at: int = 0


class Nemesis:
    """The workers and what befalls them.

    Attributes:
        counts: what was done, by kind.
        stuck: workers that had to be killed at the end, as they answered nobody.
        broken: workers that ended by themselves, with their last words.
    """

    def __init__(
        self,
        place: Place,
        rng: Random,
        *,
        workers: int,
        ttl_ms: int,
        every_ms: int = 1_000,
        long: int = 30,
        enough: int = 12,
    ) -> None:
        self.place = place
        self.counts: Counter[str] = Counter()
        self.stuck: list[str] = []
        self.broken: list[str] = []
        self._rng = rng
        self._ttl_ms = ttl_ms
        self._every_ms = every_ms
        self._long = long
        self._enough = enough
        self._clock = SystemClock()
        self._log = Log(place.logs / "nemesis.jsonl", begin="nemesis")
        self._later: list[tuple[int, int, Callable[[], None]]] = []
        self._order = itertools.count()
        self._numbers = itertools.count()
        self._plain, self._fenced = place.repositories()
        self._next_failover = 0
        self._calm_at = 0
        self._slow = self._is_full = False
        self._failing: threading.Thread | None = None
        self._running = [self._start(n) for n in range(workers)]
        self._spared = [self._start(n, spared=True) for n in range(SPARED)]

    def await_workers(self) -> None:
        """Return once all of them work: on a busy machine starting takes as long as a short run."""
        latest = self._clock.boottime_ms() + LONGEST_START_MS
        for one in [*self._running, *self._spared]:
            log = self.place.logs / f"{one.name}.jsonl"
            while not (log.exists() and b'"ready"' in log.read_bytes()[:2000]):
                if self._clock.boottime_ms() > latest or one.process.poll() is not None:
                    raise RuntimeError(f"{one.name} didn't begin: {one.errors.read_text()[-600:]}")
                self._clock.wait(TICK_MS)

    def run(self, until_ms: int, tell: Callable[[], None]) -> None:
        """Strike until the boot clock says so; `tell` is called at each tick."""
        next_blow = self._clock.boottime_ms() + 2 * self._every_ms
        self._next_failover = self._clock.boottime_ms() + FAILOVER_EVERY * self._every_ms // 2
        while (now := self._clock.boottime_ms()) < until_ms:
            self._do_what_is_due(now)
            self._replace_the_dead()
            if now >= next_blow:
                self._strike()
                next_blow = now + self._rng.randrange(self._every_ms // 3, self._every_ms * 5 // 3)
            self._fail_over(now)
            tell()
            self._clock.wait(TICK_MS)

    def calm(self) -> None:
        """End every fault, and let the workers end; none of them gives anything back."""
        self._do_what_is_due(2**62)
        if self._failing is not None:
            self._failing.join()
        for front in self.place.fronts:
            front.calm()
        if self.place.clock is not None:
            self._step(-self.place.clock.ahead_ms)
        everybody = [*self._running, *self._spared]
        for one in everybody:
            one.process.send_signal(signal.SIGTERM)
        latest = self._clock.boottime_ms() + LONGEST_STOP_MS
        for one in everybody:
            left = max(0.1, (latest - self._clock.boottime_ms()) / 1000)
            try:
                one.process.wait(left)
            except subprocess.TimeoutExpired:
                self.stuck.append(one.name)
                one.process.kill()
                one.process.wait()
            self._judge(one)

    def kill_all(self) -> None:
        """Whatever happens, nothing of this stays."""
        for one in [*self._running, *self._spared]:
            if one.process.poll() is None:
                one.process.kill()
                one.process.wait()

    def _start(self, place: int, *, spared: bool = False) -> Running:
        name = f"w{next(self._numbers):04}"
        orders = Orders(
            url=self.place.url(None if spared else place),
            log=str(self.place.logs / f"{name}.jsonl"),
            seed=self._rng.randrange(2**32),
            agent=f"spared-{place}" if spared else f"agent-{place}",
            ttl_ms=self._ttl_ms,
            careless=not spared and self._rng.random() < 0.4,
            spared="" if not spared else "fenced" if place and self._fenced else "plain",
            plain=self._plain,
            fenced=self._fenced,
            clone=str(self.place.state / f"clone-{place}{'-spared' if spared else ''}"),
            remote=str(self.place.remote.folder) if self.place.remote else "",
            clock=self.place.clock_file,
            long=self._long,
            enough=self._enough,
        )
        errors = self.place.folder / f"{name}.err"
        with errors.open("wb") as out:
            process = subprocess.Popen(
                [
                    *self.place.prefix(None if spared else place),
                    sys.executable,
                    "-m",
                    "torture.worker",
                    json.dumps(asdict(orders)),
                ],
                stderr=out,
                cwd=ROOT,
            )
        return Running(name=name, place=place, process=process, errors=errors)

    def _replace_the_dead(self) -> None:
        for place, one in enumerate(self._running):
            if one.process.poll() is None:
                continue
            if one.doomed_at:
                self._note("midcall", since=one.doomed_at, who=one.name)
            else:
                self._judge(one)
            self._running[place] = self._start(one.place)

    def _judge(self, one: Running) -> None:
        code = one.process.poll()
        if code not in {0, -signal.SIGKILL, -signal.SIGALRM, -signal.SIGTERM}:
            words = one.errors.read_text(encoding="utf-8", errors="replace").strip()
            self.broken.append(f"{one.name} ended with {code}: {words[-600:]}")

    def _strike(self) -> None:
        kinds = sorted(self.place.faults & WEIGHTS.keys())
        if self._clock.boottime_ms() < self._calm_at:
            kinds = [kind for kind in kinds if kind not in ON_THE_WAY]
        if not kinds:
            return
        kind = self._rng.choices(kinds, weights=[WEIGHTS[kind] for kind in kinds])[0]
        getattr(self, f"_do_{kind}")()

    def _do_stop(self) -> None:
        one = self._rng.choice(self._running)
        if one.stopped or one.process.poll() is not None:
            return
        one.stopped = True
        one.process.send_signal(signal.SIGSTOP)
        since = boottime_ns()

        def resume() -> None:
            one.stopped = False
            one.process.send_signal(signal.SIGCONT)
            self._note("stop", since=since, who=one.name)

        self._in(self._time(0.1, 2.2 if self._rng.random() < 0.7 else 0.6), resume)

    def _do_kill(self) -> None:
        one = self._rng.choice(self._running)
        if one.process.poll() is None and not one.doomed_at:
            since = boottime_ns()
            one.process.kill()
            one.process.wait()
            self._note("kill", since=since, who=one.name)
            place = self._running.index(one)
            self._running[place] = self._start(one.place)

    def _do_midcall(self) -> None:
        one = self._rng.choice(self._running)
        if one.process.poll() is None and not one.doomed_at and not one.stopped:
            one.doomed_at = boottime_ns()
            one.process.send_signal(signal.SIGUSR1)

    def _do_net(self) -> None:
        kind = self._rng.choice(("cut", "swallow", "silence", "deafen", "delay"))
        since, lasting = boottime_ns(), 0
        seconds = self._on_the_way(self._time(0.1, 1.0)) / 1000
        each_s, ends_cut = self._rng.random() * 0.2, self._rng.random() < 0.5
        for front in self.place.fronts:
            if kind in {"cut", "swallow"}:
                getattr(front, kind)()
                continue
            lasting = int(seconds * 1e9)
            if kind == "delay":
                front.delay(each_s, seconds)
            else:
                getattr(front, kind)(seconds)
            if kind == "deafen" and ends_cut:  # the answers are never heard
                self._in(int(seconds * 900), front.cut)
        self._note(f"net {kind}", since=since, for_ns=lasting)

    def _do_partition(self) -> None:
        host = self._rng.randrange(HOSTS)
        since, lasting = boottime_ns(), self._on_the_way(self._pause(1.7))
        if self.place.hosts:
            self.place.hosts[host].set_link(up=False)
        else:
            self.place.fronts[host].silence(lasting / 1000)

        def join() -> None:
            if self.place.hosts:
                self.place.hosts[host].set_link(up=True)
            self._note("partition", since=since, who=f"host {host}")

        self._in(lasting, join)

    def _do_git(self) -> None:
        remote = self.place.remote
        if remote is None or self._slow:
            return
        since, self._slow = boottime_ns(), True
        each_ms = self._time(0.2, 1.3)
        remote.slow(each_ms / 1000)

        def end() -> None:
            remote.slow(0)
            self._slow = False
            self._note("git slow", since=since, for_ns=each_ms * 1_000_000)  # who waits still waits

        self._in(self._time(0.3, 1.2), end)

    def _do_full(self) -> None:
        disk = self.place.disk
        if disk is None or self._is_full:
            return
        since, self._is_full = boottime_ns(), True
        disk.fill()

        def end() -> None:
            disk.empty()
            self._is_full = False
            self._note("full", since=since)

        self._in(self._time(0.2, 0.8), end)

    def _do_clock(self) -> None:
        if self.place.clock is not None:
            by_ms = self._rng.choice((-1, 1)) * self._time(0.1, 1.5)
            ahead = self.place.clock.ahead_ms
            if abs(ahead + by_ms) > 2 * self._ttl_ms:
                by_ms = -by_ms
            self._step(by_ms)

    def _step(self, by_ms: int) -> None:
        """Set back, the store's clock stands until the wall clock has caught up with what it had read."""
        clock, since = self.place.clock, boottime_ns()
        if clock is None or by_ms == 0:
            return
        clock.step(by_ms)
        kind = "clock back" if by_ms < 0 else "clock"
        self._note(kind, since=since, for_ns=max(0, -by_ms) * 1_000_000)

    def _fail_over(self, now: int) -> None:
        cluster = self.place.cluster
        if "failover" not in self.place.faults or cluster is None or now < self._next_failover:
            return
        if now < self._calm_at or (self._failing is not None and self._failing.is_alive()):
            return
        self._on_the_way(CALM_MS)
        self._next_failover = now + self._rng.randrange(
            FAILOVER_EVERY * self._every_ms // 2, FAILOVER_EVERY * self._every_ms * 3 // 2
        )

        def fail_over() -> None:
            if cluster.has_standby:
                since = boottime_ns()
                self.place.fail_over()
                self._note("failover", since=since)
            with suppress(RuntimeError, TimeoutError, psycopg.Error):  # the next turn tries again
                cluster.build_standby()

        self._failing = threading.Thread(target=fail_over)
        self._failing.start()

    def _on_the_way(self, milliseconds: int) -> int:
        self._calm_at = self._clock.boottime_ms() + milliseconds + CALM_MS
        return milliseconds

    def _pause(self, longest: float) -> int:
        """Mostly around a term; now and then several."""
        return self._time(3, 6) if self._rng.random() < LONG else self._time(0.1, longest)

    def _note(self, kind: str, *, since: int, who: str = "", for_ns: int = 0) -> None:
        self._log.note(fault=kind, **{"from": since}, who=who, for_ns=for_ns)
        self.counts[kind] += 1

    def _time(self, low: float, high: float) -> int:
        """A duration in milliseconds, between so many terms."""
        return int(self._ttl_ms * (low + (high - low) * self._rng.random()))

    def _in(self, milliseconds: int, action: Callable[[], None]) -> None:
        due = self._clock.boottime_ms() + milliseconds
        heapq.heappush(self._later, (due, next(self._order), action))

    def _do_what_is_due(self, now: int) -> None:
        while self._later and self._later[0][0] <= now:
            heapq.heappop(self._later)[2]()
