"""The gate at commit, put into the worktree of a lease.

It is there for the agent that would otherwise learn at the end what it may not have. Who gets
around it (`git commit --no-verify`) meets the gate at completion, which judges all of it again.
"""

from __future__ import annotations

import os
import sys

from lessor.errors import GitError
from lessor.git.hooks import install_hooks
from lessor.model.grant import Grant
from lessor.runner.agent_store import agent_addresses
from lessor.runner.desk import Desk
from lessor.runner.lease_file import lease_file
from lessor.runner.noting import NoteKind, Tell
from lessor.runner.posted import FILE, Posted, posted_text
from lessor.runner.words import last_line
from lessor.runner.workplace import Place
from lessor.settings import STORE

# Not `-m`, which looks for the module twice and compiles it each time: 4 ms of a commit.
_START = "import sys; from lessor.guard.commit import main; sys.exit(main(sys.argv[1:]))"


def gate_commits(desk: Desk, grant: Grant, place: Place, *, tell: Tell) -> None:
    """Ask the lease before each commit in its worktree from now on.

    After the setup command, which may install hooks of its own where git would look for them. A
    repository whose configuration can't be written is worked on all the same: completion judges.
    """
    try:
        _install(desk, grant, place)
    except (GitError, OSError) as refused:
        tell(NoteKind.PREPARED, f"without a gate at commit: {last_line(str(refused))}")


def _install(desk: Desk, grant: Grant, place: Place) -> None:
    posted = Posted(
        store=agent_addresses(desk, grant.lease)[STORE],
        lease_file=str(lease_file(desk.tokens_dir, grant.lease)),
        lease=grant.lease,
        task=grant.task,
        number=grant.number,
        epoch=grant.epoch,
        label=grant.label,
        base=place.base,
    )
    beside = {FILE: posted_text(posted)}
    install_hooks(desk.repo, place.worktree, gate=_gate(), beside=beside)


def _gate() -> list[str]:
    # -P: nothing that lies in the worktree may be imported; -E: nor what an agent's variables name.
    # Where Lessor itself is only found by such a variable, the agent passes it on.
    alone = [] if os.environ.get("PYTHONPATH") else ["-E"]
    return [sys.executable, "-P", *alone, "-c", _START]
