"""The page about what is never deleted names tests that exist."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "never-deleted.md").read_text(encoding="utf-8")
ROWS = re.findall(r"^\| (?!what \||---)(.*?) \| (.*) \|$", PAGE, re.MULTILINE)
NAMED = re.compile(r"`(tests/[\w/]+\.py)::(test_\w+)`")


def names_in(file: Path) -> set[str]:
    tree = ast.parse(file.read_text(encoding="utf-8"))
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


def test_there_are_rows() -> None:
    assert len(ROWS) > 50
    assert len({what for what, _ in ROWS}) == len(ROWS)


@pytest.mark.parametrize(("what", "proof"), ROWS, ids=[what for what, _ in ROWS])
def test_every_row_names_a_test_that_exists(what: str, proof: str) -> None:
    named = NAMED.fullmatch(proof)
    assert named is not None, proof
    assert named[2] in names_in(ROOT / named[1])
