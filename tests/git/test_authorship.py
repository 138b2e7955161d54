"""A lent branch takes its holder's commits, however they were made, and nobody else's."""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from lessor.errors import ForeignCommitsError, GitError
from lessor.git.authorship import (
    Authorship,
    Step,
    made_on,
    read_authorship,
    refuse_foreign,
    slips_before,
    with_inherited,
)
from lessor.git.changes import commits_without_trailer, touches
from lessor.git.commit import commit_leftovers, ensure_trailer
from lessor.git.foreign import record_foreign, recorded_foreign
from lessor.git.layout import layout_of
from lessor.git.repository import Repository, head_commit
from lessor.git.worktree import add_worktree, detach_head

Git = Callable[..., str]

BRANCH = "claude/7-totals"
LABELS = [f"owner=claude-1;branch={BRANCH};env=none;task=7;epoch={n}" for n in (1, 2)]
OTHERS = "owner=codex-1;branch=codex/8-other;env=none;task=8;epoch=1"


class Handed:
    """Epoch 1 left a commit in `old`, whose HEAD is detached; epoch 2 works in `new`."""

    def __init__(self, repo: Repository, old: Path, new: Path, git: Git) -> None:
        self.main, self.old, self.new, self.git = repo.root, old, new, git
        self.commit(old, "inherited", label=LABELS[0])
        detach_head(old)
        add_worktree(
            repo, path=new, branch=BRANCH, base="main", task="7", epoch=2, reason=LABELS[1]
        )
        self.start = head_commit(new)

    def commit(self, where: Path, name: str, *options: str, label: str = "") -> str:
        (where / name).write_text(f"{name}\n")
        self.git(where, "add", "-A")
        trailer = ["--trailer", f"Lessor-Label: {label}"] if label else []
        self.git(where, "commit", "-q", "-m", name, *trailer, *options)
        return head_commit(where)

    def judge(self, *, since: str = "") -> str:
        """What the gate does at the end: the labelled head, or a refusal."""
        main = self.git(self.main, "rev-parse", "main")
        return ensure_trailer(self.new, base=since or self.start, label=LABELS[1], excluding=[main])

    def accept(self, *, since: str = "") -> list[str]:
        """Judge, and the subjects of what is in the branch then, each with the label."""
        head = self.judge(since=since)
        lacking = commits_without_trailer(
            self.main / ".git",
            since=since or self.start,
            head=head,
            key="Lessor-Label",
            value=LABELS[1],
            excluding=["main"],
        )
        assert lacking == []
        asked = [f"{since or self.start}..{BRANCH}", "--not", "main"]
        return self.git(self.main, "log", "--topo-order", "--format=%s", *asked).split("\n")

    def refuse(self, *commits: str) -> str:
        """Judge, see it refused for exactly these commits, and take the way out that it names."""
        before = self.git(self.main, "for-each-ref", "refs/heads")
        with pytest.raises(ForeignCommitsError) as refused:
            self.judge()
        assert refused.value.facts["commits"] == list(commits)
        assert all(commit[:12] in str(refused.value) for commit in commits)
        assert self.git(self.main, "for-each-ref", "refs/heads") == before
        (way_out,) = re.findall(r"git [^;.]*$", refused.value.next_step.split(";")[0])
        self.git(self.new, *shlex.split(way_out)[1:])
        return way_out


@pytest.fixture
def handed(repo: Repository, worktree: Path, git: Git) -> Handed:
    return Handed(repo, worktree, worktree.with_name("7-2"), git)


# What the holder does.


def test_commits_are_the_holders_own(handed: Handed):
    handed.commit(handed.new, "one")
    handed.commit(handed.new, "two")
    assert handed.accept() == ["two", "one"]


def test_what_a_worktree_began_on_was_not_made_there(handed: Handed):
    """An earlier epoch had brought its branch forward to the target, and ended."""
    theirs = handed.commit(handed.main, "theirs")
    handed.git(handed.new, "merge", "-q", "--no-edit", "main")
    handed.git(handed.new, "checkout", "-q", "--detach", "main")
    handed.git(handed.main, "branch", "-f", BRANCH, "main")
    again = handed.new.with_name("7-3")
    handed.git(handed.main, "worktree", "add", "-q", str(again), BRANCH)
    since = handed.git(handed.main, "rev-parse", "main~1")
    assert made_on(layout_of(again), since=since, branch=BRANCH, targets=[theirs]) == ()


