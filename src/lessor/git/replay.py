"""Putting a result's commits onto another commit, in a worktree that nobody works in."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from lessor.git.changes import held_by_merges
from lessor.git.checkout import checked_out
from lessor.git.command import CHECKOUT_TIMEOUT_S, DURABLY, run_git
from lessor.git.complaint import failure
from lessor.git.identity import LESSOR, configured_identity, identity
from lessor.git.layout import Layout, layout_of
from lessor.git.repository import Repository
from lessor.git.revision import resolve_commit

# What a person set for rebases of their own: `updateRefs` moves every branch on the way, other
# tasks' too, `rebaseMerges` keeps the merges that are flattened here, the backend "apply" mends
# spaces as `apply.whitespace` says, and `commit.cleanup` takes lines out of messages.
_QUIETLY = (
    *("-c", "advice.mergeConflict=false", "-c", "rebase.autoStash=false"),
    *("-c", "rebase.updateRefs=false", "-c", "rebase.rebaseMerges=false"),
    *("-c", "rebase.backend=merge", "-c", "commit.cleanup=verbatim"),
    *("-c", "rerere.enabled=false"),
)
_CONFLICTS = 1
_REBASED, _MERGED, _SQUASHED = "rebased", "merged", "squashed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Replayed:
    """What came of it.

    Attributes:
        commit: the result on top of the new base; None where it conflicts.
        way: "rebased"; "merged" or "squashed" where its own merges hold what a rebase leaves out.
        commits: how many of its own commits are there now; what the base has already isn't.
        conflicts: the paths that stand against each other, at the first commit that does.
    """

    commit: str | None
    way: str = _REBASED
    commits: int = 0
    conflicts: tuple[str, ...] = ()


def replay(repo: Repository, *, path: Path, head: str, base: str, onto: str) -> Replayed:
    """Put what `head` has and `base` hasn't onto `onto`; no branch and no checkout moves.

    It is rebased. Where merges of its own hold what git's own merge wouldn't have, it is merged; and
    where that would bring more than its own, it becomes one commit.

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
    held = held_by_merges(repo.common_dir, since=upstream, head=head)
    with checked_out(repo, path=path, commit=onto) as place:
        layout = layout_of(place)
        # What a crash left of the last one; the checkout has the files of `onto` by now.
        layout.git(["rebase", "--quit"], check=False)
        layout.git(["cherry-pick", "--quit"], check=False)
        if held and upstream == onto:
            return _merged(layout, head, onto)
        if held:
            # A merge would bring what it stands on as well, which was rewritten or given up.
            start, asked = onto, ["cherry-pick", _squashed(layout, head, upstream)]
        else:
            start = head
            asked = ["rebase", "--quiet", "--no-autosquash", "--onto", onto, upstream]
        layout.git(
            ["checkout", "--detach", "--force", "--quiet", start], timeout_s=CHECKOUT_TIMEOUT_S
        )
        # The target will lead to them, by a reference that a power cut keeps.
        done = layout.git(
            [*DURABLY, *_QUIETLY, *asked],
            check=False,
            env=_committer(layout),
            timeout_s=CHECKOUT_TIMEOUT_S,
        )
        if done.code == 0:
            commit = layout.git(["rev-parse", "HEAD"]).text
            return _replayed(layout, commit, onto, way=_SQUASHED if held else _REBASED)
        listed = layout.git(["diff", "--name-only", "--diff-filter=U", "-z"], check=False)
        layout.git([asked[0], "--abort"], check=False)
        if not listed.records:
            raise failure(asked, done)
        way = _SQUASHED if held else _REBASED
        return Replayed(commit=None, way=way, conflicts=tuple(sorted(set(listed.records))))


def _merged(layout: Layout, head: str, onto: str) -> Replayed:
    """What has merges with something of their own is merged: a rebase would leave that out."""
    if is_in(layout.common_dir, onto, head):
        return _replayed(layout, head, onto, way=_MERGED)
    asked = ["merge-tree", "--write-tree", "-z", "--name-only", "--no-messages", onto, head]
    done = layout.git([*DURABLY, *asked], check=False, timeout_s=CHECKOUT_TIMEOUT_S)
    if done.code not in {0, _CONFLICTS}:
        raise failure(asked, done)
    tree, *conflicts = done.records
    if done.code == _CONFLICTS:
        return Replayed(commit=None, way=_MERGED, conflicts=tuple(sorted(set(conflicts))))
    if tree == layout.git(["rev-parse", f"{onto}^{{tree}}"]).text:
        return Replayed(commit=onto, way=_MERGED)
    commit = _commit(layout, tree, f"Merge the result {head[:12]}\n", parents=(onto, head))
    return _replayed(layout, commit, onto, way=_MERGED)


def _squashed(layout: Layout, head: str, upstream: str) -> str:
    """All that `head` has and `upstream` hasn't as one commit, in the words of its last one."""
    said = layout.git(["log", "-1", "--no-show-signature", "--no-color", "--format=%B", head]).text
    return _commit(layout, f"{head}^{{tree}}", f"{said.rstrip()}\n", parents=(upstream,))


def _commit(layout: Layout, tree: str, message: str, *, parents: tuple[str, ...]) -> str:
    options = [option for parent in parents for option in ("-p", parent)]
    return layout.git(
        [*DURABLY, "commit-tree", tree, *options],
        input=message.encode("utf-8", "surrogateescape"),
        env=identity(configured_identity(layout) or LESSOR),
    ).text


def _replayed(layout: Layout, commit: str, onto: str, *, way: str) -> Replayed:
    counted = layout.git(["rev-list", "--count", f"{onto}..{commit}"]).text
    return Replayed(commit=commit, way=way, commits=int(counted))


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
