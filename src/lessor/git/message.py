"""The label in a message that is about to be committed: there exactly once, and no message of its own.

What a hook gets isn't the message yet: git may still strip comments from it, and cuts off what
stands below its scissors.
"""

from __future__ import annotations

import re

from lessor.git.trailer import KEY, labelled

# A whole line as Lessor writes it; where commits are squashed, one stands in the middle of the text.
_LABEL = re.compile(
    rb"^" + KEY.encode() + rb": owner=[^;\s]+(?:;[a-z]+=[^;\s]+)+[ \t]*(?:\n|\Z)", re.MULTILINE
)
_SCISSORS = re.compile(rb"^\S+ -{24} >8 -{24}$", re.MULTILINE)
_GAP = re.compile(rb"\n{3,}")


def with_label(message: bytes, label: str, *, comment: bytes = b"") -> bytes:
    """The message with the label as a trailer in the place of any other; an empty one stays empty.

    Whoever leaves the editor with an empty message means that nothing is to be committed.

    Args:
        message: as it lies in the file.
        label: the label.
        comment: what begins a line that git will strip; empty where it will strip none.

    Raises:
        LabelInvalidError: The label spans lines.
    """
    text, tail = _parts(_without_labels(message), comment)
    if not _said(text, comment):
        return text + tail
    return labelled(text, label) + tail


def without_label(message: bytes) -> bytes:
    """The message as it would be without Lessor."""
    return _without_labels(message)


def is_untouched(message: bytes, template: bytes, *, comment: bytes) -> bool:
    """Whether whoever edited a template left its text as it was: git then commits nothing."""
    return _said(message, comment) == _said(template, comment)


def _without_labels(message: bytes) -> bytes:
    text, found = _LABEL.subn(b"", message)
    if not found:
        return message
    return _GAP.sub(b"\n\n", text).rstrip(b"\n") + b"\n"


def _parts(message: bytes, comment: bytes) -> tuple[bytes, bytes]:
    """The text, and below it what git strips or cuts off."""
    cut = _SCISSORS.search(message)
    end = cut.start() if cut else len(message)
    if comment:
        lines = message[:end].splitlines(keepends=True)
        while lines and (not lines[-1].strip() or lines[-1].startswith(comment)):
            end -= len(lines.pop())
    return message[:end], _apart(message[end:])


def _apart(tail: bytes) -> bytes:
    return b"\n" + tail.lstrip(b"\n") if tail.strip() else b""


def _said(text: bytes, comment: bytes) -> list[bytes]:
    """The lines that say anything."""
    cut = _SCISSORS.search(text)
    lines = text[: cut.start() if cut else None].splitlines()
    return [
        line.rstrip()
        for line in lines
        if line.strip() and not (comment and line.startswith(comment))
    ]
