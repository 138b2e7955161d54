"""What is kept of what an agent printed: its last words, as text that any terminal can show."""

from __future__ import annotations

from pathlib import Path

import pytest

from lessor.runner.words import last_words


def said(folder: Path, output: str | bytes) -> str:
    content = output if isinstance(output, bytes) else output.encode()
    (folder / "agent.log").write_bytes(content)
    return last_words(folder)


@pytest.mark.parametrize(
    ("output", "words"),
    [
        ("one\n\nThe rate is 19.\nIt rounds half up.\n", "The rate is 19.\nIt rounds half up."),
        ("The rate is 19.\n\n\n  \n--------\n\n", "The rate is 19."),
        ("\x1b[32mThe rate\x1b[0m is 19.\x1b]0;a title\x07\n", "The rate is 19."),
        ("10 %\r50 %\r100 %\r\nThe rate is 19.\r\n", "100 %\nThe rate is 19."),
        ("```\n  rate = 19\n```\n", "rate = 19"),
        (b"The \x00rate\xff is 19.", "The  rate\ufffd is 19."),
        ("", ""),
        ("---\n\n* * *\n", ""),
    ],
    ids=[
        *("last paragraph", "rules and blanks", "control sequences", "progress", "fences"),
        *("no text", "nothing", "nothing that speaks"),
    ],
)
def test_the_last_lines_that_say_anything_are_kept(tmp_path, output, words):
    assert said(tmp_path, output) == words


def test_of_a_long_output_a_dozen_lines_are_kept_and_marked(tmp_path):
    lines = [f"reading file {n}" for n in range(500)]
    kept = said(tmp_path, "\n".join(lines))
    assert kept == "…" + "\n".join(lines[-12:])


def test_of_one_long_line_its_end_is_kept(tmp_path):
    kept = said(tmp_path, "x" * 9_000 + " the rate is 19.")
    assert kept.startswith("…x")
    assert kept.endswith(" the rate is 19.")
    assert len(kept) == 2_001


def test_an_earlier_rounds_words_are_not_the_last(tmp_path):
    (tmp_path / "agent.log").write_text("The first round.\n")
    assert last_words(tmp_path, since=len("The first round.\n")) == ""
