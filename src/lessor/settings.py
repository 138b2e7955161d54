"""Where Lessor keeps its things on this machine, and which store it uses."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

STORE = "LESSOR_STORE"
LISTEN = "LESSOR_LISTEN_DSN"
STATE = "LESSOR_STATE_DIR"
UNASKED = "LESSOR_COMMIT_UNASKED"
HOME_STORE = "the state directory"
"""Where the choice of a store came from when nobody named one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Settings of this machine and person.

    Attributes:
        state_dir: the user's state directory: store, worktrees, logs, tokens; absolute.
        store_url: `sqlite:///path` or `postgresql://…`.
        store_origin: where the choice came from, for people.
        listen_dsn: a direct connection for LISTEN behind a pooler.
    """

    state_dir: Path
    store_url: str
    store_origin: str
    listen_dsn: str | None = None

    @property
    def tokens_dir(self) -> Path:
        """Lease tokens, one 0600 file each."""
        return self.state_dir / "leases"

    @property
    def worktrees_dir(self) -> Path:
        """Worktrees, outside of every repository."""
        return self.state_dir / "worktrees"

    @property
    def salvage_dir(self) -> Path:
        """Archives of salvaged files that git doesn't keep, readable by their owner alone."""
        return self.state_dir / "salvage"

    @property
    def runs_dir(self) -> Path:
        """A directory for each lease that an agent ran under: its brief and what it printed."""
        return self.state_dir / "runs"

    @property
    def trust_dir(self) -> Path:
        """One file for each set of a repository's commands that the person trusts."""
        return self.state_dir / "trust"

    @property
    def workers_dir(self) -> Path:
        """Ids of the workers that the command line has registered, one file each."""
        return self.state_dir / "workers"


def load_settings(
    *, store: str | None = None, environment: Mapping[str, str] | None = None
) -> Settings:
    """Settings from the command line, then the environment, then the defaults."""
    values = os.environ if environment is None else environment
    state = Path(values[STATE]).expanduser() if values.get(STATE) else _state_dir(values)
    state = state.absolute()
    if store:
        url, origin = store, "--store"
    elif values.get(STORE):
        url, origin = values[STORE], STORE
    else:
        url, origin = f"sqlite://{state / 'lessor.db'}", HOME_STORE
    return Settings(
        state_dir=state, store_url=url, store_origin=origin, listen_dsn=values.get(LISTEN) or None
    )


def _state_dir(values: Mapping[str, str]) -> Path:
    """XDG's state directory on every system: agents look for the same place on Linux and macOS."""
    given = Path(values.get("XDG_STATE_HOME", ""))
    # The specification says to ignore a relative path.
    if given.is_absolute():
        return given / "lessor"
    return Path(values.get("HOME") or Path.home()) / ".local" / "state" / "lessor"
