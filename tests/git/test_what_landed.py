"""What became of a branch is read from history; where history is missing, that is said."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from lessor.git.advertised import ask_remote
from lessor.git.landed import Asked, Landed, Landing, Pushed, what_landed
from lessor.git.repository import head_commit
from lessor.git.target import named_target

Git = Callable[..., str]

BRANCH = "claude/7-totals"
LABEL = f"owner=claude-1;branch={BRANCH};env=none;task=7;epoch=1"


class Shop:
    """The main worktree, one worktree on the branch, and a judge of what became of it."""

    def __init__(self, main: Path, worktree: Path, git: Git) -> None:
        self.main, self.worktree, self.git = main, worktree, git
        self.base = head_commit(main)

    def work(self, *lines: int, message: str = "work") -> str:
        """A commit on the branch for each line of src/app.py that it edits; the last one's id."""
        for line in lines:
            self._edit(self.worktree, line, "edited")
            self.git(self.worktree, "commit", "-q", "-am", message)
        return head_commit(self.worktree)

    def on_main(self, *line_and_word: tuple[int, str], message: str = "main", by: str = "") -> str:
        for line, word in line_and_word:
            self._edit(self.main, line, word)
        author = [f"--author={by}"] if by else []
        self.git(self.main, "commit", "-q", "--allow-empty", "-am", message, *author)
        return head_commit(self.main)

    def squash(self, message: str = "squash it") -> str:
        self.git(self.main, "merge", "-q", "--squash", BRANCH)
        self.git(self.main, "commit", "-q", "-m", message)
        return head_commit(self.main)

    def revert(self, commit: str, *options: str) -> str:
        self.git(self.main, "revert", "--no-edit", *options, commit)
        return head_commit(self.main)

    def judge(self, *, target: str = "main", **more: object) -> Landing:
        asked = Asked(**{"branch": BRANCH, "base": self.base, **more})  # type: ignore[arg-type]
        common_dir = self.main / ".git"
        (found,) = what_landed(common_dir, [asked], target=named_target(common_dir, target))
        return found

    def _edit(self, where: Path, line: int, word: str) -> None:
        path = where / "src" / "app.py"
        lines = path.read_text().splitlines()
        lines[line] = f"{lines[line]} {word}"
        path.write_text("".join(f"{line}\n" for line in lines))


@pytest.fixture
def shop(main: Path, worktree: Path, git: Git) -> Shop:
    (main / "src" / "app.py").write_text("".join(f"line {n}\n" for n in range(60)))
    git(main, "commit", "-q", "-am", "sixty lines")
    git(worktree, "merge", "-q", "--ff-only", "main")
    return Shop(main, worktree, git)


# The table of verdicts, row by row.


def test_a_branch_at_its_base_is_empty(shop: Shop):
    found = shop.judge()
    assert (found.verdict, found.tip, found.commits) == (Landed.EMPTY, shop.base, ())


@pytest.mark.parametrize("how", ["--ff-only", "--no-ff"])
def test_a_merged_branch_is_merged_by_the_commit_that_brought_it(shop: Shop, how: str):
    tip = shop.work(0, 20)
    shop.git(shop.main, "merge", "-q", how, "--no-edit", BRANCH)
    merge = head_commit(shop.main)
    shop.on_main((40, "later"))
    found = shop.judge()
    assert (found.verdict, found.holders) == (Landed.MERGED, (merge,))
    assert found.commits == (tip, shop.git(shop.main, "rev-parse", f"{tip}~1"))


def test_a_branch_that_was_only_moved_forward_did_not_land_anything(shop: Shop):
    shop.on_main((0, "theirs"))
    shop.git(shop.worktree, "merge", "-q", "--ff-only", "main")
    found = shop.judge()
    assert found.verdict is Landed.UNKNOWN
    assert "nothing tells its own commits" in found.why


