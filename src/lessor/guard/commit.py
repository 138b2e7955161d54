"""The gate at commit, as the hooks of a leased worktree call it.

`paths` and `lease` may refuse; `label` and `unlabel` write the message. It fails closed: a lost
lease commits nothing, and where nobody can say whether it is lost, only a person's or an agent's
own word (LESSOR_COMMIT_UNASKED=1) lets the commit through. Nothing is ever taken out of the
worktree, and the gate at completion judges all of it again.
"""

from __future__ import annotations

import gc
import os
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from lessor.errors import LeaseLostError, LessorError
from lessor.runner.posted import FILE, Posted, read_posted

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from lessor.guard.authority import Authority

MOST_LISTED = 20
_NO_EDITOR = ":"
_TEMPLATE = "template"
_BEFORE_THE_EDITOR = frozenset({"", _TEMPLATE})
_KEEPS_COMMENTS = "applypatch-msg"
_FINAL = frozenset({"commit-msg", _KEEPS_COMMENTS})


def main(arguments: Sequence[str]) -> int:
    """Answer one hook; 0 lets git go on."""
    gc.disable()  # it would look through all that is imported, for garbage that nobody makes here
    verb, *rest, folder = arguments
    here = Path(folder)
    writes = verb in {"label", "unlabel"}
    try:
        posted = read_posted(here / FILE)
        if not writes:
            return _judge(here, posted, staged=verb == "paths")
        file = Path(rest[0])
        return (
            _label(file, rest[1], posted, here / _TEMPLATE) if verb == "label" else _unlabel(file)
        )
    except (LessorError, OSError) as silent:
        said = silent.message if isinstance(silent, LessorError) else str(silent)
        if not writes:
            return _unasked(said)
        _say(said)
        return 1


def _judge(here: Path, posted: Posted, *, staged: bool) -> int:
    # Only here: writing a label must not pay for the store's driver.
    from lessor.guard.authority import StoreAuthority  # noqa: PLC0415

    try:
        _refuse_earlier(posted)
        return _ask(StoreAuthority(posted), here.parent, posted, staged=staged)
    except LeaseLostError as lost:
        return _refuse(
            lost.message,
            "nothing is lost: your changes stay in this worktree, as they are.",
            f"stop here, and see: lessor show {posted.number}",
        )


def _ask(authority: Authority, git_dir: Path, posted: Posted, *, staged: bool) -> int:
    from lessor.git.committing import staged_paths  # noqa: PLC0415

    def packages() -> Collection[str]:
        from lessor.git.repository import packages_at  # noqa: PLC0415

        return packages_at(git_dir.parent.parent, posted.base)

    paths = staged_paths(Path.cwd(), git_dir, session=os.environ) if staged else ()
    admission = authority.admit(paths, packages=packages)
    if not admission.refused:
        return 0
    return _refuse(
        f"these paths can't be part of #{posted.number}:",
        *_in_words(admission.refused),
        "nothing is lost: they stay in this worktree. Commit the rest without them:",
        f"  git restore --staged -- {_named(list(admission.refused))}",
    )


def _refuse_earlier(posted: Posted) -> None:
    """Refuse a process that outlived its epoch, in a worktree that the next one works in."""
    task, epoch = os.environ.get("LESSOR_TASK"), os.environ.get("LESSOR_EPOCH")
    if task == posted.task and epoch not in {None, str(posted.epoch)}:
        raise LeaseLostError(
            f"#{posted.number} can't be committed at epoch {epoch}: this worktree is epoch "
            f"{posted.epoch}'s now.",
            next_step=f"Stop, and see: lessor show {posted.number}.",
        )


def _in_words(refused: Mapping[str, LessorError]) -> list[str]:
    from lessor.runner.refused import shown_path  # noqa: PLC0415
    from lessor.runner.words import first_line  # noqa: PLC0415

    lines: list[str] = []
    for path, why in list(refused.items())[:MOST_LISTED]:
        said, name = first_line(why.message), shown_path(path)
        lines.append(f"  {said}" if said.startswith(name) else f"  {name}: {said}")
    more = len(refused) - MOST_LISTED
    return [*lines, f"  and {more} more"] if more > 0 else lines


def _named(paths: Sequence[str]) -> str:
    if len(paths) > MOST_LISTED or not all(path.isprintable() for path in paths):
        return "PATH…"
    return shlex.join(paths)


def _unasked(why: str) -> int:
    from lessor.settings import UNASKED  # noqa: PLC0415 - a commit that is let through needs none

    if os.environ.get(UNASKED) == "1":
        _say("committed without asking for the lease; it is judged at completion.")
        return 0
    return _refuse(
        f"nobody can say whether the lease still holds: {why}",
        "nothing is lost: what you staged stays staged. Try again; or commit without asking, and it",
        f"is judged at completion: {UNASKED}=1 git commit …",
    )


def _refuse(*lines: str) -> int:
    _say(f"no commit: {lines[0]}", *lines[1:])
    return 1


def _say(*lines: str) -> None:
    for line in lines:
        text = f"lessor: {line}\n"
        sys.stderr.buffer.write(text.encode("utf-8", "backslashreplace"))


def _label(file: Path, when: str, posted: Posted, template: Path) -> int:
    """Label the message.

    Args:
        file: where it lies.
        when: what git says of its source in prepare-commit-msg, or the other hook's name.
        posted: with the label.
        template: where the text of a template is kept for as long as the editor is open.
    """
    from lessor.git.message import is_untouched, with_label  # noqa: PLC0415

    edited = os.environ.get("GIT_EDITOR") != _NO_EDITOR
    message = file.read_bytes()
    if when not in _FINAL:
        template.unlink(missing_ok=True)
    if edited and when in _BEFORE_THE_EDITOR:
        # A label would make a message of an empty one, and another text of a template.
        if when == _TEMPLATE:
            template.write_bytes(message)
        return 0
    comment = _comment(message) if edited and when != _KEEPS_COMMENTS else b""
    if template.exists() and is_untouched(message, template.read_bytes(), comment=comment):
        return 0
    labelled = with_label(message, posted.label, comment=comment)
    if labelled != message:
        file.write_bytes(labelled)
    return 0


def _comment(message: bytes) -> bytes:
    from lessor.git.committing import comment_prefix  # noqa: PLC0415

    return comment_prefix(Path.cwd(), message, session=os.environ)


def _unlabel(file: Path) -> int:
    from lessor.git.message import without_label  # noqa: PLC0415

    message = file.read_bytes()
    bare = without_label(message)
    if bare != message:
        file.write_bytes(bare)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
