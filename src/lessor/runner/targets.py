"""What a result will land on, as of now: whose commits in a branch are nobody's work in it."""

from __future__ import annotations

from lessor.errors import GitError
from lessor.git.refs import BRANCHES
from lessor.git.repository import current_branch
from lessor.git.target import tracking_tips
from lessor.runner.desk import Desk


def target_tips(desk: Desk, base: str) -> tuple[str, ...]:
    """The tips of the branch that the result will land on, where they have moved on from `base`.

    What was merged or rebased onto from them is somebody else's. The remotes' are among them: an
    agent that fetches may be ahead of the person's own branch.
    """
    try:
        # A run names its base in full, as whoever started it may leave the branch.
        name = (desk.options.base or current_branch(desk.cwd) or "").removeprefix(BRANCHES)
        tips = {desk.base_commit(), *(tracking_tips(desk.repo.common_dir, name) if name else ())}
    except GitError:  # the branch is gone meanwhile: then nothing of it can be told apart
        return ()
    return tuple(sorted(tips - {base}))
