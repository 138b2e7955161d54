"""One push judged: who pushes, whose the branches are, which paths the commits touch.

Twice. Before anything is accepted (pre-receive) all of it; and under git's own lock on the
references ("prepared") once more who and whose, so that a claim in between is met. What the second
look needs lies in a file of the first one's: git shows push options to the first alone.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from lessor.errors import GitError, LessorError
from lessor.git.changes import leads_to, pushed_touches
from lessor.git.quoting import shown_path
from lessor.git.server_hooks import PUSHES
from lessor.hook.client import OPTION
from lessor.model.push import (
    RefUpdate,
    Shown,
    Standing,
    Unleased,
    refuse_push,
    refuse_update,
)
from lessor.receive.book import Book
from lessor.receive.policy import Policy, read_policy, trusted_tips

MOST_LISTED = 20
_TICKET = re.compile(re.escape(OPTION) + r"(\d{1,18})\.([0-9a-f]{16,128})")
_GONE = "0" * 40


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """Whether a push may go on, and what it is told."""

    passed: bool
    words: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Push:
    """A push as git's hook tells of it.

    Attributes:
        process: names the receive-pack, and no other one that gets its number later.
        shown: what it shows; empty where it shows nothing.
        env: how git finds the pushed objects.
    """

    pid: int
    process: str
    updates: tuple[RefUpdate, ...]
    shown: str = ""
    env: Mapping[str, str]


class Gate:
    """Judges the pushes to one repository.

    Args:
        git_dir: its directory, a bare repository's or `.git`.
        folder: where notes about pushes under way lie.
        book: whoever keeps the leases; asked for at each push, as it may be away.
    """

    def __init__(self, git_dir: Path, folder: Path, book: Callable[[], Book]) -> None:
        self._git_dir = git_dir
        self._notes = folder / PUSHES
        self._book = book

    def receive(self, push: Push) -> Verdict:
        """The answer before anything is accepted."""
        try:
            policy = read_policy(self._git_dir)
            asked = [u for u in push.updates if not _is_exempt(u, policy)]
            refused = self._refuse(push.shown, asked, policy, push.env, paths=True)
        except LessorError as silent:
            return _unasked(push, silent)
        if refused:
            return Verdict(passed=False, words=refused)
        self._note(push, [u for u in asked if u.branch is not None], policy)
        return Verdict(passed=True)

    def prepare(self, push: Push) -> Verdict:
        """The answer under git's lock on the references, for those that were asked about before."""
        try:
            note = self._noted(push)
        except (OSError, ValueError, KeyError) as unread:
            why = f"what was asked about this push before can't be read: {unread}"
            return _refusal(why, "Push again.")
        if note is None:
            return Verdict(passed=True)  # another process has that number now: no push
        branches = [u for u in push.updates if u.branch is not None]
        expected: Mapping[str, str | None] = note["updates"]
        try:
            policy = Policy(unleased=Unleased(note["unleased"]), exempt=tuple(note["exempt"]))
            asked = [u for u in branches if not _is_exempt(u, policy)]
            strange = [u.ref for u in asked if expected.get(u.ref, _GONE) != u.new]
            if strange:
                return _refusal(f"{strange[0]} isn't what was pushed", "Push again.")
            refused = self._refuse(str(note["shown"]), asked, policy, push.env, paths=False)
        except LessorError as silent:
            return _unasked(push, silent)
        return Verdict(passed=not refused, words=refused)

    def forget_past(self, is_over: Callable[[int, str], bool]) -> None:
        """Remove the notes of pushes whose process is gone."""
        for place in self._notes.iterdir():
            with suppress(OSError, ValueError, KeyError):
                if is_over(int(place.name), json.loads(place.read_text())["process"]):
                    place.unlink()

    def _refuse(
        self,
        text: str,
        updates: Sequence[RefUpdate],
        policy: Policy,
        env: Mapping[str, str],
        *,
        paths: bool,
    ) -> tuple[str, ...]:
        """The words of a refusal; none where all of it may be moved."""
        branches = [u.branch for u in updates if u.branch is not None]
        if not text and not branches:
            return self._refuse_each(updates, {}, None, policy, env)
        book = self._book()
        shown = None
        if text:
            ticket = _TICKET.fullmatch(text)
            shown = book.shown(int(ticket[1]), ticket[2]) if ticket else None
            why = refuse_push(shown)
            if why is not None:
                return _refusal(why, "Your commits are where they were.").words
        standings = book.standings(branches) if branches else {}
        refused = self._refuse_each(updates, standings, shown, policy, env)
        if refused or not paths or shown is None:
            return refused
        return self._refuse_paths(book, shown, updates, policy, env)

    def _refuse_each(
        self,
        updates: Sequence[RefUpdate],
        standings: Mapping[str, Standing],
        shown: Shown | None,
        policy: Policy,
        env: Mapping[str, str],
    ) -> tuple[str, ...]:
        for update in updates:
            standing = standings.get(update.branch or "")
            head = standing.head if standing is not None else None
            goes_on = bool(
                head and update.new and leads_to(self._git_dir, head, update.new, env=env)
            )
            why = refuse_update(update, standing, shown, unleased=policy.unleased, goes_on=goes_on)
            if why is not None:
                return _refusal(why, _next(standing)).words
        return ()

    def _refuse_paths(
        self,
        book: Book,
        shown: Shown,
        updates: Sequence[RefUpdate],
        policy: Policy,
        env: Mapping[str, str],
    ) -> tuple[str, ...]:
        update = next((u for u in updates if u.ref == shown.ref), None)
        if update is None or update.new is None:
            return ()
        trusted = trusted_tips(self._git_dir, policy)
        known = [*trusted.tips, *([update.old] if update.old else [])]
        touched = pushed_touches(
            self._git_dir, update.new, known=known, target=trusted.target, env=env
        )
        commits = {touch.path: touch.commit for touch in touched}
        outside = book.outside(shown.lease, list(commits))
        if not outside:
            return ()
        listed = [
            f"  {shown_path(path)} (commit {commits[path][:12] or 'none alone'})"
            + (f": {why}" if why else "")
            for path, why in list(outside.items())[:MOST_LISTED]
        ]
        more = len(outside) - MOST_LISTED
        return (
            f"refused: #{shown.number} has no lease over these paths:",
            *listed,
            *([f"  and {more} more"] if more > 0 else []),
            "Push with `lessor push`: it takes what nobody else has, and says whose the rest is.",
        )

    def _note(self, push: Push, branches: Sequence[RefUpdate], policy: Policy) -> None:
        if not branches:
            return
        text = json.dumps(
            {
                "process": push.process,
                "shown": push.shown,
                "updates": {update.ref: update.new for update in branches},
                "unleased": policy.unleased,
                "exempt": policy.exempt,
            }
        )
        draft = self._notes / f".{push.pid}"
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
            file.write(text)
        draft.replace(self._notes / str(push.pid))

    def _noted(self, push: Push) -> dict[str, Any] | None:
        try:
            found: dict[str, Any] = json.loads((self._notes / str(push.pid)).read_text())
        except FileNotFoundError:
            return None
        return found if found["process"] == push.process else None


