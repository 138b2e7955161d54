"""The gate at completion: every path lies in the scope, or is taken now, or is refused.

Every path counts that one of its own commits touched, also where a later one undid that: the commits
travel with the result, and the remote's gate judges each of them. Commits of the target that were
merged in are somebody else's, unless they were made in this very worktree: whoever moves a target over
its own commits, or pushes them there past the gate, doesn't get them out of its sight.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from lessor.errors import InvalidError, ScopeHeldError, ScopeInvalidError
from lessor.git.authorship import made_on
from lessor.git.changes import FileChange, diff_summary, newest_shared, touches
from lessor.git.layout import layout_of
from lessor.git.repository import packages_at
from lessor.model.grant import Grant
from lessor.model.path import PathRules, path_key
from lessor.model.scope import Scope, covers, merge_scopes, natural_scope, parse_scope
from lessor.runner.asking import answered
from lessor.runner.desk import Desk
from lessor.runner.noting import NoteKind, Tell
from lessor.runner.refused import MOST_LISTED, Cause, Refused, held_by, in_words, named
from lessor.runner.targets import target_tips

AT_ONCE = 1_000
_UNASKED = Cause(
    text="not asked for any more: too much is refused already",
    rule="weren't asked for any more",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What a result changes.

    Attributes:
        files: every file that differs from the base, for people.
        touched: the paths that own commits touched, each with the id of one.
        head: the result's commit.
        targets: what the result's target has, by which others' commits are told from its own.
    """

    files: tuple[FileChange, ...]
    touched: Mapping[str, str]
    head: str
    targets: tuple[str, ...] = ()

    @property
    def own(self) -> tuple[str, ...]:
        """The paths that own commits touched and that the result changes."""
        differing = {file.path for file in self.files}
        return tuple(path for path in self.touched if path in differing)

    @property
    def size(self) -> dict[str, int]:
        """How many files and lines."""
        return {
            "files": len(self.files),
            "added": sum(file.added or 0 for file in self.files),
            "removed": sum(file.removed or 0 for file in self.files),
        }


def change_in(desk: Desk, worktree: Path, base: str, *, head: str, branch: str) -> Change:
    """What base..head changes, without what its target brought along.

    Raises:
        GitError: git can't tell.
    """
    common_dir, targets = desk.repo.common_dir, target_tips(desk, base)
    own = made_on(layout_of(worktree), since=base, branch=branch, targets=targets)
    touched: dict[str, str] = {}
    for touch in touches(common_dir, base, head, excluding=targets, own=own):
        touched.setdefault(touch.path, touch.commit)
    return Change(
        files=diff_summary(common_dir, base, head),
        touched=touched,
        head=head,
        targets=() if own else targets,
    )


