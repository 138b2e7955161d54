"""The label in a message that is about to be committed: once, and never a message by itself."""

from __future__ import annotations

import pytest

from lessor.git.message import with_label, without_label

LABEL = "owner=claude-1;branch=ai/7-x;env=none;task=task_1;epoch=2"
LINE = f"Lessor-Label: {LABEL}".encode()
OLD = b"Lessor-Label: owner=codex-1;branch=ai/7-x;env=none;task=task_1;epoch=1"
CUT = b"# ------------------------ >8 ------------------------\n"


@pytest.mark.parametrize("comment", [b"", b"#"])
@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (b"fix", b"fix\n\n" + LINE + b"\n"),
        (b"fix\n\nwhy\n", b"fix\n\nwhy\n\n" + LINE + b"\n"),
        (b"fix\n\nSigned-off-by: A <a@x>\n", b"fix\n\nSigned-off-by: A <a@x>\n" + LINE + b"\n"),
        (b"fix\n\n" + LINE + b"\n", b"fix\n\n" + LINE + b"\n"),
        (b"fix\n\n" + OLD + b"\n", b"fix\n\n" + LINE + b"\n"),
        (b"fix\n\n" + LINE + b"\n" + LINE + b"\n", b"fix\n\n" + LINE + b"\n"),
        # Squashed commits leave theirs in the middle.
        (b"a\n\n" + OLD + b"\n\nb\n\n" + LINE + b"\n", b"a\n\nb\n\n" + LINE + b"\n"),
        # Indented, or part of a sentence, it is text.
        (b"a\n\n    " + OLD + b"\n", b"a\n\n    " + OLD + b"\n\n" + LINE + b"\n"),
        (b"a\n\nLessor-Label: is what we add\n\nb\n",) * 2,
    ],
)
def test_the_label_is_there_once(given: bytes, expected: bytes, comment: bytes) -> None:
    if given == expected and LINE not in given:
        expected = given + b"\n" + LINE + b"\n"
    labelled = with_label(given, LABEL, comment=comment)
    assert labelled == expected
    assert with_label(labelled, LABEL, comment=comment) == labelled


@pytest.mark.parametrize(
    "empty",
    [b"", b"\n", b"# Please enter\n# On branch x\n", b"\n\n" + CUT + b"# below\ndiff --git\n"],
)
def test_an_empty_message_stays_empty(empty: bytes) -> None:
    for given in (empty, LINE + b"\n" + empty):
        assert LINE not in with_label(given, LABEL, comment=b"#")


def test_it_stands_above_what_git_will_strip_or_cut_off() -> None:
    hints = b"\n# Please enter the message\n#\n# On branch x\n"
    assert with_label(b"fix\n" + hints, LABEL, comment=b"#") == b"fix\n\n" + LINE + b"\n" + hints
    cut = b"\n" + CUT + b"# Do not modify\ndiff --git a/x b/x\n+y\n"
    assert with_label(b"fix\n" + cut, LABEL, comment=b"#") == b"fix\n\n" + LINE + b"\n" + cut
    assert with_label(b"fix\n" + cut, LABEL) == b"fix\n\n" + LINE + b"\n" + cut


def test_where_git_strips_nothing_a_line_with_a_hash_is_text() -> None:
    given = b"fix\n\n#12 is the number\n"
    assert with_label(given, LABEL) == given + b"\n" + LINE + b"\n"
    assert with_label(given, LABEL, comment=b"#") == b"fix\n\n" + LINE + b"\n\n#12 is the number\n"
    assert with_label(given, LABEL, comment=b";") == given + b"\n" + LINE + b"\n"


def test_a_hook_that_judges_the_message_sees_none_of_it() -> None:
    for given in (b"fix\n", b"fix\n\nSigned-off-by: A <a@x>\n", b"a\n\n\n\nb\n"):
        assert without_label(given) == given
    assert without_label(with_label(b"fix\n\nwhy\n", LABEL)) == b"fix\n\nwhy\n"