def test_a_fast_forwarded_branch_is_known_by_what_was_seen_of_it_or_by_its_label(
    shop: Shop, tmp_path: Path
):
    tip = shop.work(0)
    shop.git(shop.main, "merge", "-q", "--ff-only", BRANCH)
    (shop.main / ".git" / "logs" / "refs" / "heads" / BRANCH).unlink()
    assert shop.judge().verdict is Landed.UNKNOWN
    assert shop.judge(seen=tip).verdict is Landed.MERGED
    shop.base = tip
    shop.work(20, message=f"more\n\nLessor-Label: {LABEL}")
    shop.git(shop.main, "merge", "-q", "--ff-only", BRANCH)
    (shop.main / ".git" / "logs" / "refs" / "heads" / BRANCH).unlink()
    assert shop.judge().verdict is Landed.MERGED


def test_a_squash_is_found_by_its_whole_change(shop: Shop):
    shop.work(0, 20)
    held = shop.squash()
    found = shop.judge()
    assert (found.verdict, found.holders) == (Landed.SQUASHED, (held,))
    assert (found.parts, found.of) == (2, 2)


def test_a_squash_stays_landed_when_the_target_edits_the_same_line_later(shop: Shop):
    shop.work(0, 20)
    held = shop.squash()
    shop.on_main((0, "and improved"))
    assert (shop.judge().verdict, shop.judge().holders) == (Landed.SQUASHED, (held,))


def test_a_rebase_and_a_cherry_pick_are_found_commit_by_commit(shop: Shop):
    shop.work(0, 20)
    shop.on_main((40, "theirs"))
    shop.git(shop.main, "cherry-pick", f"{shop.base}..{BRANCH}")
    held = shop.git(shop.main, "rev-list", "-n2", "main").split()
    found = shop.judge()
    assert (found.verdict, found.holders) == (Landed.REBASED, tuple(held))


def test_half_of_the_commits_are_a_part(shop: Shop):
    shop.work(0, 20)
    shop.git(shop.main, "cherry-pick", f"{BRANCH}~1")
    found = shop.judge()
    assert (found.verdict, found.parts, found.of) == (Landed.PARTLY, 1, 2)
    assert found.holders == (head_commit(shop.main),)


def test_work_that_went_on_after_a_squash_is_a_part(shop: Shop):
    shop.work(0, 20)
    held = shop.squash()
    shop.work(0)
    found = shop.judge()
    assert (found.verdict, found.parts, found.of) == (Landed.PARTLY, 2, 3)
    assert found.holders == (held,)


def test_a_merge_that_was_reverted_is_reverted(shop: Shop):
    shop.work(0, 20)
    shop.git(shop.main, "merge", "-q", "--no-ff", "--no-edit", BRANCH)
    merge = head_commit(shop.main)
    shop.revert(merge, "-m", "1")
    assert (shop.judge().verdict, shop.judge().holders) == (Landed.REVERTED, (merge,))


@pytest.mark.parametrize("told", [True, False])
def test_a_squash_that_was_reverted_is_reverted_whether_or_not_it_says_so(shop: Shop, told: bool):
    shop.work(0, 20)
    held = shop.squash()
    shop.revert(held)
    if not told:
        shop.git(shop.main, "commit", "-q", "--amend", "-m", "take it out")
    shop.on_main((40, "later"))
    assert (shop.judge().verdict, shop.judge().holders) == (Landed.REVERTED, (held,))


def test_a_revert_of_the_revert_brings_it_back(shop: Shop):
    shop.work(0, 20)
    held = shop.squash()
    shop.revert(shop.revert(held))
    assert shop.judge().verdict is Landed.SQUASHED


def test_one_of_two_landed_commits_that_was_reverted_leaves_a_part(shop: Shop):
    shop.work(0, 20)
    shop.git(shop.main, "merge", "-q", "--no-ff", "--no-edit", BRANCH)
    shop.revert(f"{BRANCH}~1")
    found = shop.judge()
    assert (found.verdict, found.parts, found.of) == (Landed.PARTLY, 1, 2)


