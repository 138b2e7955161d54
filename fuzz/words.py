"""Words that travel: labels, branches, ids, durations, trailers in a commit's message."""

from __future__ import annotations

from fuzz.promise import asked, text, unicode
from lessor.git.message import is_untouched, with_label, without_label
from lessor.git.trailer import labelled, labels_of
from lessor.ids import public_id, row_of
from lessor.model.branch import branch_for, branch_type, is_branch, parse_branch
from lessor.model.label import format_label, parse_label
from lessor.project.duration import LONGEST_MS, parse_duration

_LABEL = "owner=claude-1;branch=ai/1-x;env=none;task=1;epoch=1"


def one(data: bytes) -> None:
    """One input."""
    for said in (text(data), unicode(data)):
        _label(said)
        _branch(said)
        _id(said)
        milliseconds = asked(lambda said=said: parse_duration(said))
        assert milliseconds is None or 0 <= milliseconds <= LONGEST_MS
    _message(data)


def _label(said: str) -> None:
    label = asked(lambda: parse_label(said))
    if label is not None:
        assert format_label(label) == said
        assert "\n" not in said


def _branch(said: str) -> None:
    name = asked(lambda: parse_branch(said))
    assert name is None or is_branch(said)
    title, _, fallback = said.partition("\n")
    made = asked(lambda: branch_for(kind="claude", number=7, title=title, fallback="task"))
    assert made is not None
    assert is_branch(str(made)), made
    asked(lambda: branch_for(kind=title, number=None, title=fallback, fallback="task"))
    asked(lambda: branch_type(title))


def _id(said: str) -> None:
    for kind in ("task", "lease"):
        row = row_of(said, kind, store_key=77)
        assert row is None or row >= 0
        head, _, number = said.rpartition("=")
        if head == kind and number.isascii() and number.isdecimal() and len(number) < 15:
            made = public_id(kind, store_key=77, row=int(number))
            assert row_of(made, kind, store_key=77) == int(number)
            assert row_of(made, kind, store_key=78) is None


def _message(data: bytes) -> None:
    done = labelled(data, _LABEL)
    assert labels_of(done) == [_LABEL]
    assert labelled(done, _LABEL) == done
    labels_of(data)
    comment, _, message = data.partition(b"\n")
    for sign in (b"", b"#", comment[:2]):
        with_label(message, _LABEL, comment=sign)
        is_untouched(message, data, comment=sign)
    without_label(data)
