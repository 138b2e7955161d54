"""Checklists, JSON lines and durations."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lessor.errors import InvalidError
from lessor.project.checklist import read_checklist
from lessor.project.duration import LONGEST_MS, parse_duration
from lessor.project.jsonlines import read_jsonlines
from lessor.project.wish import Wish, file_key, resolve_waits


def one(text: str) -> Wish:
    (wish,) = read_checklist(text, file="T.md")
    return wish


@pytest.mark.parametrize(
    ("line", "title"),
    [
        ("- [ ] Plain", "Plain"),
        ("* [ ]   Starred  ", "Starred"),
        ("+ [ ] Plus", "Plus"),
        ("12. [ ] Numbered", "Numbered"),
        ("3) [ ] Bracketed", "Bracketed"),
        ("   - [ ] Indented", "Indented"),
        ("- [ ] Mail a@b.example about @types/node", "Mail a@b.example about @types/node"),
        (r"- [ ] Ask \@bob", "Ask @bob"),
        ("- [ ] Ümläut ✓", "Ümläut ✓"),
    ],
)
def test_an_item_is_a_task(line: str, title: str) -> None:
    assert one(line).title == title


def test_directives_end_the_line_and_may_be_quoted() -> None:
    wish = one(
        r'- [ ] Retry  @check "pytest -q \"a b\"" @scope a,b @scope "c d" @after 2,#14 @strict'
    )
    assert wish.check == 'pytest -q "a b"'
    assert wish.scopes == ("a", "b", "c d")
    assert wish.after == ("2", "#14")
    assert wish.strict


def test_what_is_indented_below_belongs_to_the_item() -> None:
    text = "- [ ] a\n  more\n\n    - [ ] a part of it\n\n  end\n\nA paragraph.\n- [ ] b\n"
    first, second = read_checklist(text, file="T.md")
    assert first.prompt == "more\n\n  - [ ] a part of it\n\nend"
    assert (second.title, second.prompt, second.line) == ("b", "", 9)


def test_code_blocks_are_left_alone() -> None:
    text = "```\n- [ ] no\n```\n~~~~ md\n- [ ] no\n```\n- [ ] no\n~~~~\n- [ ] yes\n"
    assert [wish.title for wish in read_checklist(text, file="T.md")] == ["yes"]


def test_the_same_words_are_the_same_task_however_they_are_spaced() -> None:
    assert one("- [ ] Fix   the Box").key("T.md") == one("* [x] fix the box  @scope web").key(
        "T.md"
    )
    assert one("- [ ] Fix").key("T.md") != one("- [ ] Fix").key("U.md")
    assert one("- [ ] Fix").key("T.md").startswith(file_key("T.md"))


@given(st.text(max_size=200))
def test_any_text_is_read_or_refused(text: str) -> None:
    assert _read_or_refused(lambda: resolve_waits(read_checklist(text, file="T.md"), file="T.md"))


@pytest.mark.parametrize("name", ["9" * 5_000, "#" + "9" * 5_000, "#" + "9" * 30])
def test_a_number_that_nothing_can_have_is_nothing_to_wait_for(name: str) -> None:
    wishes = read_checklist(f"- [ ] a @after {name}", file="T.md")
    with pytest.raises(InvalidError, match="to wait for"):
        resolve_waits(wishes, file="T.md")


@given(st.text(max_size=200))
def test_any_json_lines_are_read_or_refused(text: str) -> None:
    assert _read_or_refused(lambda: read_jsonlines(text, file="T.md"))


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [
        ("250ms", 250),
        ("90", 90_000),
        ("90s", 90_000),
        ("20m", 1_200_000),
        ("1h30m", 5_400_000),
        ("4h", 14_400_000),
        (" 2D ", 172_800_000),
        ("1w", 604_800_000),
        ("0", 0),
    ],
)
def test_a_duration_is_read(text: str, milliseconds: int) -> None:
    assert parse_duration(text) == milliseconds


@pytest.mark.parametrize(
    "text", ["", "soon", "-5m", "5 m", "1.5h", "5x", "m", "1h-5m", "9" * 40, "600w", "\u0661h"]
)
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(InvalidError):
        parse_duration(text)


@given(st.text(alphabet="0123456789smhdw ", max_size=12))
def test_a_duration_is_never_negative_or_absurd(text: str) -> None:
    with suppress(InvalidError):
        assert 0 <= parse_duration(text) <= LONGEST_MS


def _read_or_refused(read: Callable[[], object]) -> bool:
    """Whether it was read, or refused with the file's name."""
    try:
        read()
    except InvalidError as refused:
        return "T.md" in str(refused)
    return True
