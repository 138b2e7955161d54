"""Which ignored files of the checkout would be copied into a worktree."""

from __future__ import annotations

from collections.abc import Sequence

from lessor.cli.invocation import Invocation
from lessor.errors import InvalidError


def brought_files(invocation: Invocation, patterns: Sequence[str]) -> list[str]:
    """Ignored paths that the patterns name; directories that are ignored whole by their name.

    Raises:
        InvalidError: a pattern can't be read.
    """
    import pathspec

    from lessor.git.layout import layout_of
    from lessor.git.status import read_status

    checkout = invocation.standing.checkout
    if checkout is None or checkout.repository.is_bare or not patterns:
        return []
    try:
        spec = pathspec.GitIgnoreSpec.from_lines(patterns)
    except ValueError as error:
        raise InvalidError(f"The patterns to bring can't be read: {error}.") from error
    ignored = read_status(layout_of(checkout.repository.root)).ignored
    return [path for path in ignored if spec.match_file(path)]
