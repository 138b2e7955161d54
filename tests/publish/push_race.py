"""A race of pushes against re-claims: a bare remote, a store, players, and a nemesis that stops git.

The nemesis stops `git push` at any moment, for up to twice a lease, so that leases end and tasks are
claimed again while a push is under way. Where references fence, it stops git's process at the
remote, too. Where hooks alone protect it doesn't: between their last answer and the move are a few
system calls that nothing but a fence covers (docs/remote.md).
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from random import Random

from push_journal import Handed, now_ms, read_journals
from push_judge import Figures, Lived, judge, read_log
from push_player import Orders

from lessor.clock import SystemClock
from lessor.connect import connect
from lessor.git.repository import find_repository
from lessor.git.server_hooks import FOLDER, install_server_hooks
from lessor.hook import client
from lessor.model.task import NewTask
from lessor.receive.keeper import SETTINGS, settings_text, stop_keeper
from lessor.runner.process import send_signal
from lessor.runner.proctable import ProcessRow, descendants, process_table
from lessor.service.lessor import Lessor

FENCES, HOOKS = "fence references", "server hooks"
WAYS = (FENCES, HOOKS)
PLAYERS = 6
TASKS = 3
TTL_MS = 1_200
PUSHES_A_LEASE = 8
"""How long a lease is at least, in pushes: where a push takes long, holders still get one done."""
MOST_STOPPED = 2
MOST_ATTEMPTS = 1_000
_BRANCHES = "ai/push-race-"
_PLAYER = Path(__file__).with_name("push_player.py")

_LOG = """#!/bin/sh
now=$(date +%s%N)
while read -r old new ref; do echo "$1 $now $old $new $ref"; done >> {log}
"""
_SLOW = """#!/bin/sh
case $1 in refs/heads/*) ;; *) exit 0 ;; esac
n=$(od -An -N1 -tu1 /dev/urandom | tr -d ' ')
test "$n" -gt 40 || sleep 0.$n
"""


def race(folder: Path, way: str, *, pushes: int, seed: int, seconds: float) -> Figures:
    """Play until so many pushes were tried or the time is over, and judge."""
    bare = folder / "origin.git"
    _make_remote(folder, bare)
    store = f"sqlite:///{folder / 'lessor.db'}"
    lessor = connect(store)
    repository = lessor.registry.add_repository("example.org/race/push").id
    tasks = _tasks(lessor, repository)
    if way == FENCES:
        lessor.registry.set_fence_remote(repository, "origin")
    elif way == HOOKS:
        _install(bare, store, repository)
    (folder / "journals").mkdir()
    ttl_ms = max(TTL_MS, PUSHES_A_LEASE * _pace_ms(folder, bare))
    players = [
        _start(
            Orders(
                number=number,
                seed=seed,
                store=store,
                repository=repository,
                clone=str(_make_clone(folder, bare, number)),
                journal=str(folder / "journals" / f"{number}.jsonl"),
                tasks=tasks,
                pushes=-(-pushes // PLAYERS),
                until_ms=now_ms() + int(seconds * 1_000),
                ttl_ms=ttl_ms,
                hooked=way == HOOKS,
                hasty=way not in WAYS,
            ),
            folder,
        )
        for number in range(PLAYERS)
    ]
    try:
        words = ("push", "receive-pack") if way == FENCES else ("push",)
        _disturb(players, Random(seed), words=words, ttl_ms=ttl_ms)
    finally:
        for player in players:
            player.kill()
            player.wait()
        if way == HOOKS:
            stop_keeper(bare / FOLDER)
    complaints = [place.read_text() for place in folder.glob("player-*.err")]
    assert not any(complaints), complaints
    figures = _judged(lessor, folder, bare, fenced=way == FENCES)
    lessor.close()
    return figures


def _judged(lessor: Lessor, folder: Path, bare: Path, *, fenced: bool) -> Figures:
    branches = git(bare, "for-each-ref", "--format=%(refname)", f"refs/heads/{_BRANCHES}*")
    reflogs = {
        ref: list(reversed(git(bare, "reflog", "show", "--format=%H", ref).splitlines()))
        for ref in branches.splitlines()
    }
    named = git(bare, "log", "--all", "--reflog", "--format=%H %s").splitlines()
    pairs = [line.split(" ") for line in named]
    whose = {pair[0]: pair[1] for pair in pairs if len(pair) > 1 and pair[1].startswith("lease_")}
    journal = list(read_journals(folder / "journals"))
    handed = (entry for entry in journal if isinstance(entry, Handed))
    return judge(
        read_log((folder / "transactions").read_text()),
        reflogs,
        list(_lived(lessor, handed)),
        journal,
        whose,
        fenced=fenced,
    )


def _lived(lessor: Lessor, handed: Iterable[Handed]) -> Iterator[Lived]:
    for entry in handed:
        row = lessor.leases.lease(entry.lease)
        over = row.expires_ms if row.ended_ms is None else min(row.ended_ms, row.expires_ms)
        yield Lived(lease=row.id, task=row.task, epoch=row.epoch, over_ms=over)


def _make_remote(folder: Path, bare: Path) -> None:
    git(folder, "init", "-q", "--bare", "-b", "main", str(bare))
    git(bare, "config", "core.logAllRefUpdates", "always")
    git(bare, "config", "gc.auto", "0")
    tree = git(bare, "hash-object", "-t", "tree", "-w", "/dev/null")
    git(bare, "update-ref", "refs/heads/main", git(bare, "commit-tree", "-m", "begin", tree))
    hooks = {"reference-transaction": _LOG.format(log=folder / "transactions"), "update": _SLOW}
    for name, text in hooks.items():
        place = bare / "hooks" / name
        place.parent.mkdir(exist_ok=True)
        place.write_text(text)
        place.chmod(0o755)


def _pace_ms(folder: Path, bare: Path) -> int:
    """How long as many pushes take as there are players, at once, here and now; one of them."""
    clone, began = _make_clone(folder, bare, PLAYERS), now_ms()
    pushes = [
        subprocess.Popen(["git", "push", "-q", "origin", f"main:refs/pace/{n}"], cwd=clone)
        for n in range(PLAYERS)
    ]
    assert not any(push.wait() for push in pushes)
    return now_ms() - began


def _make_clone(folder: Path, bare: Path, number: int) -> Path:
    """A player's clone, which finds every object that the remote has."""
    clone = folder / f"clone-{number}"
    git(folder, "clone", "-q", "--bare", "--shared", str(bare), str(clone))
    return clone


def _install(bare: Path, store: str, repository: str) -> None:
    install_server_hooks(
        find_repository(bare),
        client=Path(client.__file__),
        base=sys.executable,
        python=sys.executable,
        beside={SETTINGS: settings_text(store=store, listen=None, repository=repository)},
    )


def _tasks(lessor: Lessor, repository: str) -> list[str]:
    wishes = [
        NewTask(
            title=f"push race {n}",
            repository=repository,
            branch=f"{_BRANCHES}{n}",
            max_attempts=MOST_ATTEMPTS,
        )
        for n in range(TASKS)
    ]
    return [made.task for made in lessor.tasks.submit(wishes)]


def _start(orders: Orders, folder: Path) -> subprocess.Popen[bytes]:
    with (folder / f"player-{orders.number}.err").open("wb") as complaints:
        return subprocess.Popen(
            [sys.executable, str(_PLAYER), json.dumps(asdict(orders))],
            stdin=subprocess.DEVNULL,
            stdout=complaints,
            stderr=complaints,
        )


def _disturb(
    players: Sequence[subprocess.Popen[bytes]],
    chance: Random,
    *,
    words: Sequence[str],
    ttl_ms: int,
) -> None:
    """Stop some git process now and then, and let it go on later, until the players are done."""
    stopped: list[tuple[int, ProcessRow]] = []
    while any(player.poll() is None for player in players):
        SystemClock().wait(chance.randrange(20, 200))
        table = process_table()
        found = [row for player in players for row in descendants(player.pid, table)]
        pushing = [row for row in found if not row.stopped and _is_push(row, words)]
        if pushing and len(stopped) < MOST_STOPPED:
            row = chance.choice(pushing)
            if send_signal(row, signal.SIGSTOP):
                stopped.append((now_ms() + int(chance.uniform(0.2, 1.5) * ttl_ms), row))
        for until, row in [*stopped]:
            if now_ms() >= until:
                send_signal(row, signal.SIGCONT)
                stopped.remove((until, row))
    for _, row in stopped:
        send_signal(row, signal.SIGCONT)


def _is_push(row: ProcessRow, words: Sequence[str]) -> bool:
    with suppress(OSError):
        line = Path(f"/proc/{row.pid}/cmdline").read_bytes().split(b"\0")
        return line[0].endswith((b"git", b"git-receive-pack")) and any(
            word.encode() in line or line[0].endswith(word.encode()) for word in words
        )
    return False


def git(cwd: Path, *args: str) -> str:
    who = ["-c", "user.name=Race", "-c", "user.email=race@example.org"]
    done = subprocess.run(["git", *who, *args], cwd=cwd, capture_output=True, check=True)
    return os.fsdecode(done.stdout).rstrip("\n")
