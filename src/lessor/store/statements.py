"""Named SQL from a dialect's `.sql` files.

A statement starts at a line `-- name: claim_write` and ends at the next one; comments above its
text belong to it. Both dialects have the same names, parameters and result columns (a test
compares them), so a rule never knows which store it runs on.
"""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path

from lessor.errors import StoreError

_NAME = re.compile(r"^-- name: (\w+)\s*$", re.MULTILINE)
_HERE = Path(__file__).parent


@lru_cache
def load_statements(dialect: str) -> dict[str, str]:
    """All statements of `dialect` ("sqlite" or "postgres") by name, as written."""
    found: dict[str, str] = {}
    # importlib.resources would import what unpacks archives: 5 ms before each commit.
    for file in sorted((_HERE / dialect / "sql").glob("*.sql")):
        parts = _NAME.split(file.read_text(encoding="utf-8"))
        for name, text in zip(parts[1::2], parts[2::2], strict=True):
            if name in found:
                raise StoreError(f"Statement {name} is there twice in {dialect}.")
            found[name] = text.strip()
    return found