def _is_exempt(update: RefUpdate, policy: Policy) -> bool:
    return any(fnmatchcase(update.ref, pattern) for pattern in policy.exempt)


def _unasked(push: Push, silent: LessorError) -> Verdict:
    """Nobody can say which branches are leased: none moves. Any other reference is never leased."""
    if not push.shown and all(update.branch is None for update in push.updates):
        return Verdict(passed=True)
    words = f"nobody can say whether this is leased: {silent.message}"
    return _refusal(words, "Your commits are where they were. Push again once the store answers.")


def _refusal(why: str, next_step: str) -> Verdict:
    return Verdict(passed=False, words=(f"refused: {why}.".replace("..", "."), next_step))


def _next(standing: Standing | None) -> str:
    if standing is None:
        return "Its policy is lessor.unleased in the repository's configuration."
    if standing.lease is not None:
        return "Its holder pushes it with `lessor push`. Anything of yours goes under another name."
    return f"See whose it is: lessor show {standing.number}. Yours goes under another name."


def parse_updates(text: bytes) -> tuple[RefUpdate, ...]:
    """The lines `<old> <new> <ref>` of git's hooks; ids of nothing but zeros mean absent.

    Raises:
        GitError: a line is none.
    """
    found = []
    # At git's own line ends: a name may hold what Python takes for others, such as U+2028.
    for line in os.fsdecode(text).removesuffix("\n").split("\n") if text else ():
        parts = line.split(" ", 2)
        if len(parts) != 3:  # noqa: PLR2004
            raise GitError(f"git's hook was told {line[:80]!r}, which is no update.")
        old, new, ref = parts
        if ref.startswith("refs/"):  # HEAD moves with the branch that it is on
            found.append(RefUpdate(ref=ref, old=_id(old), new=_id(new)))
    return tuple(found)


def _id(text: str) -> str | None:
    return None if not text.strip("0") else text