def test_an_amended_commit_is_the_holders_own_whoever_made_it_first(handed: Handed):
    """Also the inherited one, whose label is the earlier epoch's."""
    handed.git(handed.new, "commit", "-q", "--amend", "-m", f"better\n\nLessor-Label: {LABELS[0]}")
    assert handed.accept(since="main") == ["better"]


def test_inherited_commits_that_are_rebased_become_the_holders_own(handed: Handed):
    handed.commit(handed.main, "theirs")
    handed.commit(handed.new, "mine")
    handed.git(handed.new, "rebase", "-q", "main")
    assert handed.accept() == ["mine", "inherited"]


def test_a_merge_on_the_target_touched_nothing_of_the_other_side_whatever_the_commits_are_called(
    handed: Handed,
):
    """`git log` forgets the parents of what it has shown; a merge of it would be made from nothing."""
    own = handed.commit(handed.new, "own")
    handed.commit(handed.main, "README")
    handed.git(handed.new, "merge", "-q", "--no-edit", "main")
    tries = 0
    while (merge := head_commit(handed.new)) < own:  # the parent is the first by name
        tries += 1
        handed.git(handed.new, "commit", "-q", "--amend", "-m", f"merge {tries}")
    made = made_on(layout_of(handed.new), since=handed.start, branch=BRANCH, targets=[merge])
    assert made == (merge, own)
    found = touches(handed.main / ".git", handed.start, merge, excluding=[merge], own=made)
    assert [touch.path for touch in found] == ["own"]


def test_what_the_label_made_anew_is_the_holders_own(handed: Handed):
    """All of it: the reflog has the last one alone."""
    for name in ("one", "two"):
        handed.commit(handed.new, name)
    head = handed.judge()
    made = made_on(layout_of(handed.new), since=handed.start, branch=BRANCH, targets=[head])
    assert made == (head, handed.git(handed.new, "rev-parse", "HEAD^"))


def test_a_rebase_that_squashes_and_reorders_is_the_holders_own(handed: Handed):
    for name in ("one", "two", "three"):
        handed.commit(handed.new, name)
    editor = "sed -i -e '1{h;d};2{G};3s/pick/fixup/'"
    handed.git(handed.new, "-c", f"sequence.editor={editor}", "rebase", "-q", "-i", handed.start)
    assert handed.accept() == ["one", "two"]


def test_a_fixup_that_squashes_itself_is_the_holders_own(handed: Handed):
    first = handed.commit(handed.new, "one")
    handed.commit(handed.new, "two")
    handed.commit(handed.new, "fix", f"--fixup={first}")
    options = ["-c", "sequence.editor=:", "rebase", "-q", "-i", "--autosquash", handed.start]
    handed.git(handed.new, *options)
    assert handed.accept() == ["two", "one"]


def test_cherry_picks_are_the_holders_own_whatever_label_they_had(handed: Handed):
    handed.git(handed.main, "checkout", "-q", "-b", "codex/8-other", "main")
    one = handed.commit(handed.main, "one", label=OTHERS)
    handed.commit(handed.main, "two", label=OTHERS)
    handed.git(handed.main, "checkout", "-q", "main")
    handed.git(handed.new, "cherry-pick", f"{one}~1..codex/8-other")
    assert handed.accept() == ["two", "one"]


def test_merges_of_the_target_are_no_matter(handed: Handed):
    """Also when others' labels are on what landed there."""
    handed.commit(handed.main, "landed", label=OTHERS)
    handed.commit(handed.new, "mine")
    handed.git(handed.new, "merge", "-q", "--no-edit", "main")
    assert handed.accept() == ["Merge branch 'main' into claude/7-totals", "mine"]


def test_a_fast_forward_to_the_target_is_no_matter(handed: Handed):
    handed.git(handed.main, "merge", "-q", "--ff-only", BRANCH)
    landed = handed.commit(handed.main, "landed", label=OTHERS)
    handed.git(handed.new, "merge", "-q", "--ff-only", "main")
    assert handed.judge() == landed


def test_resets_are_the_holders_own(handed: Handed):
    handed.commit(handed.new, "wrong")
    handed.git(handed.new, "reset", "-q", "--hard", "HEAD~1")
    handed.commit(handed.new, "one")
    handed.commit(handed.new, "two")
    handed.git(handed.new, "reset", "-q", "--soft", handed.start)
    handed.git(handed.new, "commit", "-q", "-m", "both")
    assert handed.accept() == ["both"]


