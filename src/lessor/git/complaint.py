"""What git says as it fails, made an error."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from lessor.errors import GitError

if TYPE_CHECKING:
    from lessor.git.command import GitResult

# What stops git whatever it was to do, by its own words.
_ROOM = "Make room on that disk, then try again: df -h"
_HELP: Mapping[str, str] = {
    "no space left on device": _ROOM,
    "out of diskspace": _ROOM,
    "disk quota exceeded": _ROOM,
    "read-only file system": "Mount it for writing, then try again.",
    "index.lock': file exists": "If no git runs there any more, remove that file, then try again.",
    "gpg failed to sign": "Unlock the key that commits are signed with, then try again; or sign none: "
    "git config commit.gpgSign false",
    "external filter": "Mend the filter, or see what it says: git lfs env, git config --get-regexp filter",
}
# The system's words end a line. Of a file that git could open and not write it keeps them for itself.
_DISK = tuple(list(_HELP)[:4])
_NOT_WRITTEN = "error: unable to write file "
# Lines that end with a path as it is, or that tell of another machine's disk.
_NOT_OF_DISK = ("fatal: Unable to process path ", "warning: ", "remote: ")
OF_DISK = "disk"
"""The fact of an error behind which a full disk stands, or one that can't be written."""
_LINES_OF_COMPLAINT = 4
_CAUSES = ("fatal:", "error:")  # advice may follow, longer than what is kept
_HINT = "hint:"  # for somebody at a terminal; several lines of it would hide what went wrong
# Up to the last "@" before the path, as git reads it: a password may hold one.
_CREDENTIALS = re.compile(r"://[^/\s]+@")


def failure(args: Sequence[str], result: GitResult) -> GitError:
    """The error for a git command that failed, with its own last lines, credentials left out."""
    complaint = hide_credentials(result.err.decode(errors="replace"))
    # At git's own line ends: a name may hold what splitlines() splits at.
    told = [line for line in complaint.strip().split("\n") if not line.startswith(_HINT)]
    lines = told[-_LINES_OF_COMPLAINT:]
    cause = next((line for line in told if line.startswith(_CAUSES)), None)
    if cause is not None and cause not in lines:
        lines[0] = cause
    said = " ".join(line.strip() for line in lines) or _end(result.code)
    return GitError(
        f"git {verb_of(args)} failed: {said}",
        next_step=next((step for words, step in _HELP.items() if words in complaint.lower()), ""),
        command=verb_of(args),
        git_code=result.code,
        said=lines,
        **({OF_DISK: True} if any(_is_of_disk(line) for line in told) else {}),
    )


def _end(code: int) -> str:
    return f"it was killed by signal {-code}." if code < 0 else f"exit code {code}"


def _is_of_disk(line: str) -> bool:
    says_so = line.lower().rstrip(". ").endswith(_DISK) and not line.startswith(_NOT_OF_DISK)
    return says_so or line.startswith(_NOT_WRITTEN)


def hide_credentials(text: str) -> str:
    """The text with what stands before a URL's host left out."""
    return _CREDENTIALS.sub("://…@", text)


def verb_of(args: Sequence[str]) -> str:
    """The command's name: its first plain word; the rest may hold a URL with credentials."""
    skip = False
    for arg in args:
        if skip or arg.startswith("-"):
            skip = arg == "-c"
            continue
        return arg
    return ""
