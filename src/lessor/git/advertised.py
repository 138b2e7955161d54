"""What a remote says of its branches now; a tracking reference only says what it said once."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from lessor.git.command import run_git
from lessor.git.reaching import way_to_hosts
from lessor.git.refs import BRANCHES

_ANSWER_WITHIN_S = 30.0
_DEFAULT = "origin"


@dataclass(frozen=True, slots=True, kw_only=True)
class Advertised:
    """A remote's answer.

    Attributes:
        remote: its name here.
        default: the branch that its HEAD is on; None where that is on none.
        branches: each branch's commit, which may be one that isn't in this clone.
    """

    remote: str
    default: str | None
    branches: Mapping[str, str]


def remote_name(common_dir: Path) -> str | None:
    """The remote that a clone works with: `origin`, else its first; None where it has none.

    Raises:
        GitError: Git can't say.
    """
    names = run_git(["remote"], cwd=common_dir, git_dir=common_dir).lines
    return _DEFAULT if _DEFAULT in names else min(names, default=None)


def ask_remote(common_dir: Path, remote: str) -> Advertised:
    """Ask a remote for its branches, in one round trip.

    Raises:
        GitError: It can't be reached, refuses, or doesn't answer within half a minute. That says
            nothing about its branches.
    """
    said = run_git(
        ["ls-remote", "--symref", "--", remote, "HEAD", f"{BRANCHES}*"],
        cwd=common_dir,
        git_dir=common_dir,
        env=way_to_hosts(),
        timeout_s=_ANSWER_WITHIN_S,
    )
    default: str | None = None
    branches: dict[str, str] = {}
    for line in os.fsdecode(said.out).split("\n"):
        what, _, name = line.partition("\t")
        if name == "HEAD" and what.startswith(f"ref: {BRANCHES}"):
            default = what.removeprefix(f"ref: {BRANCHES}")
        elif name.startswith(BRANCHES):
            branches[name.removeprefix(BRANCHES)] = what
    return Advertised(remote=remote, default=default, branches=branches)


def has_more(common_dir: Path, said: Advertised) -> bool:
    """Whether a remote has commits on its branches that this clone hasn't: nobody knows what is in them.

    Raises:
        GitError: Git can't look.
    """
    asked = "".join(f"{oid}\n" for oid in set(said.branches.values())).encode()
    args = ["cat-file", "--batch-check=%(objecttype)"]
    found = run_git(args, cwd=common_dir, git_dir=common_dir, input=asked)
    return any(line.endswith(" missing") for line in found.lines)