def test_going_back_behind_the_inherited_commits_is_the_holders_own(handed: Handed):
    handed.git(handed.new, "reset", "-q", "--hard", "main")
    handed.commit(handed.new, "afresh")
    assert handed.accept() == ["afresh"]


def test_a_side_branch_that_is_merged_back_is_the_holders_own(handed: Handed):
    """It stays as it was; what is in the lent branch carries the label."""
    handed.git(handed.new, "checkout", "-q", "-b", "side")
    side = handed.commit(handed.new, "aside")
    handed.git(handed.new, "checkout", "-q", BRANCH)
    handed.commit(handed.new, "mine")
    handed.git(handed.new, "merge", "-q", "--no-edit", "side")
    assert sorted(handed.accept()) == ["Merge branch 'side' into claude/7-totals", "aside", "mine"]
    assert handed.git(handed.main, "rev-parse", "side") == side


def test_a_branch_that_is_set_to_a_side_branch_is_the_holders_own(handed: Handed):
    handed.git(handed.new, "checkout", "-q", "-b", "side")
    handed.commit(handed.new, "aside")
    handed.git(handed.new, "branch", "-f", BRANCH, "side")
    handed.git(handed.new, "checkout", "-q", BRANCH)
    assert handed.accept() == ["aside"]


def test_a_commit_on_a_detached_head_that_is_merged_is_the_holders_own(handed: Handed):
    handed.git(handed.new, "checkout", "-q", "--detach")
    loose = handed.commit(handed.new, "loose")
    handed.git(handed.new, "checkout", "-q", BRANCH)
    handed.git(handed.new, "merge", "-q", "--ff-only", loose)
    assert handed.accept() == ["loose"]


def test_patches_reverts_and_popped_stashes_are_the_holders_own(handed: Handed):
    handed.commit(handed.new, "one")
    patch = handed.git(handed.new, "format-patch", "--stdout", "HEAD~1")
    handed.git(handed.new, "revert", "--no-edit", "HEAD")
    handed.git(handed.new, "am", "-q", stdin=f"{patch}\n".encode())
    (handed.new / "later").write_text("x")
    handed.git(handed.new, "stash", "-q", "-u")
    handed.git(handed.new, "stash", "pop", "-q")
    handed.git(handed.new, "add", "-A")
    handed.git(handed.new, "commit", "-q", "-m", "later")
    assert handed.accept() == ["later", "one", 'Revert "one"', "one"]


def test_rewritten_history_and_plumbing_are_the_holders_own(handed: Handed):
    handed.commit(handed.new, "one")
    handed.commit(handed.new, "two")
    os.environ["FILTER_BRANCH_SQUELCH_WARNING"] = "1"
    filtered = ["filter-branch", "-f", "--msg-filter", "sed s/^/x-/", f"{handed.start}..HEAD"]
    handed.git(handed.new, *filtered)
    tree = handed.git(handed.new, "rev-parse", "HEAD^{tree}")
    made = handed.git(handed.new, "commit-tree", tree, "-p", "HEAD", "-m", "by hand")
    handed.git(handed.new, "update-ref", "HEAD", made)
    assert handed.accept() == ["by hand", "x-two", "x-one"]


def test_a_worktree_that_the_holder_makes_and_merges_is_its_own(handed: Handed, tmp_path: Path):
    handed.commit(handed.new, "mine")
    handed.git(handed.new, "worktree", "add", "-q", "-b", "helper", str(tmp_path / "helper"))
    handed.commit(tmp_path / "helper", "helped")
    handed.git(handed.new, "merge", "-q", "--ff-only", "helper")
    assert handed.accept() == ["helped", "mine"]


def test_leftovers_and_labels_of_earlier_rounds_are_the_holders_own(handed: Handed):
    handed.commit(handed.new, "one")
    handed.judge()
    (handed.new / "two").write_text("x")
    commit_leftovers(handed.new, message="two", label=LABELS[1], author=None)
    handed.judge()
    handed.commit(handed.new, "three")
    assert handed.accept() == ["three", "two", "one"]


# What a process without the lease does.


def late(handed: Handed, *, label: str = "") -> str:
    return handed.commit(handed.old, "late", label=label)


