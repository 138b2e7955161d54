"""Making a new worktree ready: files that git doesn't carry, the setup command, and its mark.

The mark says for what the last setup ran. It lies in the worktree's git directory, so that it goes
with it, and a directory that was deleted by hand isn't taken for a prepared one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from lessor.errors import SetupFailedError
from lessor.git.bring import bring_along
from lessor.git.command import run_git
from lessor.git.healing import was_healed
from lessor.git.layout import layout_of
from lessor.git.status import read_status
from lessor.runner.desk import SETUP_LIMIT_MS, Desk
from lessor.runner.environment import command_environment
from lessor.runner.process import run_configured
from lessor.runner.words import kept_text, last_line

TAIL = 2_000
_MARK = "lessor-setup"
_LOST = "nobody knows what"
_NAMED = 5


def bring(desk: Desk, worktree: Path, patterns: Sequence[str]) -> list[str]:
    """Copy ignored files from the person's checkout; the paths copied. What is there stays.

    Raises:
        InvalidError: a pattern can't be read.
        GitError: a file can't be read or written.
    """
    asked = ["rev-parse", "--path-format=absolute", "--show-toplevel"]
    top = run_git(asked, cwd=desk.cwd, check=False)
    if top.code != 0:  # a bare repository: nobody keeps files beside it
        return []
    return bring_along(Path(top.text), worktree, patterns)


def set_up(
    desk: Desk, worktree: Path, setup: str, *, log: Path, interrupted: Callable[[], bool]
) -> int:
    """Run the setup command in an agent's new worktree; how long it took, in milliseconds.

    Raises:
        SetupFailedError: it failed; or it left files that git would take for the agent's work.
        AgentError: there is no shell.
    """
    result = run_configured(
        setup,
        cwd=str(worktree),
        env=command_environment(),
        log=str(log),
        timeout_ms=SETUP_LIMIT_MS,
        clock=desk.clock,
        interrupted=interrupted,
    )
    if result.code != 0 and not result.interrupted:
        tail = kept_text(result.tail, most=TAIL)
        raise SetupFailedError(
            f"The setup command failed: `{setup}`: {last_line(tail)}",
            next_step="Run it in your checkout, or change `setup` in lessor.toml.",
            command=setup,
            tail=tail,
        )
    return result.duration_ms


def refuse_unclean(worktree: Path, setup: str) -> None:
    """Refuse a setup whose traces would end in the agent's result.

    Raises:
        SetupFailedError: git sees changed or new files, or can't look into a directory, and names them.
        GitError: git can't look.
    """
    status = read_status(layout_of(worktree))
    changed = {change.path for change in status.changed}
    left = sorted({*changed, *status.untracked, *status.unread})
    if left:
        named = ", ".join(kept_text(path, most=_NAMED * 40) for path in left[:_NAMED])
        more = f" and {len(left) - _NAMED} more" if len(left) > _NAMED else ""
        raise SetupFailedError(
            f"The setup command `{setup}` leaves what git would take for an agent's work: "
            f"{named}{more}.",
            next_step="Add them to .gitignore, or use a command that leaves tracked files alone.",
            command=setup,
            tail="",
        )


def prepared_for(worktree: Path) -> str | None:
    """What the worktree was made ready for; None when that was never finished.

    Where the mark was lost with git's entry, an agent may have been there: that counts as finished,
    as all that is ignored would else be taken for setup's.

    Raises:
        WorktreeError: git knows no worktree there.
    """
    git_dir = layout_of(worktree).git_dir
    with suppress(OSError):
        return (git_dir / _MARK).read_text(encoding="utf-8")
    return _LOST if was_healed(git_dir) else None


def mark_prepared(worktree: Path, what: str | None) -> None:
    """Note what the worktree was made ready for; None takes the mark away.

    Raises:
        OSError: it can't be written.
    """
    mark = layout_of(worktree).git_dir / _MARK
    if what is None:
        mark.unlink(missing_ok=True)
    else:
        mark.write_text(what, encoding="utf-8")
