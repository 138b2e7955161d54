"""Starts the players of a race, and stops, resumes, kills and replaces them."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from random import Random

from arena import AGENTS
from player import Orders

from lessor.clock import SystemClock

PROGRAM = Path(__file__).with_name("player.py")
TICK_MS = 10
LONGEST_START_MS = 30_000
BLOWS = 5


@dataclass(slots=True, kw_only=True)
class Running:
    """A player's process; `resume_ms` is set while it is stopped."""

    process: subprocess.Popen[bytes]
    errors: Path
    journal: Path
    resume_ms: int | None = None


class Nemesis:
    """The players of one race, and what befalls them.

    Args:
        folder: gets what the players had to say.
        worse: what to do to them more often than anything else.
    """

    def __init__(
        self,
        folder: Path,
        journals: Path,
        url: str,
        rng: Random,
        *,
        mutant: str | None = None,
        worse: Callable[[], None] | None = None,
    ) -> None:
        self._errors = folder / "errors"
        self._errors.mkdir()
        self._journals = journals
        self._url = url
        self._rng = rng
        self._mutant = mutant
        self._worse = worse
        self._clock = SystemClock()
        self._players: list[Running] = []
        self._started = 0

    def run(self, *, players: int, milliseconds: int) -> None:
        """Let new ones play for a while; none of them may end by itself."""
        self._players = []
        try:
            for _ in range(players):
                self._start()
            self._until_begun()
            until = self._clock.boottime_ms() + milliseconds
            while (now := self._clock.boottime_ms()) < until:
                self._resume(now)
                self._strike(now)
                self._clock.wait(TICK_MS)
            self._end()
        finally:
            for player in self._players:
                player.process.kill()
                player.process.wait()

    def _until_begun(self) -> None:
        """On a busy machine a process takes as long to start as a short race lasts."""
        latest = self._clock.boottime_ms() + LONGEST_START_MS
        for player in self._players:
            while not player.journal.exists() and self._clock.boottime_ms() < latest:
                assert player.process.poll() is None, player.errors.read_text()
                self._clock.wait(TICK_MS)

    def _start(self) -> None:
        name = f"{self._started:03}"
        self._started += 1
        journal = self._journals / f"{name}.jsonl"
        orders = Orders(
            url=self._url,
            journal=str(journal),
            seed=self._rng.randrange(2**32),
            agent=AGENTS[self._started % len(AGENTS)],
            mutant=self._mutant,
        )
        errors = self._errors / name
        with errors.open("wb") as out:
            process = subprocess.Popen(
                [sys.executable, PROGRAM, json.dumps(asdict(orders))], stderr=out
            )
        self._players.append(Running(process=process, errors=errors, journal=journal))

    def _strike(self, now: int) -> None:
        """Some blows a second: mostly a pause, longer than a lease or not, seldom a death."""
        if self._rng.random() > BLOWS * TICK_MS / 1000:
            return
        player = self._rng.choice(self._players)
        if self._worse is not None and self._rng.random() < 0.7:
            self._worse()
        elif self._rng.random() < 0.15:
            self._kill(player)
        elif player.resume_ms is None:
            player.process.send_signal(signal.SIGSTOP)
            player.resume_ms = now + self._rng.randrange(10, 450)

    def _kill(self, player: Running) -> None:
        self._judge(player, dead=False)
        player.process.kill()
        player.process.wait()
        self._players.remove(player)
        self._start()

    def _resume(self, now: int) -> None:
        for player in self._players:
            if player.resume_ms is not None and player.resume_ms <= now:
                player.process.send_signal(signal.SIGCONT)
                player.resume_ms = None

    def _end(self) -> None:
        self._resume(2**62)
        for player in self._players:
            player.process.terminate()
        for player in self._players:
            player.process.wait(60)
            self._judge(player, dead=True)

    @staticmethod
    def _judge(player: Running, *, dead: bool) -> None:
        code = player.process.poll()
        assert code in ({0, -signal.SIGTERM} if dead else {None}), player.errors.read_text()
