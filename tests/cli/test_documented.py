"""The page about the command line names what there is."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from lessor import errors
from lessor.cli.commands import COMMANDS
from lessor.project.checklist import WORDS

PAGE = (Path(__file__).parents[2] / "docs" / "command-line.md").read_text()


@pytest.mark.parametrize("name", [*COMMANDS])
def test_every_command_is_on_the_page(name: str) -> None:
    assert re.search(rf"`{re.escape(name)}\b", PAGE)


@pytest.mark.parametrize("word", WORDS)
def test_every_word_of_a_list_is_on_the_page(word: str) -> None:
    assert f"`@{word}`" in PAGE


def test_every_exit_code_is_on_the_page() -> None:
    codes = {
        value.exit_code
        for value in vars(errors).values()
        if isinstance(value, type) and issubclass(value, errors.LessorError)
    }
    listed = {
        int(code)
        for row in re.findall(r"^\| ([\d, ]+) \|", PAGE, re.MULTILINE)
        for code in row.split(",")
    }
    assert codes | {0, 3, 8, 129, 130, 141, 143} == listed
