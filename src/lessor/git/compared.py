"""What a remote compares a push with: it shows that to whoever pushes, whatever it hides from readers.

Asked by pushes that send nothing (`--dry-run`): git gets the references as they are at the other end,
and says what it would do to them. `uploadpack.hideRefs` hides nothing from those.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from lessor.git.push import ask, configured, reported, unmirrored
from lessor.git.reaching import way_to_hosts
from lessor.git.refs import OWN

_NOWHERE = f"{OWN}/nowhere"
"""What nobody has, here or there: git asks an empty remote nothing, unless it has something to make."""
_SAME = "[up to date]"


def compared_tip(cwd: Path, remote: str, ref: str, *, other: str) -> str | None:
    """The object id that `ref` has at `remote`; None where it isn't there.

    Args:
        other: a commit of this clone, for git to compare it with.

    Raises:
        RemoteUnreachableError: the remote can't be asked.
    """
    summary = _would(cwd, remote, [f"+{other}:{ref}"]).get(ref, "")
    old, dots, _ = summary.partition("..")
    if dots:
        return old
    return other if summary == _SAME else None


def compared_names(cwd: Path, remote: str, prefix: str, *, other: str) -> list[str]:
    """The full names of what `remote` has below `prefix`, which ends in a slash; else as `compared_tip`."""
    asked = [f"{other}:{_NOWHERE}", f"{_NOWHERE}/*:{prefix}*"]
    return [ref for ref in _would(cwd, remote, asked, prune=True) if ref.startswith(prefix)]


def _would(
    cwd: Path, remote: str, refspecs: Sequence[str], *, prune: bool = False
) -> dict[str, str]:
    """What git would do to each reference, in its own words."""
    args = [
        *("push", "--dry-run", "--porcelain", "--no-follow-tags", "--no-verbose"),
        *("--recurse-submodules=no", *(["--prune"] if prune else []), "--", remote, *refspecs),
    ]
    env = {**way_to_hosts(), **configured({**unmirrored(remote), "core.abbrev": "no"})}
    return {ref: summary for _, ref, summary in reported(ask(cwd, remote, args, env=env))}
