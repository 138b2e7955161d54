"""What protects a remote from late pushes, in words, as a drill found it."""

from __future__ import annotations

from dataclasses import dataclass

from lessor.demo.scratch import Scratch
from lessor.errors import GitError
from lessor.publish.trial import try_remote


@dataclass(frozen=True, slots=True, kw_only=True)
class Protection:
    """What is to say of a remote.

    Attributes:
        fence: of fence references there.
        hooks: of hooks there.
        command: lets it refuse late pushes, where it doesn't.
    """

    fence: str
    hooks: str
    command: str


def see_protection(scratch: Scratch, *, fenced: bool, hooked: bool | None) -> Protection:
    """What protects the remote; where it is no fence, scratch references show whether it could be.

    Args:
        fenced: whether the repository is fenced there.
        hooked: whether hooks of Lessor's refused a push; None where none was tried.
    """
    fence, able = "each lease has one there; a late push finds it gone", True
    if not fenced:
        fence, able = _try_fence(scratch)
    hooks = {
        None: "not asked about",
        True: "Lessor's ask about every push, whoever makes it",
        False: "none of Lessor's: a plain `git push` asks nobody",
    }[hooked]
    place = scratch.place or "REPO.git"
    change = f"repo fence {scratch.remote}" if able else f"git install-server-hooks {place}"
    return Protection(fence=fence, hooks=hooks, command=f"lessor {change}")


def _try_fence(scratch: Scratch) -> tuple[str, bool]:
    try:
        try_remote(scratch.cwd, scratch.remote)
    except GitError as refused:
        return f"none, and {refused.message}", False
    return f"none yet; on scratch ones {scratch.remote} refused what was stale", True
