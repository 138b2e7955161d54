"""What each git command of Lessor's runs with, whatever session its caller is in."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

# Where the machine keeps git's configuration is a fact like HOME, not part of a session.
_KEPT_VARIABLES = frozenset({"GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM"})

_FIXED_VARIABLES: Mapping[str, str] = {
    "LC_ALL": "C",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_EDITOR": ":",
    # Looking at a worktree must not rewrite its index under a running agent.
    "GIT_OPTIONAL_LOCKS": "0",
    # `git replace` could show the gates another history than the one that is pushed.
    "GIT_NO_REPLACE_OBJECTS": "1",
    # So could grafts, its older way: a file that the worktrees of a repository share.
    "GIT_GRAFT_FILE": os.devnull,
    "GIT_LITERAL_PATHSPECS": "1",
}

# What a command of Lessor's own could set off. From git 2.54 on configuration names hooks, too, and
# no folder's setting switches those off; an older git doesn't know these keys.
_EVENTS = (
    *("reference-transaction", "post-checkout", "post-index-change", "pre-push", "post-commit"),
    *("pre-commit", "prepare-commit-msg", "commit-msg", "pre-merge-commit", "post-merge"),
    *("pre-rebase", "post-rewrite", "pre-applypatch", "post-applypatch", "applypatch-msg"),
)
_NO_HOOKS = (
    "core.hooksPath=/dev/null",
    *(f"hook.{event}.enabled=false" for event in _EVENTS),
)
_FIXED_CONFIGURATION = (
    "core.fsmonitor=false",
    # Also in a bare repository: without HEAD's reflog nobody can tell what was reset away.
    "core.logAllRefUpdates=true",
    "gc.auto=0",
    "maintenance.auto=false",
    # `git log` would run `gpg.program` for each signed commit, and print its words between ours.
    "log.showSignature=false",
    # The empty file of grafts would be complained of in every command's words.
    "advice.graftFileDeprecated=false",
)


def session_options(
    git_dir: Path | None, work_tree: Path | None, *, hooks: bool = False
) -> list[str]:
    """What stands before each command: the repository, and the configuration that is ours."""
    options = [f"--git-dir={git_dir}"] if git_dir is not None else []
    if work_tree is not None:
        options.append(f"--work-tree={work_tree}")
    for setting in _FIXED_CONFIGURATION if hooks else (*_NO_HOOKS, *_FIXED_CONFIGURATION):
        options += ["-c", setting]
    return options


def session_environment(extra: Mapping[str, str]) -> dict[str, str]:
    """The environment of each command, with `extra` after the caller's own `GIT_*` variables were dropped."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("GIT_") or name in _KEPT_VARIABLES
    }
    return {**kept, **_FIXED_VARIABLES, **extra}