@pytest.mark.parametrize("label", ["", LABELS[0], LABELS[1]])
def test_a_branch_that_was_moved_by_update_ref_is_refused(handed: Handed, label: str):
    """Whatever the commit says of itself."""
    mine = handed.commit(handed.new, "mine")
    zombie = late(handed, label=label)
    handed.git(handed.old, "update-ref", f"refs/heads/{BRANCH}", zombie)
    assert handed.refuse(zombie) == f"git reset --soft {mine}"
    assert handed.accept() == ["mine"]
    assert handed.git(handed.new, "status", "--porcelain") == ""


def test_a_branch_that_was_checked_out_by_force_is_refused(handed: Handed):
    mine = handed.commit(handed.new, "mine")
    handed.git(handed.old, "checkout", "-q", "--ignore-other-worktrees", BRANCH)
    first, second = handed.commit(handed.old, "late"), handed.commit(handed.old, "later")
    assert handed.refuse(second, first) == f"git reset --soft {mine}"
    assert handed.accept() == ["mine"]


def test_a_branch_that_was_pushed_to_is_refused(handed: Handed):
    handed.commit(handed.new, "mine")
    zombie = late(handed)
    handed.git(handed.old, "push", "-q", "-f", ".", f"HEAD:{BRANCH}", check=False)
    assert handed.git(handed.main, "rev-parse", BRANCH) != zombie, "git's own default"
    handed.git(handed.main, "config", "receive.denyCurrentBranch", "ignore")
    handed.git(handed.old, "push", "-q", "-f", ".", f"HEAD:{BRANCH}")
    handed.refuse(zombie)
    assert handed.accept() == ["mine"]


def test_the_holders_commits_on_top_are_kept(handed: Handed):
    handed.commit(handed.new, "mine")
    handed.git(handed.old, "checkout", "-q", "--ignore-other-worktrees", BRANCH)
    zombie = handed.commit(handed.old, "late")
    handed.git(handed.new, "reset", "-q", "--hard")  # unaware, but tidy
    handed.commit(handed.new, "more")
    assert handed.refuse(zombie).startswith("git rebase --onto ")
    assert handed.accept() == ["more", "mine"]


def test_a_branch_that_was_moved_while_its_holder_was_elsewhere_is_refused(handed: Handed):
    handed.commit(handed.new, "mine")
    handed.git(handed.new, "checkout", "-q", "--detach")
    handed.git(handed.old, "checkout", "-q", BRANCH)
    zombie = handed.commit(handed.old, "late")
    handed.git(handed.old, "checkout", "-q", "--detach")
    handed.git(handed.new, "checkout", "-q", BRANCH)
    handed.refuse(zombie)
    assert handed.accept() == ["mine"]


def test_a_foreign_commit_is_not_the_holders_own_because_another_branch_has_it(handed: Handed):
    handed.commit(handed.new, "mine")
    zombie = late(handed)
    handed.git(handed.old, "branch", "-q", "cover", zombie)
    handed.git(handed.old, "update-ref", f"refs/heads/{BRANCH}", zombie)
    handed.refuse(zombie)


def test_a_branch_moved_before_the_holders_first_step_is_refused(handed: Handed):
    zombie = late(handed)
    handed.git(handed.old, "update-ref", f"refs/heads/{BRANCH}", zombie)
    assert handed.refuse(zombie) == f"git reset --soft {handed.start}"


def test_another_leases_commits_are_refused_when_they_are_merged(handed: Handed):
    handed.git(handed.main, "checkout", "-q", "-b", "codex/8-other", "main")
    other = handed.commit(handed.main, "other", label=OTHERS)
    handed.git(handed.main, "checkout", "-q", "main")
    handed.commit(handed.new, "mine")
    handed.git(handed.new, "merge", "-q", "--no-edit", "codex/8-other")
    handed.commit(handed.new, "more")
    handed.refuse(other)
    assert handed.accept() == ["more", "mine"]


def test_another_leases_commits_are_refused_when_the_branch_is_set_to_them(handed: Handed):
    handed.git(handed.main, "checkout", "-q", "-b", "codex/8-other", BRANCH)
    other = handed.commit(handed.main, "other", label=OTHERS)
    handed.git(handed.main, "checkout", "-q", "main")
    handed.git(handed.new, "merge", "-q", "--ff-only", "codex/8-other")
    assert handed.refuse(other) == f"git reset --keep {handed.start}"
    assert head_commit(handed.new) == handed.start


