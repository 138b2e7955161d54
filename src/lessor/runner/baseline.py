"""The check on the base itself, once a commit: a red base would burn every agent's time.

How it went is kept in the state directory by repository, commit and commands. A green answer is
taken as it is; a red one is asked again by the next run, because what it lacked may be a package
of this machine.
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from lessor.errors import BaseRedError
from lessor.runner.checks import Checks, how_it_ended
from lessor.runner.desk import Desk, Plan
from lessor.runner.noting import NoteKind
from lessor.runner.process import CommandResult, never
from lessor.runner.words import kept_text, took_text

TAIL = 2_000


class Baseline:
    """What is known of base commits in one run; its slots wait for one answer together."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._checks = Checks(desk, slot=1)
        self._lock = threading.Lock()
        self._known: dict[Path, BaseRedError | None] = {}

    def require(self, commit: str, plan: Plan, *, interrupted: Callable[[], bool] = never) -> None:
        """Refuse to go on from a base on which the configured check fails.

        Args:
            commit: the base.
            plan: what its configuration asks for.
            interrupted: ends the check early; nothing is known then, and nothing refused.

        Raises:
            BaseRedError: it fails there; the facts hold its last lines.
            GitError, AgentError: it can't be run.
        """
        if plan.check is None or self._desk.options.anyway:
            return
        place = self._place(commit, plan)
        with self._lock:
            if place not in self._known and not _is_green(place):
                result = self._run(plan.check, plan, commit, interrupted)
                if result.interrupted:
                    return
                self._known[place] = self._judge(result, plan.check, commit, place)
            red = self._known.get(place)
        if red is not None:
            raise red

    def _run(
        self, check: str, plan: Plan, commit: str, interrupted: Callable[[], bool]
    ) -> CommandResult:
        self._desk.note(NoteKind.BASE, f"check on {commit[:7]}: {check}")
        return self._checks.run(
            check,
            plan,
            commit=commit,
            log=self._desk.baselines_dir / f"{commit}.log",
            interrupted=interrupted,
        )

    def _judge(
        self, result: CommandResult, check: str, commit: str, place: Path
    ) -> BaseRedError | None:
        took = took_text(result.duration_ms)
        record = {"code": result.code, "check": check, "ms": result.duration_ms}
        # What can't be kept is asked again; that costs time and nothing else.
        with suppress(OSError):
            draft = place.with_suffix(".draft")
            draft.write_text(json.dumps(record), encoding="utf-8")
            draft.replace(place)
        if result.code == 0:
            self._desk.note(NoteKind.BASE, f"check passed in {took}: {check}")
            return None
        self._desk.note(NoteKind.BASE, f"check {how_it_ended(result)} after {took}: {check}")
        return BaseRedError(
            f"The check fails on the base already: `{check}` {how_it_ended(result)} on "
            f"{commit[:7]}.\n\n{kept_text(result.tail, most=TAIL)}\n",
            next_step="Mend the base, choose another (--base), or run anyway (--anyway).",
            check=check,
            commit=commit,
            tail=kept_text(result.tail, most=TAIL),
        )

    def _place(self, commit: str, plan: Plan) -> Path:
        commands = json.dumps([plan.check, plan.setup])
        digest = hashlib.sha256(commands.encode("utf-8", "surrogateescape")).hexdigest()[:16]
        return self._desk.baselines_dir / f"{commit}-{digest}.json"


def _is_green(place: Path) -> bool:
    with suppress(OSError, ValueError, AttributeError):
        return bool(json.loads(place.read_text(encoding="utf-8")).get("code") == 0)
    return False