class Gate:
    """Judges the paths of one repository's results."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        known = desk.lessor.registry.repository(desk.repository)
        self._rules = PathRules(fold_case=known.fold_case, normalize=known.normalize)

    def judge(self, grant: Grant, change: Change, *, base: str, tell: Tell) -> Refused | None:
        """Widen over every touched path outside the scope that nobody has; what can't be had, if any.

        Raises:
            LeaseLostError: the lease is over.
            GitError: git can't be asked.
        """
        outside, refused = self._outside(grant, change.touched)
        if outside and grant.strict:
            confined = f"the task is confined to {', '.join(grant.scopes[:3])}"
            cause = Cause(text=confined, rule=f"can't be part of it: {confined}")
            refused |= dict.fromkeys(outside, cause)
        elif outside:
            refused |= self._take(grant, outside, base=base, tell=tell)
        if not refused:
            return None
        common_dir = self._desk.repo.common_dir
        start = newest_shared(common_dir, base, change.head, others=change.targets)
        left = {file.path for file in diff_summary(common_dir, start, change.head)}
        return in_words(
            refused,
            change.touched,
            number=grant.number,
            start=start,
            undone=refused.keys() - left,
        )

    def _outside(
        self, grant: Grant, touched: Mapping[str, str]
    ) -> tuple[list[str], dict[str, Cause]]:
        """The paths outside of what the lease covers now, and those that no tree may hold."""
        # Read anew: the lease may have been widened since it was granted.
        texts = self._desk.lessor.tasks.task(grant.task).scopes
        scopes = merge_scopes(parse_scope(text, rules=self._rules) for text in texts)
        plain = {scope.key for scope in scopes if scope.pattern is None}
        globs = [scope for scope in scopes if scope.pattern is not None]
        outside: list[str] = []
        refused: dict[str, Cause] = {}
        for path in touched:
            try:
                if not self._is_covered(path, plain, globs):
                    outside.append(path)
            except ScopeInvalidError as invalid:
                refused[path] = _unheard_of(invalid)
        return outside, refused

    def _is_covered(self, path: str, plain: Collection[str], globs: Sequence[Scope]) -> bool:
        key = path_key(path, rules=self._rules)
        # A literal scope covers all below it, so that it is one of the key's own beginnings.
        ends = (place + 1 for place, letter in enumerate(key) if letter == "/")
        if any(key[:end] in plain for end in ends):
            return True
        return any(covers(scope, path, rules=self._rules) for scope in globs)

    def _take(
        self, grant: Grant, outside: Sequence[str], *, base: str, tell: Tell
    ) -> dict[str, Cause]:
        """Take the natural scopes of the paths, else the single files; what is refused, and why."""
        packages = frozenset(packages_at(self._desk.repo.common_dir, base))
        below: dict[str, list[str]] = {}
        for path in outside:
            below.setdefault(natural_scope(path, packages=packages), []).append(path)
        taken, refused = self._widen(grant, sorted(below))
        whys = {path: why for scope, why in refused.items() for path in below[scope]}
        files = {f"path:{path}": path for path in whys if self._is_scope(f"path:{path}")}
        single, held = self._widen(grant, sorted(files))
        if taken or single:
            tell(NoteKind.WIDENED, f"took {named([*taken, *single])}")
        for scope in single:
            del whys[files[scope]]
        whys |= {files[scope]: why for scope, why in held.items()}
        return whys

    def _is_scope(self, text: str) -> bool:
        try:
            parse_scope(text, rules=self._rules)
        except ScopeInvalidError:
            return False
        return True

    def _widen(self, grant: Grant, wanted: Sequence[str]) -> tuple[list[str], dict[str, Cause]]:
        """Widen over many scopes in few transactions: what was taken, and what was refused."""
        taken: list[str] = []
        refused: dict[str, Cause] = {}
        for start in range(0, len(wanted), AT_ONCE):
            left = list(wanted[start : start + AT_ONCE])
            while left and len(refused) < MOST_LISTED:
                held = self._widen_at_once(grant, left)
                if held is None:
                    taken += left
                    left = []
                else:
                    scope, why = held
                    refused[scope] = why
                    left.remove(scope)
            refused |= dict.fromkeys(left, _UNASKED)
        return taken, refused

    def _widen_at_once(self, grant: Grant, scopes: Sequence[str]) -> tuple[str, Cause] | None:
        """Widen over all of them, or name one that is in the way and why."""
        try:
            leases = self._desk.lessor.leases
            answered(self._desk, lambda: leases.widen(grant.holder, scopes, since_start=True))
        except ScopeHeldError as held:
            return self._meant(str(held.facts.get("path", "")), scopes), held_by(held)
        except InvalidError as invalid:
            bad = next((s for s in scopes if not self._is_scope(s)), scopes[0])
            return bad, _unheard_of(invalid)
        return None

    def _meant(self, refused: str, scopes: Sequence[str]) -> str:
        """Which of `scopes` a refusal is about; it names the scope as the store spells it."""
        if refused in scopes:
            return refused
        if not self._is_scope(refused):
            return scopes[0]
        key = parse_scope(refused, rules=self._rules).key
        same = (s for s in scopes if parse_scope(s, rules=self._rules).key == key)
        return next(same, scopes[0])


def _unheard_of(invalid: InvalidError) -> Cause:
    return Cause(text=invalid.message, rule=f"can be in no result: {invalid.message.rstrip('.')}")
