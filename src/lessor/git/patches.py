"""Changes compared by what they do to the lines, wherever in the file these lie."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from lessor.git.command import CHECKOUT_TIMEOUT_S, pipe_git
from lessor.git.understood import understood


class Span(NamedTuple):
    """The change from one commit's tree to another's; None begins from nothing."""

    start: str | None
    end: str


# Nothing of the reader's configuration changes the text; it only has to be the same for all.
_TEXT = (
    *("-p", "--root", "--full-index", "--no-renames", "--no-textconv", "--no-ext-diff"),
    *("--no-color", "--ignore-submodules=none", "-O/dev/null"),
)


def patch_ids(common_dir: Path, spans: Sequence[Span]) -> list[str | None]:
    """An id for each change, the same for the same change elsewhere; None for one of nothing.

    Two git processes, however many spans. White space counts: `patch-id` and `git cherry` leave it
    out by default, and would call a different result the same.

    Raises:
        GitError: A commit or file is missing.
    """
    if not spans:
        return []
    asked = (f"{end} {start}\n" if start else f"{end}\n" for start, end in spans)
    said = pipe_git(
        ["diff-tree", "--stdin", *_TEXT],
        ["patch-id", "--verbatim"],
        cwd=common_dir,
        git_dir=common_dir,
        input="".join(asked).encode(),
        timeout_s=CHECKOUT_TIMEOUT_S,
    )
    # The answers come in the order of the questions, and a change of nothing has none.
    found: list[str | None] = [None] * len(spans)
    place = 0
    for line in said.lines:
        patch, _, end = line.partition(" ")
        with understood("what changes do"):
            while spans[place].end != end:
                place += 1
        found[place] = patch
        place += 1
    return found
