"""Every input that the fuzzing begins with keeps the promise: a value, or an error of Lessor's own.

What was found once lies there too: its file fails here without its mend.
"""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

CORPUS = Path(__file__).resolve().parents[2] / "fuzz" / "corpus"
FILES = sorted(path for path in CORPUS.rglob("*") if path.is_file())


@pytest.mark.parametrize("file", FILES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_an_input_of_the_corpus_keeps_the_promise(file: Path) -> None:
    importlib.import_module(f"fuzz.{file.parent.name}").one(file.read_bytes())


def test_every_family_has_a_corpus() -> None:
    families = {path.name for path in CORPUS.iterdir()}
    assert families == {path.parent.name for path in FILES}
    for family in families:
        assert (CORPUS.parent / f"{family}.py").is_file()
