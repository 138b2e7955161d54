"""Moving a branch forward by compare-and-swap, also where somebody has it checked out.

A checkout is moved only by git's own fast-forward, and only where nothing in it could be in the way:
a branch that is moved under a checkout shows all that landed as if it had been undone there. What git
ignores there is a person's too (`.env`): by default git would write over it without a word.
"""

from __future__ import annotations

import shlex
from pathlib import Path

from lessor.errors import ConflictError, GitError
from lessor.git.command import CHECKOUT_TIMEOUT_S, DURABLY, run_git
from lessor.git.complaint import failure
from lessor.git.layout import Layout, layout_of
from lessor.git.progress import branch_at_head, operations_in_progress
from lessor.git.refs import BRANCHES, read_ref
from lessor.git.registry import list_worktrees
from lessor.git.remnants import remnants
from lessor.git.replay import is_in
from lessor.git.repository import Repository
from lessor.git.status import Status, read_status

_NAMED, _TYPED = 3, 20
_IN_THE_WAY = ("would be overwritten", "would lose untracked files")
# `branch.<name>.mergeOptions` come before: with `--squash` git writes the files and moves no branch.
_MERGE = (
    *("merge", "--ff-only", "--no-squash", "--no-verify-signatures", "--no-verify", "--quiet"),
    *("--no-autostash", "--no-overwrite-ignore"),
)


def refuse_unready(repo: Repository, branch: str) -> Path | None:
    """Refuse a branch that can't be moved; the checkout that it would be moved in, if any.

    Raises:
        ConflictError: it is checked out where files were changed or something is half done, in more
            than one place, or in one that isn't there now.
        GitError: git can't look.
    """
    places = [w for w in list_worktrees(repo) if w.branch == branch]
    away = next((w.path for w in places if not w.path.is_dir()), None)
    if away is not None:
        raise ConflictError(
            f"{branch} is checked out in {away}, which isn't there; its disk may not be mounted.",
            next_step=f"Mount it. If it is gone for good: git -C {repo.root} worktree prune",
            branch=branch,
            checkout=str(away),
        )
    if not places:
        return None
    if len(places) > 1:
        raise ConflictError(
            f"{branch} is checked out in {len(places)} places: {places[0].path}, {places[1].path}.",
            next_step=f"Leave one of them: git -C {places[1].path} checkout --detach",
            branch=branch,
        )
    place = places[0].path
    layout = layout_of(place)
    half = operations_in_progress(layout.git_dir)
    if half:
        raise ConflictError(
            f"{branch} is checked out in {place}, where a {half[0]} is half done.",
            next_step=f"Finish it there: git -C {place} status",
            branch=branch,
            checkout=str(place),
        )
    status = read_status(layout)
    changed = sorted({change.path for change in status.changed})
    if changed:
        _refuse_cut_short(branch, layout, status)
        named = ", ".join(changed[:_NAMED]) + (", …" if len(changed) > _NAMED else "")
        raise ConflictError(
            f"{branch} is checked out in {place} with uncommitted changes ({named}); "
            "nothing there is touched.",
            next_step=f"Commit them, or put them aside: git -C {place} stash",
            branch=branch,
            checkout=str(place),
            files=changed,
        )
    return place


def advance(repo: Repository, *, branch: str, old: str, new: str) -> bool:
    """Move `branch` from `old` to `new`, which contains it; False where it isn't at `old` any more.

    Raises:
        ConflictError: as `refuse_unready`; or a file that git doesn't know of, or ignores, is in the
            way; or the checkout was put on another branch meanwhile.
        GitError: git can't.
    """
    place = refuse_unready(repo, branch)
    ref = f"{BRANCHES}{branch}"
    if place is None:
        asked = [*DURABLY, "update-ref", "-m", "lessor land", ref, new, old]
        done = run_git(asked, cwd=repo.common_dir, git_dir=repo.common_dir, check=False)
        if done.code != 0 and read_ref(repo.common_dir, ref) == old:
            raise GitError(f"{branch} can't be moved: {done.err.decode(errors='replace').strip()}")
        return done.code == 0
    if read_ref(repo.common_dir, ref) != old:
        return False
    # Fast-forward or nothing; git keeps what it doesn't know of, and refuses where that is in the way.
    layout = layout_of(place)
    done = layout.git(
        [*DURABLY, *_MERGE, new],
        check=False,
        timeout_s=CHECKOUT_TIMEOUT_S,
    )
    tip = read_ref(repo.common_dir, ref)
    if done.code == 0:
        if tip == old:
            raise _strayed(branch, place, branch_at_head(layout.git_dir))
        return tip is not None and is_in(repo.common_dir, new, tip)
    if tip != old:
        return False
    _refuse_cut_short(branch, layout, read_status(layout))
    said = done.err.decode(errors="replace").strip()
    if not any(words in said for words in _IN_THE_WAY):
        raise failure(_MERGE, done)
    raise ConflictError(
        f"git doesn't move {branch} in {place}: {said}",
        next_step="Move that away, then land again.",
        branch=branch,
        checkout=str(place),
    )


def _refuse_cut_short(branch: str, layout: Layout, status: Status) -> None:
    """Say of files that a landing wrote before it was cut short that they are nobody's work."""
    left = remnants(layout, status)
    if not left:
        return
    named = ", ".join(left[:_NAMED]) + (", …" if len(left) > _NAMED else "")
    paths = shlex.join(left) if len(left) <= _TYPED else "."
    raise ConflictError(
        f"{branch} is checked out in {layout.path}, where a landing was cut short: what it had "
        f"written is there, and is in the result as well ({named}).",
        next_step=f"Put it aside: git -C {layout.path} stash push --include-untracked -- {paths}. "
        "Then land again.",
        branch=branch,
        checkout=str(layout.path),
        files=list(left),
    )


def _strayed(branch: str, place: Path, now: str | None) -> ConflictError:
    """Git moves what HEAD is on at the end of its work, and HEAD was on `branch` at the beginning."""
    where = now or "a detached HEAD"
    return ConflictError(
        f"{place} was put on {where} while {branch} was moved there: {branch} is where it was, and "
        f"{where} may have what was to land.",
        next_step=f"Look at it: git -C {place} reflog -3. Then land again.",
        branch=branch,
        checkout=str(place),
    )
