"""What agents and checks leave as text: data that is kept, shown, and never obeyed."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from pathlib import Path

from lessor.runner.plain_file import open_plain

MOST_LEFT = 16_384
_TAIL_BYTES = 8_192
_LONGEST_WORDS = 2_000
_MOST_LINES = 12
_SECOND = 1_000
_MOST_SECONDS = 100
_LONGEST_LINE = 200
# Colours, cursor moves and titles of terminals (ECMA-48's CSI and OSC), whole.
_CONTROL = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\^_])")


def kept_text(text: str, *, most: int) -> str:
    """The end of `text` in a form that every store and every file can keep: no NUL, no half pair."""
    shortened = text[-most:]
    return shortened.replace("\0", "").encode("utf-8", "backslashreplace").decode("utf-8")


def span_text(milliseconds: int) -> str:
    """A short time in words: `8 s`, `14 m`."""
    seconds = round(milliseconds / 1000)
    return f"{seconds} s" if seconds < _MOST_SECONDS else f"{round(seconds / 60)} m"


def took_text(milliseconds: int) -> str:
    """How long something took: `8 s`, `14 m`, `under 1 s`."""
    return span_text(milliseconds) if milliseconds >= _SECOND else "under 1 s"


def first_line(text: str) -> str:
    """The first line of `text` that says anything, printable and short."""
    line = next((line for line in text.splitlines() if line.strip()), "")
    return _printable(line).strip()[:_LONGEST_LINE]


def last_line(text: str) -> str:
    """The last line of `text` that says anything, printable and short."""
    line = next((line for line in reversed(text.splitlines()) if line.strip()), "")
    return _printable(line).strip()[:_LONGEST_LINE]


def last_words(run_dir: Path, *, since: int = 0) -> str:
    """The last lines that say anything of the last paragraph that an agent printed.

    At most a dozen, without control characters; where it began earlier, they begin with an
    ellipsis. The log has the whole.

    Args:
        since: where this round's output begins in the log, in bytes.
    """
    text = _CONTROL.sub("", _end_of(run_dir / "agent.log", since=since))
    paragraphs = [_speaking(paragraph) for paragraph in re.split(r"\n[^\S\n]*\n", text)]
    lines = next((lines for lines in reversed(paragraphs) if lines), [])
    said = "\n".join(lines[-_MOST_LINES:]).strip()
    cut = len(lines) > _MOST_LINES or len(said) > _LONGEST_WORDS
    return f"…{said[-_LONGEST_WORDS:]}" if cut else said


def log_size(run_dir: Path) -> int:
    """How long the agent's log is now, in bytes; 0 before there is one."""
    with suppress(OSError):
        return (run_dir / "agent.log").stat().st_size
    return 0


def left_in(outbox: Path, name: str) -> str:
    """What the agent left in its outbox under `name`, at most 16 kB; empty where it left no plain file."""
    content = _read_plain(outbox / name, since=0, most=MOST_LEFT)
    return kept_text(content.decode("utf-8", "replace"), most=MOST_LEFT).strip()


def _end_of(path: Path, *, since: int) -> str:
    size = 0
    with suppress(OSError):
        size = path.lstat().st_size
    start = max(since, size - _TAIL_BYTES)
    return _read_plain(path, since=start, most=_TAIL_BYTES).decode("utf-8", "replace")


def _read_plain(path: Path, *, since: int, most: int) -> bytes:
    handle = open_plain(path)
    if handle is None:
        return b""
    try:
        return os.pread(handle, most, since)
    except OSError:
        return b""
    finally:
        os.close(handle)


def _printable(text: str) -> str:
    return "".join(c if c.isprintable() or c == "\n" else " " for c in text)


def _speaking(paragraph: str) -> list[str]:
    """Its lines with a letter or a digit in them; of a line drawn over, what was drawn last."""
    lines = (
        _printable(line.rstrip("\r").rpartition("\r")[2]).rstrip() for line in paragraph.split("\n")
    )
    return [line for line in lines if any(c.isalnum() for c in line)]
