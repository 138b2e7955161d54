"""The label's trailer in a commit message: there exactly once, whatever was there before."""

from __future__ import annotations

import re

from lessor.errors import LabelInvalidError

KEY = "Lessor-Label"

_TRAILER = re.compile(rb"[A-Za-z0-9-]+[ \t]*:|\(cherry picked from commit ")
_CONTINUATION = (b" ", b"\t")


def labelled(message: bytes, label: str) -> bytes:
    """`message` with the label as a trailer, in place of any that its trailers held.

    Git reads trailers from the last paragraph only, so text elsewhere that looks like one stays.
    `git interpret-trailers` would do as well if it replaced more than one and obeyed no
    configuration.

    Raises:
        LabelInvalidError: The label spans lines.
    """
    if "\n" in label or "\r" in label or not label.strip():
        raise LabelInvalidError(f"{label!r} can't be a trailer: it is empty or spans lines.")
    trailer = f"{KEY}: {label}".encode()
    if labels_of(message) == [label]:
        return message
    body = message.rstrip()
    text, blank, last = body.rpartition(b"\n\n")
    lines = last.split(b"\n")
    if blank and _is_block(lines):
        return b"\n".join([text, b"", *_without_label(lines), trailer, b""])
    return b"\n".join([body, b"", trailer, b""])


def labels_of(message: bytes) -> list[str]:
    """The labels that a commit message's trailers hold."""
    _, blank, last = message.rstrip().rpartition(b"\n\n")
    lines = last.split(b"\n")
    if not blank or not _is_block(lines):
        return []
    dropped = [line for line in lines if line not in _without_label(lines)]
    return [line.partition(b":")[2].decode(errors="replace").strip() for line in dropped]


def _is_block(lines: list[bytes]) -> bool:
    continued = (line.startswith(_CONTINUATION) for line in lines[1:])
    return _TRAILER.match(lines[0]) is not None and all(
        _TRAILER.match(line) or is_continuation
        for line, is_continuation in zip(lines[1:], continued, strict=True)
    )


def _without_label(lines: list[bytes]) -> list[bytes]:
    kept: list[bytes] = []
    dropping = False
    for line in lines:
        if not line.startswith(_CONTINUATION):
            key = line.partition(b":")[0].strip().lower()
            dropping = key == KEY.lower().encode()
        if not dropping:
            kept.append(line)
    return kept
