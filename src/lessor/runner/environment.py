"""The environment of what a run starts: the person's, without another session's variables.

A run may itself be started by a git hook, by `git rebase --exec` or by an agent. `GIT_DIR` or
`GIT_INDEX_FILE` of that session would turn a command in one worktree into a command on another.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from lessor.settings import LISTEN, STATE, STORE, UNASKED

# Facts of the machine and the person, which git never sets by itself.
_GIT_KEPT = frozenset(
    {
        *("GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM"),
        *("GIT_SSH", "GIT_SSH_COMMAND", "GIT_ASKPASS"),
    }
)
_LESSOR_KEPT = frozenset({STATE, STORE, LISTEN, UNASKED})


def foreign_variables(inherited: Mapping[str, str] | None = None) -> tuple[str, ...]:
    """The names in this process's environment that belong to another git session or lease."""
    names = os.environ if inherited is None else inherited
    return tuple(
        name
        for name in names
        if (name.startswith("GIT_") and name not in _GIT_KEPT)
        or (name.startswith("LESSOR_") and name not in _LESSOR_KEPT)
    )


def command_environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """The environment of setup and check commands: they hold no lease and need no store."""
    foreign = {*foreign_variables(), *_LESSOR_KEPT}
    kept = {name: value for name, value in os.environ.items() if name not in foreign}
    return {**kept, **(extra or {})}
