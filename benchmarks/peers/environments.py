"""Where each peer lives: an environment of its own below benchmarks/.peers, never Lessor's own.

Versions are pinned, so that two runs compare the same thing. What can't be installed is told with
the reason.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import venv
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
PLACE = HERE.parent / ".peers"
LONGEST_S = 900


@dataclass(frozen=True)
class Peer:
    """One peer: its script here, what it needs, and what the reader has to know of it.

    Attributes:
        unlogged: tables that a power cut may empty, since no task is in them.
    """

    name: str
    packages: tuple[str, ...]
    script: str
    store: str
    note: str = ""
    unlogged: tuple[str, ...] = ()

    @property
    def of_node(self) -> bool:
        return self.script.endswith(".mjs")

    @property
    def version(self) -> str:
        return self.packages[0].replace("@", "==").rpartition("==")[2]


class NotInstalledError(Exception):
    """A peer that can't be had here; the text says why."""


PEERS = (
    Peer("pgqueuer", ("pgqueuer==1.6.0", "asyncpg"), "pgqueuer_peer.py", "postgres"),
    Peer(
        "PGMQ",
        ("pgmq==1.1.4", "psycopg[binary]"),
        "pgmq_peer.py",
        "postgres",
        "installed by the SQL file that its Python client brings, for the extension needs a compiler",
        unlogged=("notify_insert_throttle",),  # when NOTIFY was last sent
    ),
    Peer(
        "graphile-worker",
        ("graphile-worker@0.18.0", "pg"),
        "graphile_peer.mjs",
        "postgres",
        "claims and completes inside its own worker; batches are its local queue of 500",
    ),
    Peer(
        "Absurd",
        ("absurd-sdk==0.5.1", "absurdctl==0.5.1", "psycopg[binary]"),
        "absurd_peer.py",
        "postgres",
        "keeps each step's state for replay; claims a batch, completes one by one",
    ),
    Peer(
        "huey",
        ("huey==3.5.4",),
        "huey_peer.py",
        "sqlite",
        "takes a task by deleting it: nothing is leased, and a crash loses it",
    ),
    Peer("fleetwright", ("fleetwright==0.25.0",), "fleetwright_peer.py", "sqlite"),
    Peer(
        "MCP Agent Mail",
        ("mcp-agent-mail==0.1.0",),
        "agent_mail_peer.py",
        "paths",
        "reserves and releases one path; also commits each reservation to a git archive",
    ),
)


def command(peer: Peer) -> list[str]:
    """What starts `peer` in its environment, which is made if it isn't there.

    Raises:
        NotInstalledError: the registry, the interpreter or the network refused it.
    """
    for program in ("node", "npm") if peer.of_node else ():
        if not shutil.which(program):
            raise NotInstalledError(f"{program} is not on PATH")
    place = PLACE / peer.name.lower().replace(" ", "-")
    stamp = place / ".installed"
    wanted = " ".join(peer.packages)
    if not stamp.exists() or stamp.read_text() != wanted:
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir(parents=True)
        _install(peer, place)
        stamp.write_text(wanted)
    script = HERE / peer.script
    if peer.of_node:  # node looks for packages beside the script alone
        shutil.copy(script, place / script.name)
        return ["node", str(place / script.name)]
    return [str(place / "bin" / "python"), "-W", "ignore", str(script)]


def _install(peer: Peer, place: Path) -> None:
    if peer.of_node:
        _run(["npm", "install", "--silent", "--no-fund", "--no-audit", *peer.packages], place)
        return
    venv.create(place, with_pip=True)
    pip = [str(place / "bin" / "python"), "-m", "pip", "install", "--quiet"]
    _run([*pip, "--disable-pip-version-check", *peer.packages], place)


def _run(line: list[str], place: Path) -> None:
    try:
        done = subprocess.run(
            line, cwd=place, capture_output=True, text=True, timeout=LONGEST_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as why:
        raise NotInstalledError(str(why)) from why
    if done.returncode:
        said = [s for s in (done.stderr or done.stdout).splitlines() if "WARNING" not in s]
        raise NotInstalledError(said[-1][:200] if said else f"exit status {done.returncode}")


if __name__ == "__main__":
    for one in PEERS:
        try:
            print(one.name, *command(one))
        except NotInstalledError as refused:
            print(one.name, "not installed:", refused, file=sys.stderr)
