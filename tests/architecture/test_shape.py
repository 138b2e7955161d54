"""What the style guide holds by a test."""

from __future__ import annotations

import ast
import re
import runpy
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "lessor"
MODULES = sorted(SOURCE.rglob("*.py"))
LONGEST = 400
BANNED_NAMES = {"manager", "helper", "helpers", "util", "utils", "common", "base", "core", "misc"}
SQL = re.compile(r"\b(SELECT\s+.+\bFROM|INSERT\s+INTO|UPDATE\s+\w+\s+SET|DELETE\s+FROM)\b")
# Opening a store has no named statements yet: it makes them possible.
SQL_ALLOWED = {
    "store/sqlite/opening.py",
    "store/sqlite/store.py",
    "store/sqlite/suspend.py",
    "store/postgres/opening.py",
    "store/postgres/store.py",
    "cli/demo.py",
}


def name_of(module: Path) -> str:
    return module.relative_to(SOURCE).as_posix()


@pytest.mark.parametrize("module", MODULES, ids=name_of)
def test_a_module_holds_one_idea(module: Path) -> None:
    assert len(module.read_text(encoding="utf-8").splitlines()) <= LONGEST
    assert module.stem not in BANNED_NAMES


@pytest.mark.parametrize("module", MODULES, ids=name_of)
def test_sql_lies_only_in_sql_files(module: Path) -> None:
    if name_of(module) in SQL_ALLOWED or "restore" in module.stem:
        return
    strings = [
        n.value
        for n in ast.walk(ast.parse(module.read_text(encoding="utf-8")))
        if isinstance(n, ast.Constant) and isinstance(n.value, str)
    ]
    assert not [text for text in strings if SQL.search(text)]


@pytest.mark.parametrize("module", MODULES, ids=name_of)
def test_every_public_name_says_what_it_is(module: Path) -> None:
    tree = ast.parse(module.read_text(encoding="utf-8"))
    assert ast.get_docstring(tree), "a module says what it is"
    missing = [node.name for node in _public(tree) if not ast.get_docstring(node)]
    assert not missing


def test_both_dialects_have_the_same_files() -> None:
    for part in ("sql", "migrations"):
        names = [
            {f.name for f in (SOURCE / "store" / dialect / part).iterdir()}
            for dialect in ("sqlite", "postgres")
        ]
        assert names[0] == names[1]


def test_generated_pages_are_up_to_date() -> None:
    pages = runpy.run_path(str(ROOT / "scripts" / "make-docs"))["PAGES"]
    for name, page in pages.items():
        assert (ROOT / "docs" / name).read_text(encoding="utf-8") == page(), (
            f"run scripts/make-docs ({name})"
        )


def _public(tree: ast.Module) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef]:
    for node in tree.body:
        if isinstance(
            node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
        ) and not node.name.startswith("_"):
            yield node
            if isinstance(node, ast.ClassDef):
                yield from (
                    n
                    for n in node.body
                    if isinstance(n, ast.FunctionDef) and not n.name.startswith("_")
                )
