"""Putting a result's commits onto another commit, in a worktree that nobody works in."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from lessor.git.checkout import checked_out
from lessor.git.command import CHECKOUT_TIMEOUT_S, DURABLY, failure, run_git
from lessor.git.identity import LESSOR, configured_identity
from lessor.git.layout import Layout, layout_of
from lessor.git.repository import Repository
from lessor.git.revision import resolve_commit

# What a person set for rebases of their own: `updateRefs` moves every branch on the way, other
# tasks' too, and `rebaseMerges` keeps the merges that are flattened here.
_QUIETLY = (
    *("-c", "advice.mergeConflict=false", "-c", "rebase.autoStash=false"),
    *("-c", "rebase.updateRefs=false", "-c", "rebase.rebaseMerges=false"),
    *("-c", "rerere.enabled=false"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Replayed:
    """What came of it.

    Attributes:
        commit: the result on top of the new base; None where it conflicts.
        commits: how many of its own commits are there now; what the base has already isn't.
        conflicts: the paths that stand against each other, at the first commit that does.
    """

    commit: str | None
    commits: int = 0
    conflicts: tuple[str, ...] = ()


def replay(repo: Repository, *, path: Path, head: str, base: str, onto: str) -> Replayed:
    """Rebase what `head` has and `base` hasn't onto `onto`; no branch and no checkout moves.

    Args:
        path: the worktree for it, made on first use; another process waits for it.
        base: what the result began from. Where the target has that too, all that the target hasn't
            is the result's; else (it stands on a result that was rewritten) only what came after.

    Raises:
        GitError: a revision names no commit here, or git can't do it for another reason than a
            conflict.
    """
    # A holder reports its commits in its own words: as ids they can't be read as options any more.
    head, base, onto = (resolve_commit(repo.common_dir, rev) for rev in (head, base, onto))
    upstream = base
    if is_in(repo.common_dir, base, onto) or not is_in(repo.common_dir, base, head):
        upstream = onto
    with checked_out(repo, path=path, commit=onto) as place:
        layout = layout_of(place)
        # What a crash left of the last one; the checkout has the files of `onto` by now.
        layout.git(["rebase", "--quit"], check=False)
        layout.git(
            ["checkout", "--detach", "--force", "--quiet", head], timeout_s=CHECKOUT_TIMEOUT_S
        )
        # The target will lead to them, by a reference that a power cut keeps.
        asked = [
            *DURABLY,
            *_QUIETLY,
            "rebase",
            "--quiet",
            "--no-autosquash",
            "--onto",
            onto,
            upstream,
        ]
        done = layout.git(asked, check=False, env=_committer(layout), timeout_s=CHECKOUT_TIMEOUT_S)
        if done.code == 0:
            commit = layout.git(["rev-parse", "HEAD"]).text
            counted = repo.git(["rev-list", "--count", f"{onto}..{commit}"]).text
            return Replayed(commit=commit, commits=int(counted))
        listed = layout.git(["diff", "--name-only", "--diff-filter=U", "-z"], check=False)
        layout.git(["rebase", "--abort"], check=False)
        if not listed.records:
            raise failure(asked, done)
        return Replayed(commit=None, conflicts=tuple(sorted(set(listed.records))))


def is_in(common_dir: Path, commit: str, tip: str) -> bool:
    """Whether `commit` is in the history of `tip`.

    Raises:
        GitError: git can't tell.
    """
    asked = ["merge-base", "--is-ancestor", commit, tip]
    done = run_git(asked, cwd=common_dir, git_dir=common_dir, check=False)
    if done.code not in {0, 1}:  # 128: one of them isn't here, and the answer isn't no
        raise failure(asked, done)
    return done.code == 0


def _committer(layout: Layout) -> dict[str, str]:
    """Whoever lands is the committer; git would refuse where it knows nobody."""
    name, email = configured_identity(layout) or LESSOR
    return {"GIT_COMMITTER_NAME": name, "GIT_COMMITTER_EMAIL": email}