def test_without_a_reflog_nobody_can_tell_and_it_is_refused(handed: Handed):
    handed.commit(handed.new, "mine")
    handed.git(handed.new, "reflog", "expire", "--expire=now", "--all")
    with pytest.raises(ForeignCommitsError, match=r"LESSOR_BASE"):
        handed.judge()
    handed.git(handed.new, "reset", "-q", "--soft", handed.start)
    handed.git(handed.new, "commit", "-q", "-m", "mine again")
    assert handed.accept() == ["mine again"]


# What is on record when the branch is handed on once more.


def slips(handed: Handed, where: Path) -> dict[str, Step]:
    tip = handed.git(handed.main, "rev-parse", BRANCH)
    git_dir = layout_of(where).git_dir
    return slips_before(git_dir, tip=tip, base="main", branch=BRANCH)


def test_what_came_past_the_last_holder_is_told_with_where_it_was_before(handed: Handed):
    mine = handed.commit(handed.new, "mine")
    zombie = late(handed)
    handed.git(handed.old, "update-ref", f"refs/heads/{BRANCH}", zombie)
    assert slips(handed, handed.new) == {zombie: Step(mine, zombie)}
    handed.git(handed.new, "rm", "-q", "--cached", "mine")
    top = handed.commit(handed.new, "top")
    assert head_commit(handed.new) == top
    assert slips(handed, handed.new) == {zombie: Step(mine, zombie)}
    detach_head(handed.new)
    assert slips(handed, handed.new) == {zombie: Step(mine, zombie)}


def test_what_the_last_holder_did_is_its_own_until_the_branch_is_taken_off(handed: Handed):
    handed.commit(handed.new, "one")
    handed.commit(handed.new, "two", "--amend")
    handed.git(handed.new, "rebase", "-q", "-f", "main")
    assert slips(handed, handed.new) == {}
    tip = head_commit(handed.new)
    detach_head(handed.new)
    assert slips(handed, handed.new) == {}
    zombie = handed.commit(handed.new, "late")
    handed.git(handed.new, "update-ref", f"refs/heads/{BRANCH}", zombie)
    assert slips(handed, handed.new) == {zombie: Step(tip, zombie)}


def test_a_branch_that_is_taken_back_by_force_after_it_was_handed_on_is_no_word_of_its_holder(
    handed: Handed,
):
    detach_head(handed.new)
    handed.git(handed.new, "checkout", "-q", BRANCH)
    zombie = handed.commit(handed.new, "late")
    assert slips(handed, handed.new) == {zombie: Step(handed.start, zombie)}


def test_the_record_keeps_the_commit_and_the_way_back(handed: Handed):
    mine = handed.commit(handed.new, "mine")
    zombie = late(handed)
    common_dir = layout_of(handed.new).common_dir
    record_foreign(common_dir, "7", {zombie: Step(mine, zombie)})
    record_foreign(common_dir, "7", {zombie: Step(None, mine)})  # it was decided once
    assert recorded_foreign(common_dir, "7") == {zombie: Step(mine, zombie)}
    assert recorded_foreign(common_dir, "70") == recorded_foreign(common_dir, "8") == {}
    for where in (handed.old, handed.new):
        handed.git(where, "reset", "-q", "--hard", "main")
        handed.git(where, "reflog", "expire", "--expire=now", "--all")
    handed.git(handed.main, "gc", "-q", "--prune=now")
    assert recorded_foreign(common_dir, "7") == {zombie: Step(mine, zombie)}
    for commit in (mine, zombie):
        assert handed.git(handed.main, "cat-file", "-t", commit) == "commit"


@pytest.mark.parametrize("on_top", [False, True])
def test_what_is_on_record_is_refused_below_the_inherited_tip_too(handed: Handed, on_top: bool):
    zombie = late(handed)
    handed.git(handed.old, "update-ref", f"refs/heads/{BRANCH}", zombie)
    handed.git(handed.new, "reset", "-q", "--hard")
    if on_top:
        handed.commit(handed.new, "mine")
    last = head_commit(handed.new)

    def look() -> Authorship:
        layout = layout_of(handed.new)
        found = read_authorship(layout, since=last, branch=BRANCH, label=LABELS[1])
        recorded = {zombie: Step(handed.start, zombie)}
        return with_inherited(found, layout, base="main", branch=BRANCH, recorded=recorded)

    with pytest.raises(ForeignCommitsError, match="in an earlier epoch") as refused:
        refuse_foreign(look(), branch=BRANCH)
    assert refused.value.facts["commits"] == [zombie]
    (way_out,) = re.findall(r"git [^;.]*$", refused.value.next_step)
    handed.git(handed.new, *shlex.split(way_out)[1:])
    assert look().foreign == ()
    subjects = handed.git(handed.new, "log", "--format=%s", "main..HEAD").split("\n")
    assert subjects == [*(["mine"] if on_top else []), "inherited"]


