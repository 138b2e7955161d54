"""The bare remote that workers push to, with reflogs, and a hook that makes pushes slow."""

from __future__ import annotations

from pathlib import Path

from torture.clone import git

SLOW = """#!/bin/sh
# Between what git has received and what it accepts: a push that is sent before a lease ends, and comes after it.
if [ -s "$GIT_DIR/slow" ]; then sleep "$(cat "$GIT_DIR/slow")"; fi
exit 0
"""


class BareRemote:
    """A bare repository at `folder` with one commit on main."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()
        git(folder, "init", "--quiet", "--bare", "--initial-branch=main", ".")
        git(folder, "config", "core.logAllRefUpdates", "always")
        git(folder, "config", "gc.auto", "0")
        git(folder, "config", "receive.autogc", "false")
        tree = git(folder, "mktree")
        git(
            folder, "update-ref", "refs/heads/main", git(folder, "commit-tree", tree, "-m", "begin")
        )
        hook = folder / "hooks" / "pre-receive"
        hook.write_text(SLOW, encoding="utf-8")
        hook.chmod(0o755)

    def slow(self, seconds: float) -> None:
        """Let each push that is received from now on wait; 0 ends that."""
        (self.folder / "slow").write_text(f"{seconds:.1f}" if seconds else "", encoding="ascii")