def test_the_same_change_reverted_before_the_branch_began_did_not_land_it(shop: Shop):
    """Main had it and took it out; the branch brings it again."""
    earlier = shop.on_main((0, "edited"))
    shop.revert(earlier)
    shop.git(shop.worktree, "merge", "-q", "--ff-only", "main")
    shop.base = head_commit(shop.main)
    shop.work(0)
    assert shop.judge().verdict is Landed.OPEN


def test_commits_that_undo_each_other_are_no_net_change_and_not_landed(shop: Shop):
    shop.work(0)
    shop.git(shop.worktree, "revert", "--no-edit", "HEAD")
    found = shop.judge()
    assert (found.verdict, len(found.commits)) == (Landed.NO_CHANGE, 2)


def test_empty_commits_are_no_net_change(shop: Shop):
    shop.git(shop.worktree, "commit", "-q", "--allow-empty", "-m", "nothing")
    assert shop.judge().verdict is Landed.NO_CHANGE


def test_the_same_change_by_somebody_else_is_equivalent(shop: Shop):
    shop.work(0)
    held = shop.on_main((0, "edited"), message="the same", by="Else <else@example.org>")
    found = shop.judge()
    assert (found.verdict, found.holders) == (Landed.EQUIVALENT, (held,))


def test_the_same_change_under_another_label_is_equivalent(shop: Shop):
    shop.work(0)
    other = LABEL.replace(BRANCH, "codex/8-other").replace("task=7", "task=8")
    shop.on_main((0, "edited"), message=f"the same\n\nLessor-Label: {other}")
    assert shop.judge().verdict is Landed.EQUIVALENT


def test_a_change_inside_a_larger_one_is_equivalent(shop: Shop):
    shop.work(0, 20)
    shop.on_main((0, "edited"), (20, "edited"), (40, "and more"))
    found = shop.judge()
    assert (found.verdict, found.holders) == (Landed.EQUIVALENT, ())


def test_a_difference_in_white_space_is_a_difference(shop: Shop):
    shop.work(0)
    shop.on_main((0, " edited"))
    assert shop.judge().verdict is Landed.CONFLICTING


def test_an_open_branch_is_open_with_its_commits_newest_first(shop: Shop):
    first = shop.work(0)
    second = shop.work(20)
    shop.on_main((40, "theirs"))
    found = shop.judge()
    assert (found.verdict, found.commits) == (Landed.OPEN, (second, first))
    assert (found.parts, found.of, found.holders) == (0, 2, ())


def test_a_branch_that_cannot_be_merged_conflicts(shop: Shop):
    shop.work(0)
    shop.on_main((0, "another way"))
    assert shop.judge().verdict is Landed.CONFLICTING


# What else branches are.


def test_modes_links_and_binary_files_are_compared_too(shop: Shop):
    (shop.worktree / "run.sh").chmod(0o644)
    (shop.worktree / "link").unlink()
    (shop.worktree / "link").symlink_to("run.sh")
    (shop.worktree / "logo").write_bytes(b"\0\1")
    shop.git(shop.worktree, "add", "-A")
    shop.git(shop.worktree, "commit", "-q", "-m", "one")
    (shop.worktree / "logo").write_bytes(b"\0\2")
    shop.git(shop.worktree, "commit", "-q", "-am", "two")
    held = shop.squash()
    assert (shop.judge().verdict, shop.judge().holders) == (Landed.SQUASHED, (held,))
    shop.git(shop.main, "reset", "-q", "--hard", "HEAD~1")
    shop.git(shop.main, "merge", "-q", "--squash", BRANCH)
    (shop.main / "logo").write_bytes(b"\0\3")
    shop.git(shop.main, "commit", "-q", "-am", "not quite the same")
    assert shop.judge().verdict is Landed.CONFLICTING