# A git command of the old worktree that was frozen when the branch was handed on.


@pytest.fixture
def frozen(repo: Repository, worktree: Path, git: Git, tmp_path: Path) -> Iterator[Callable]:
    """Start `git commit` in the worktree and freeze it while it runs the named hook or its editor."""
    started: list[subprocess.Popen[bytes]] = []

    def freeze(at: str) -> subprocess.Popen[bytes]:
        ready = tmp_path / "ready"
        # reference-transaction is called with its state; elsewhere there is no such argument.
        waits = f'[ "${{1:-prepared}}" = {"prepared" if at == "reference-transaction" else "$1"} ]'
        script = tmp_path / "wait"
        script.write_text(
            f"#!/bin/sh\n{waits if at == 'reference-transaction' else 'true'} || exit 0\n"
            f"[ -e {ready} ] && exit 0\ntouch {ready}\nwhile [ ! -e {tmp_path}/go ]; do :; done\n"
            f'[ {at} = editor ] && echo late > "$1"\nexit 0\n'
        )
        script.chmod(0o755)
        hooks = tmp_path / "hooks"
        hooks.mkdir()
        if at != "editor":
            (hooks / at).symlink_to(script)
        (worktree / "late").write_text("late\n")
        git(worktree, "add", "late")
        message = [] if at == "editor" else ["-m", "late"]
        process = subprocess.Popen(
            [
                *("git", "-c", f"core.hooksPath={hooks}", "-c", f"core.editor={script}"),
                *("-c", "user.name=Zombie", "-c", "user.email=z@x", "commit", "-q", *message),
            ],
            cwd=worktree,
            start_new_session=True,
        )
        started.append(process)
        while not ready.exists():
            assert process.poll() is None
        os.killpg(process.pid, signal.SIGSTOP)
        return process

    yield freeze
    for process in started:
        if process.poll() is None:
            wake(process, tmp_path)


def wake(process: subprocess.Popen[bytes], tmp_path: Path) -> int:
    (tmp_path / "go").touch()
    os.killpg(process.pid, signal.SIGCONT)
    return process.wait(timeout=60)


@pytest.mark.parametrize("at", ["editor", "pre-commit"])
def test_a_frozen_commit_that_resumes_after_the_hand_over_moves_no_branch(
    frozen, repo: Repository, worktree: Path, git: Git, tmp_path: Path, at: str
):
    process = frozen(at)
    base = head_commit(worktree)
    detach_head(worktree)
    new = worktree.with_name("7-2")
    add_worktree(repo, path=new, branch=BRANCH, base="main", task="7", epoch=2, reason=LABELS[1])
    assert wake(process, tmp_path) == 0
    assert git(worktree, "log", "-1", "--format=%s") == "late"
    assert git(repo.root, "rev-parse", BRANCH) == head_commit(new) == base
    (new / "mine").write_text("x")
    commit_leftovers(new, message="mine", label=LABELS[1], author=None)
    assert ensure_trailer(new, base=base, label=LABELS[1]) == head_commit(new)


def test_a_commit_frozen_with_its_locks_held_keeps_the_branch_until_it_ends(
    frozen, repo: Repository, worktree: Path, git: Git, tmp_path: Path
):
    """It could not be stopped from moving the branch, so nobody else gets it; nothing is lost."""
    process = frozen("reference-transaction")
    base = head_commit(worktree)
    with pytest.raises(GitError, match=r"HEAD\.lock") as refused:
        detach_head(worktree)
    assert "ends" in refused.value.next_step
    new = worktree.with_name("7-2")

    def add() -> None:
        add_worktree(
            repo, path=new, branch=BRANCH, base="main", task="7", epoch=2, reason=LABELS[1]
        )

    with pytest.raises(GitError, match=r"is checked out in .* holds .*lock there"):
        add()
    assert wake(process, tmp_path) == 0
    detach_head(worktree)
    add()
    assert git(new, "log", "-1", "--format=%s") == "late"
    assert git(new, "rev-parse", "HEAD~1") == base
