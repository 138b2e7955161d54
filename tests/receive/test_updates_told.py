"""What git's hooks are told on standard input."""

from __future__ import annotations

import os

import pytest

from lessor.errors import GitError
from lessor.receive.gate import parse_updates

OLD, NEW, NOTHING = "a" * 40, "b" * 40, "0" * 40


@pytest.mark.parametrize("name", ["x", "a\u2028b", "a\u0085b", "\udcff", "a\x1db"])
def test_a_line_is_one_reference_whatever_its_name_holds(name: str) -> None:
    told = f"{OLD} {NEW} refs/heads/{name}\n{OLD} {NOTHING} refs/tags/{name}\n"
    first, second = parse_updates(os.fsencode(told))
    assert (first.branch, first.old, first.new) == (name, OLD, NEW)
    assert (second.ref, second.new) == (f"refs/tags/{name}", None)


def test_what_is_no_update_is_refused() -> None:
    assert parse_updates(b"") == ()
    with pytest.raises(GitError, match="no update"):
        parse_updates(b"one two\n")
