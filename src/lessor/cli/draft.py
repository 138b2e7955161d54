"""A `lessor.toml` in the checkout that no commit has: it settles nothing yet."""

from __future__ import annotations

from lessor.cli.invocation import Invocation
from lessor.project.manifest import MANIFEST

DRAFT = f"{MANIFEST} here isn't committed as it is: it holds once it is"


def has_draft(invocation: Invocation) -> bool:
    """Whether the checkout's `lessor.toml` is new, or another than the last commit's; reads only."""
    from lessor.git.layout import layout_of

    checkout = invocation.standing.checkout
    if checkout is None or checkout.repository.is_bare:
        return False
    asked = ["--no-optional-locks", "status", "--porcelain", "--untracked-files=all"]
    said = layout_of(checkout.repository.root).git([*asked, "--", MANIFEST], check=False)
    return said.code == 0 and bool(said.out.strip())
