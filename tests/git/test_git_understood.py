"""Output that git doesn't write is an error of Lessor's own, not whatever a parser stumbles over."""

from __future__ import annotations

import pytest
from fuzz.git_output import Said

from lessor.errors import GitError
from lessor.git.index import read_index
from lessor.git.modes import read_modes
from lessor.git.status import read_status


@pytest.mark.parametrize("out", [b"", b"1 .M", b"X a\0", b"# branch.oid x\0"])
def test_a_status_that_cant_be_read_is_told(out: bytes) -> None:
    with pytest.raises(GitError, match="status can't be read"):
        read_status(Said(out))  # type: ignore[arg-type]


def test_an_index_that_cant_be_read_is_told() -> None:
    with pytest.raises(GitError, match="index can't be read"):
        read_index(Said(b"h 160000\0"))  # type: ignore[arg-type]


@pytest.mark.parametrize("line", ["0600 [", 'x "a"', "0600"])
def test_modes_that_cant_be_read_are_told(line: str) -> None:
    with pytest.raises(GitError, match="modes in a salvage"):
        read_modes(f"saved\n\nModes that git doesn't keep:\n{line}\n")