def test_a_branch_with_the_target_merged_in_is_found_as_a_squash(shop: Shop):
    shop.work(0)
    shop.on_main((40, "theirs"))
    shop.git(shop.worktree, "merge", "-q", "--no-edit", "main")
    shop.work(20)
    assert shop.judge().verdict is Landed.OPEN
    held = shop.squash()
    assert (shop.judge().verdict, shop.judge().holders) == (Landed.SQUASHED, (held,))


def test_what_a_merge_hides_is_not_landed_by_copies_of_the_other_commits(shop: Shop):
    shop.work(0)
    shop.on_main((40, "theirs"))
    shop.git(shop.worktree, "merge", "-q", "--no-commit", "--no-ff", "main")
    (shop.worktree / "hidden").write_text("x")
    shop.git(shop.worktree, "add", "hidden")
    shop.git(shop.worktree, "commit", "-q", "-m", "merge")
    shop.git(shop.main, "cherry-pick", f"{BRANCH}~1")
    assert (shop.judge().verdict, shop.judge().parts) == (Landed.PARTLY, 1)


def test_a_branch_that_was_deleted_is_judged_by_the_commit_on_record(shop: Shop):
    tip = shop.work(0, 20)
    shop.squash()
    shop.git(shop.worktree, "checkout", "-q", "--detach")
    shop.git(shop.main, "branch", "-q", "-D", BRANCH)
    found = shop.judge(seen=tip)
    assert (found.verdict, found.exists, found.tip) == (Landed.SQUASHED, False, tip)
    assert shop.judge().verdict is Landed.MISSING


def test_a_base_that_the_target_left_behind_hides_no_work_and_adds_none(shop: Shop):
    """Main was force-pushed: its old commits aren't the branch's own."""
    shop.on_main((40, "will go"))
    shop.git(shop.worktree, "merge", "-q", "--ff-only", "main")
    shop.base = head_commit(shop.main)
    tip = shop.work(0)
    shop.git(shop.main, "reset", "-q", "--hard", "HEAD~1")
    shop.on_main((50, "instead"))
    found = shop.judge()
    assert (found.verdict, found.commits) == (Landed.OPEN, (tip,))
    shop.git(shop.main, "cherry-pick", BRANCH)
    assert shop.judge().verdict is Landed.REBASED


def test_a_branch_without_a_common_history_is_open(shop: Shop):
    shop.git(shop.worktree, "checkout", "-q", "--orphan", "other")
    shop.git(shop.worktree, "rm", "-rfq", ".")
    (shop.worktree / "new").write_text("x")
    shop.git(shop.worktree, "add", "new")
    shop.git(shop.worktree, "commit", "-q", "-m", "begin anew")
    shop.git(shop.worktree, "branch", "-q", "-M", BRANCH)
    assert shop.judge(base=None).verdict is Landed.OPEN
    assert shop.judge(base=shop.base).verdict is Landed.OPEN


def test_without_a_recorded_base_the_branchs_own_reflog_tells(shop: Shop, git: Git):
    assert shop.judge(base=None).verdict is Landed.UNKNOWN
    git(shop.main, "branch", "-q", "new")
    assert shop.judge(branch="new", base=None).verdict is Landed.EMPTY
    shop.work(0)
    assert shop.judge(base=None).verdict is Landed.OPEN
    git(shop.main, "merge", "-q", "--ff-only", BRANCH)
    assert shop.judge(base=None).verdict is Landed.MERGED


@pytest.mark.parametrize("base", ["0" * 39 + "1", "nowhere", "a\nb", "--all", "HEAD:README"])
def test_a_missing_base_is_unknown(shop: Shop, base: str):
    shop.work(0)
    found = shop.judge(base=base)
    assert found.verdict is Landed.UNKNOWN
    assert "the commit that it began from isn't here" in found.why


def test_a_missing_target_is_unknown(shop: Shop):
    shop.work(0)
    found = shop.judge(target="nowhere")
    assert found.verdict is Landed.UNKNOWN
    assert "nowhere" in found.why


def test_a_missing_object_on_the_way_is_unknown(shop: Shop):
    shop.work(0, 20)
    lost = shop.git(shop.main, "rev-parse", f"{BRANCH}~1")
    (shop.main / ".git" / "objects" / lost[:2] / lost[2:]).unlink()
    found = shop.judge()
    assert found.verdict is Landed.UNKNOWN
    assert "can't be read" in found.why


def test_what_a_shallow_clone_cannot_tell_is_unknown(shop: Shop, tmp_path: Path, git: Git):
    tip = shop.work(0)
    shop.on_main((40, "theirs"))
    git(shop.main, "merge", "-q", "--no-ff", "--no-edit", BRANCH)
    shop.on_main((50, "later"))
    git(tmp_path, "clone", "-q", "--depth=1", "--no-single-branch", f"file://{shop.main}", "cut")
    clone = tmp_path / "cut"
    git(clone, "branch", "-q", BRANCH, f"origin/{BRANCH}")

    def judge(base: str | None) -> Landing:
        target = named_target(clone / ".git", "main")
        (found,) = what_landed(clone / ".git", [Asked(branch=BRANCH, base=base)], target=target)
        return found

    assert judge(tip).verdict is Landed.EMPTY
    found = judge(None)
    assert (found.verdict, found.why) == (Landed.UNKNOWN, "the clone is shallow")
    git(clone, "fetch", "-q", "--unshallow")
    assert judge(None).verdict is Landed.MERGED


def test_a_repository_in_a_format_that_this_git_cannot_read_is_unknown(shop: Shop):
    """As git 2.39 meets the reftable format."""
    shop.work(0)
    target = named_target(shop.main / ".git", "main")
    shop.git(shop.main, "config", "core.repositoryformatversion", "1")
    shop.git(shop.main, "config", "extensions.nobodyKnows", "reftable")
    (found,) = what_landed(shop.main / ".git", [Asked(branch=BRANCH)], target=target)
    assert found.verdict is Landed.UNKNOWN
    assert "unknown repository extension" in found.why


def test_a_rebase_and_a_merge_in_progress_are_named(shop: Shop):
    shop.on_main((0, "theirs"))
    shop.work(0)
    shop.git(shop.worktree, "rebase", "-q", "main", check=False)
    assert shop.judge().in_progress == ("rebase",)
    shop.git(shop.worktree, "rebase", "--abort")
    shop.git(shop.worktree, "merge", "-q", "main", check=False)
    assert shop.judge().in_progress == ("merge",)
    shop.git(shop.worktree, "merge", "--abort")
    assert shop.judge().in_progress == ()


def test_only_the_remotes_own_word_says_what_was_pushed(shop: Shop, tmp_path: Path, git: Git):
    git(tmp_path, "clone", "-q", "--bare", str(shop.main), "origin.git")
    git(shop.main, "remote", "add", "origin", str(tmp_path / "origin.git"))
    common_dir = shop.main / ".git"

    def pushed() -> Pushed:
        (found,) = what_landed(
            common_dir,
            [Asked(branch=BRANCH, base=shop.base)],
            target=named_target(common_dir, "main"),
            remote=ask_remote(common_dir, "origin"),
        )
        return found.pushed

    assert pushed() is Pushed.YES
    shop.work(0)
    assert pushed() is Pushed.OTHER
    git(shop.worktree, "push", "-q", "origin", BRANCH)
    assert pushed() is Pushed.YES
    git(tmp_path / "origin.git", "update-ref", "-d", f"refs/heads/{BRANCH}")
    assert git(shop.main, "rev-parse", f"origin/{BRANCH}")
    assert pushed() is Pushed.NO
    assert shop.judge().pushed is Pushed.UNKNOWN
