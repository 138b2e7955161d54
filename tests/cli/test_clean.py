"""Cleaning: what is proven to lose nothing goes, the rest stays with a reason and a command."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from person import Person, git

EMPTY = "exit 1"
KEPT = "echo kept > kept.txt; git add .; git commit -qm kept; exit 1"
WORK = "echo work > work.txt; printf KEY=1 > .env; exit 1"
AMENDED = (
    "echo one > a.txt; git add .; git commit -qm one; echo two > a.txt; "
    "git commit -qa --amend -m two; exit 1"
)


@pytest.fixture
def left(person: Person):
    """Make a task whose agent did something and failed; its worktree."""
    digest = person.run("trust", "-o", "json").problem["facts"]["digest"]
    person.ok("trust", digest)
    (person.home / ".gitconfig").write_text("[user]\n\tname = A\n\temail = a@example.org\n")
    env = dict(person.env) | {"GIT_CONFIG_GLOBAL": str(person.home / ".gitconfig")}
    runner = Person(home=person.home, cwd=person.cwd, env=env)

    def make(title: str, agent: str) -> Path:
        person.add(title, "--max-attempts", "1")
        assert runner.run("run", "--", "/bin/sh", "-c", agent).code == 1
        return Path(workspaces(person)[-1]["path"])

    return make


def workspaces(person: Person) -> list[dict[str, Any]]:
    return person.ok("workspace", "list", "-o", "json").json


def fates(person: Person, *args: str, code: int = 0) -> dict[int, tuple[str, str]]:
    said = person.run("clean", *args, "-o", "json")
    assert said.code == code, said
    return {one["number"]: (one["verdict"], one["fate"]) for one in said.json if "number" in one}


def test_empty_merged_and_kept_go_and_what_holds_work_stays(
    person: Person, shop: Path, left
) -> None:
    trees = [
        left("Empty one", EMPTY),
        left("Kept one", KEPT),
        left("Holds work", WORK),
        left("Merged one", "echo m > m.txt; git add .; git commit -qm merged; exit 1"),
    ]
    branches = {one["number"]: one["branch"] for one in workspaces(person)}
    tips = {number: git(shop, "rev-parse", branch) for number, branch in branches.items()}
    git(shop, "merge", "-q", "--squash", branches[4])
    git(shop, "commit", "-q", "-m", "squashed", "--author", "A <a@example.org>")
    said = person.ok("clean")
    text = " ".join(said.out.split())
    assert "removed #1 Empty one nothing happened in it" in text
    assert "#2 Kept one all of it is on ai/2-kept-one" in text
    assert "#4 Merged one ai/4-merged-one is merged" in text
    assert "stays #3 Holds work holds work uncommitted: work.txt;" in text
    assert "not from setup: .env" in text
    assert "free again" in said.out
    assert said.lines[-1] == "next  lessor retry 3"
    assert "--discard" not in said.out
    assert [tree.exists() for tree in trees] == [False, False, True, False]
    assert (trees[2] / "work.txt").read_text() == "work\n"
    assert {n: git(shop, "rev-parse", branch) for n, branch in branches.items()} == tips
    assert [one["number"] for one in workspaces(person)] == [3]
    assert fates(person) == {3: ("holds-work", "stays")}


def test_a_dry_run_says_what_would_go_and_changes_nothing(person: Person, left) -> None:
    tree = left("Kept one", KEPT)
    before = workspaces(person)
    said = person.ok("clean", "--dry-run")
    assert said.lines[0].startswith("would go #1 Kept one")
    assert said.lines[-1] == "next  lessor clean"
    (record,) = person.ok("clean", "--dry-run", "-o", "json").json
    assert (record["fate"], record["removed"], record["verdict"]) == ("removed", False, "kept")
    assert record["bytes"] > 0
    assert tree.exists()
    assert workspaces(person) == before


def test_what_holds_work_is_gone_on_with_and_never_proposed_to_be_taken_away(
    person: Person, left
) -> None:
    trees = [left("First", WORK), left("Second", WORK)]
    said = person.ok("clean")
    assert "lessor retry 1" in said.out
    assert "lessor retry 2" in said.out
    assert said.lines[-1] == "next  lessor"
    person.ok("retry", "1")
    person.ok("cancel", "2")
    steps = {one["number"]: one["nextStep"] for one in person.ok("clean", "-o", "json").json}
    assert steps == {1: "lessor run", 2: "lessor workspace inspect 2"}
    looked = person.ok("workspace", "inspect", "2").lines
    assert looked[-2:] == [f"next  cd {trees[1]}", "      lessor clean --discard 2"]


def test_nothing_to_clean_is_said(person: Person) -> None:
    assert person.ok("clean").lines == ["no worktrees of Lessor's are here", "next  lessor"]
    assert person.ok("clean", "-o", "json").json == []


def test_what_only_the_reflog_knows_stays(person: Person, left) -> None:
    """A run salvages it, and pinned it holds nothing; here the reference is gone again."""
    left("Amended", AMENDED)
    person.ok("salvage", "drop", "1", "--yes")
    assert fates(person) == {1: ("holds-work", "stays")}


def test_discarding_saves_everything_first(person: Person, left) -> None:
    tree = left("Holds work", WORK)
    (tree / "later.txt").write_text("later")
    said = person.ok("clean", "--discard", "1", "--yes")
    assert said.lines[0].startswith("removed  #1 Holds work")
    assert said.lines[1] == "         3 files saved: lessor salvage list 1"
    assert not tree.exists()
    assert workspaces(person) == []
    newest = person.ok("salvage", "list", "1", "-o", "json").json[-1]["name"]
    back = Path(person.ok("salvage", "restore", newest, "-o", "json").json["directory"])
    texts = {name: (back / name).read_text() for name in ("work.txt", "later.txt", ".env")}
    assert texts == {"work.txt": "work\n", "later.txt": "later", ".env": "KEY=1"}


def test_discarding_without_a_terminal_names_what_would_go_and_removes_nothing(
    person: Person, left
) -> None:
    tree = left("Holds work", WORK)
    refused = person.run("clean", "--discard", "1")
    assert refused.code == 4
    assert "uncommitted: work.txt" in refused.err
    assert refused.err.splitlines()[-1] == "  next  If it is right: lessor clean --discard 1 --yes"
    assert (tree / "work.txt").exists()
    (record,) = person.ok("clean", "--discard", "1", "--dry-run", "-o", "json").json
    assert (record["removed"], record["verdict"]) == (False, "holds-work")
    assert (tree / "work.txt").exists()


@pytest.mark.parametrize(("answer", "code"), [("y", 0), ("n", 4)])
def test_discarding_asks_on_a_terminal(person: Person, left, answer: str, code: int) -> None:
    tree = left("Holds work", WORK)
    assert person.answers("clean", "--discard", "1", asked=b"work.txt", answer=answer) == code
    assert tree.exists() == (code != 0)


def test_a_worktree_that_somebody_stands_in_is_in_use_also_when_it_is_named(
    person: Person, left
) -> None:
    tree = left("Kept one", KEPT)
    standing = subprocess.Popen(["cat"], cwd=tree, stdin=subprocess.PIPE)
    try:
        assert fates(person) == {1: ("in-use", "stays")}
        said = person.ok("clean")
        assert f"in use by: cat (pid {standing.pid})" in said.out
        assert said.lines[-1] == "next  lessor workspace inspect 1"
        refused = person.run("clean", "--discard", "1", "--yes")
        assert refused.code == 6
        assert "is in use" in refused.err
        assert tree.exists()
    finally:
        standing.communicate()
    assert fates(person) == {1: ("kept", "removed")}


def test_a_worktree_under_a_live_lease_is_in_use(person: Person, left) -> None:
    tree = left("Kept one", KEPT)
    person.ok("retry", "1")
    grant = person.claim("--task", "1")
    assert fates(person) == {1: ("in-use", "stays")}
    assert "has the lease of #1" in person.ok("clean").out
    assert person.run("clean", "--discard", "1", "--yes").code == 6
    person.ok("release", grant["leaseId"])
    assert fates(person) == {1: ("kept", "removed")}
    assert not tree.exists()


def test_a_directory_that_was_deleted_by_hand_is_forgotten_with_its_branch_kept(
    person: Person, shop: Path, left
) -> None:
    tree = left("Kept one", KEPT)
    tip = git(shop, "rev-parse", "ai/1-kept-one")
    (tree / "staged.txt").write_text("staged")
    git(tree, "add", "staged.txt")
    shutil.rmtree(tree)
    assert fates(person) == {1: ("unknown", "forgotten")}
    assert git(shop, "rev-parse", "ai/1-kept-one") == tip
    assert str(tree) not in git(shop, "worktree", "list")
    saved = person.ok("salvage", "list", "1", "-o", "json").json[-1]
    assert git(shop, "show", f"{saved['ref']}:staged.txt") == "staged"
    assert workspaces(person) == []


def test_a_directory_without_its_entry_is_made_whole_before_it_is_judged(
    person: Person, shop: Path, left
) -> None:
    clean, dirty = left("Kept one", KEPT), left("Holds work", WORK)
    shutil.rmtree(shop / ".git" / "worktrees")
    assert fates(person, "--dry-run") == {1: ("unknown", "stays"), 2: ("unknown", "stays")}
    assert fates(person) == {1: ("kept", "removed"), 2: ("holds-work", "stays")}
    assert not clean.exists()
    assert (dirty / "work.txt").read_text() == "work\n"
    assert git(dirty, "branch", "--show-current") == "ai/2-holds-work"


def test_what_is_gone_altogether_is_only_closed(person: Person, shop: Path, left) -> None:
    tree = left("Kept one", KEPT)
    git(shop, "worktree", "remove", "-f", "-f", str(tree))
    assert fates(person) == {1: ("unknown", "gone")}
    assert fates(person) == {}


def test_worktrees_of_others_and_the_main_one_are_never_touched(
    person: Person, shop: Path, tmp_path: Path, left
) -> None:
    left("Kept one", KEPT)
    git(shop, "worktree", "add", "-q", "-b", "mine", str(tmp_path / "mine"))
    git(shop, "worktree", "add", "-q", "-b", "theirs", str(tmp_path / "theirs"))
    git(shop, "worktree", "lock", "--reason", "another tool", str(tmp_path / "theirs"))
    assert fates(person) == {1: ("kept", "removed")}
    assert (tmp_path / "mine" / "README").exists()
    assert (tmp_path / "theirs" / "README").exists()
    assert (shop / "README").exists()


def test_one_that_somebody_else_locked_meanwhile_stays(person: Person, shop: Path, left) -> None:
    tree = left("Kept one", KEPT)
    git(shop, "worktree", "unlock", str(tree))
    git(shop, "worktree", "lock", "--reason", "hands off", str(tree))
    assert fates(person) == {1: ("holds-work", "stays")}
    assert person.run("clean", "--discard", "1", "--yes").code == 1
    assert tree.exists()


def test_a_worktree_of_another_clone_is_left_to_that_clone(
    person: Person, shop: Path, tmp_path: Path, left
) -> None:
    tree, gone = left("Kept one", KEPT), left("Gone one", KEPT)
    git(tmp_path, "clone", "-q", str(shop), "second")
    git(
        tmp_path / "second", "remote", "set-url", "origin", git(shop, "remote", "get-url", "origin")
    )
    there = Person(home=person.home, cwd=tmp_path / "second")
    shutil.rmtree(gone)
    assert fates(there) == {1: ("unknown", "stays"), 2: ("unknown", "stays")}
    said = there.ok("clean")
    assert "it belongs to another clone," in " ".join(said.out.split())  # a long path is cut
    assert said.lines[-1] == f"next  lessor clean --repo {shop}"
    assert there.run("clean", "--discard", "1", "--yes").code == 6
    assert tree.exists()
    assert fates(there, "--repo", str(shop)) == {
        1: ("kept", "removed"),
        2: ("unknown", "forgotten"),
    }


def test_a_state_directory_behind_a_link_is_the_same_one(
    person: Person, shop: Path, tmp_path: Path, left
) -> None:
    (tmp_path / "linked").symlink_to(person.home)
    person = Person(home=tmp_path / "linked", cwd=shop)
    number = str(person.add("Kept one", "--max-attempts", "1")["number"])
    assert person.run("run", "--", "/bin/sh", "-c", EMPTY).code == 1
    assert person.ok("workspace", "inspect", number, "-o", "json").json[0]["verdict"] == "empty"
    assert fates(person) == {1: ("empty", "removed")}


def test_a_worktree_that_the_store_does_not_know_stays_and_is_said(
    person: Person, shop: Path, left
) -> None:
    """Another store's, or one that was lost."""
    tree = left("Kept one", KEPT)
    other = Person(home=person.home, cwd=shop, env={"LESSOR_STORE": f"sqlite://{person.home}/o.db"})
    said = other.ok("clean")
    assert "this store has no record of it" in " ".join(said.out.split())
    (record,) = other.ok("clean", "-o", "json").json
    assert (record["path"], record["fate"], record["removed"]) == (str(tree), "stays", False)
    assert record["nextStep"] == f"lessor workspace inspect {tree}"
    looked = other.ok("workspace", "inspect", tree)
    assert looked.lines[0] == f"{tree}  empty"
    assert looked.lines[-1] == f"next  git -C {shop} worktree remove -f -f {tree}"
    (tree / "late.txt").write_text("late")
    assert other.ok("workspace", "inspect", tree).lines[-1] == f"next  cd {tree}"
    assert other.run("workspace", "inspect", shop).code == 1
    assert tree.exists()


def test_salvages_that_the_store_missed_are_noted(person: Person, shop: Path, left) -> None:
    """The store was away when they were saved."""
    left("Holds work", WORK)
    before = person.ok("salvage", "list", "-o", "json").json
    lessor = person.open()
    (saved,) = lessor.salvages.of_task(before[0]["taskId"])
    lessor.salvages.drop(saved)
    lessor.close()
    assert person.ok("salvage", "list", "-o", "json").json == []
    assert "found    2 salvages that the store had missed" in person.ok("clean").lines
    after = person.ok("salvage", "list", "-o", "json").json
    assert {one["ref"] for one in after} == {before[0]["ref"], None}
    assert {one["archive"] for one in after} == {before[0]["archive"], None}
    assert "missed" not in person.ok("clean").out


def test_a_removal_that_git_could_not_finish_is_said(
    person: Person, shop: Path, tmp_path: Path, left
) -> None:
    """Git unregisters a worktree even where it couldn't delete all of its files."""
    tree = left("Kept one", KEPT)
    aside = tree.with_name(f".leaving-{tree.name}")
    real = shutil.which("git")
    wrapper = tmp_path / "bin" / "git"
    wrapper.parent.mkdir()
    fail = f"rm -r {shop}/.git/worktrees/{tree.name} {aside}/.git {aside}/web; exit 255"
    wrapper.write_text(
        f'#!/bin/sh\ncase "$*" in *"worktree remove"*) {fail};; esac\nexec {real} "$@"\n'
    )
    wrapper.chmod(0o755)
    path = f"{wrapper.parent}:{os.environ['PATH']}"
    broken = Person(home=person.home, cwd=shop, env={"PATH": path})
    assert fates(broken, code=1)[1][1] == "failed"
    said = person.ok("clean", "-o", "json").json
    assert [(one["fate"], one.get("why")) for one in said] == [
        ("gone", "it is gone"),
        ("stays", "git couldn't delete all of it; nothing in it was work"),
    ]
    assert said[1]["nextStep"] == f"ls -la {aside}"
    assert (aside / "README").exists()


def test_a_budget_reports_and_proposes_and_removes_nothing(
    person: Person, shop: Path, left
) -> None:
    trees = [left("First", WORK), left("Second", WORK), left("Kept one", KEPT)]
    (shop / "lessor.toml").write_text(
        'check = "true"\nworkspaces = { count = 1, bytes = "1 kB", age = "1d" }\n'
    )
    git(shop, "commit", "-qam", "a budget")
    listed = person.ok("workspace")
    assert "budget   3 worktrees, and 1 are to be kept" in listed.lines
    said = person.ok("clean")
    assert "budget   2 worktrees, and 1 are to be kept" in said.lines
    assert any(line.endswith("and 1.0 kB are to be kept") for line in said.lines)
    assert said.lines[-1] == "next  lessor clean --discard 1 --discard 2"
    assert [tree.exists() for tree in trees] == [True, True, False]
    assert [one["overBudget"] for one in person.ok("clean", "-o", "json").json] == [True, True]


def test_a_broken_manifest_stops_no_cleaning(person: Person, shop: Path, left) -> None:
    left("Kept one", KEPT)
    (shop / "lessor.toml").write_text("workspaces = 3\n")
    git(shop, "commit", "-qam", "broken")
    assert fates(person) == {1: ("kept", "removed")}


def test_the_list_and_a_look_at_one(person: Person, left) -> None:
    tree = left("Holds work", WORK)
    said = person.ok("workspace")
    assert said.lines[0].startswith("#1  Holds work  dirty  ai/1-holds-work")
    assert said.lines[-1] == "next  lessor workspace inspect 1     lessor clean --dry-run"
    assert person.ok("workspace", "list", "--size", "-o", "json").json[0]["bytes"] > 0
    looked = person.ok("workspace", "inspect", "1")
    assert looked.lines[0] == "#1 Holds work  holds work"
    assert f"  path     {tree}" in looked.lines
    assert "  holds    .env" in looked.lines
    assert looked.lines[-1] == "next  lessor retry 1     lessor clean --discard 1"
    (record,) = person.ok("workspace", "inspect", "1", "-o", "json").json
    assert record["dirty"] == [".env", "work.txt"]
    assert record["nextStep"] == "lessor retry 1"
    assert person.run("workspace", "inspect", "9").code == 5


def test_show_names_the_newest_of_many_salvages_and_where_the_others_are(
    person: Person, left
) -> None:
    left("Killed again and again", "echo half > half.txt; kill -9 $$")
    shown = person.ok("show", "1").lines
    assert sum("lessor salvage show" in line for line in shown) == 4
    (more,) = [line.strip() for line in shown if "before: lessor salvage list 1" in line]
    known = person.ok("salvage", "list", "1", "-o", "json").json
    assert more.startswith(f"and {len(known) - 4} before")


def test_a_person_adopts_what_a_run_left(person: Person, left) -> None:
    tree = left("Holds work", WORK)
    refused = person.run("workspace", "adopt", "1")
    assert refused.code == 5
    assert "Nobody holds #1 now." in refused.err
    assert "lessor claim --task 1" in refused.err
    person.ok("retry", "1")
    grant = person.claim("--task", "1")
    said = person.ok("workspace", "adopt", "1")
    assert said.lines[-1] == f"next  cd {tree}"
    (record,) = workspaces(person)
    assert (record["epoch"], record["state"], record["path"]) == (2, "present", str(tree))
    assert grant["label"] in git(tree, "worktree", "list", "--porcelain")
    assert (tree / "work.txt").read_text() == "work\n"
    assert person.ok("workspace", "adopt", "1", "-o", "json").json["epoch"] == 2
    assert fates(person) == {1: ("in-use", "stays")}


def test_adopting_heals_half_a_worktree(person: Person, shop: Path, left) -> None:
    tree = left("Holds work", WORK)
    (tree / ".git").unlink()
    person.ok("retry", "1")
    person.claim("--task", "1")
    person.ok("workspace", "adopt", "1")
    assert git(tree, "status", "--porcelain") == "?? work.txt"


def test_adopting_where_nothing_was_left_is_refused(person: Person, left) -> None:
    tree = left("Kept one", KEPT)
    assert fates(person) == {1: ("kept", "removed")}
    person.ok("retry", "1")
    person.claim("--task", "1")
    assert person.run("workspace", "adopt", "1").code == 5
    assert not tree.exists()


@pytest.fixture
def result(person: Person, shop: Path):
    """Make a result by a run, which takes its worktree away again."""
    git(shop, "rm", "-q", "lessor.toml")
    git(shop, "commit", "-q", "-m", "no check")

    def make(path: str) -> str:
        number = person.add(path, "--scope", path)["number"]
        agent = f"echo $LESSOR_NUMBER >> {path}; echo done"
        person.ok("run", "--", "/bin/sh", "-c", agent)
        return str(number)

    return make


def test_a_result_that_landed_by_hand_is_recorded(person: Person, shop: Path, result) -> None:
    number = result("README")
    branch = person.ok("show", number, "-o", "json").json["branch"]
    git(shop, "merge", "-q", branch)
    person.ok("clean", "--dry-run")
    assert person.ok("show", number, "-o", "json").json["stage"] != "landed"
    said = person.ok("clean").out
    assert "landed   #1 README: merged, in " in said
    assert person.ok("show", number, "-o", "json").json["stage"] == "landed"
    assert "landed   #1" not in person.ok("clean").out


def test_discarding_gives_the_result_up(person: Person, shop: Path, result) -> None:
    number = result("README")
    branch = person.ok("show", number, "-o", "json").json["branch"]
    person.add("next", "--scope", "README")
    assert "on top of the result of #1" in person.ok("why", "2").out
    refused = person.run("clean", "--discard", number)
    assert refused.code == 4
    assert f"its result is given up; its branch stays: {branch}" in refused.err
    said = person.ok("clean", "--discard", number, "--yes")
    assert f"given up the result of #1; its branch stays: {branch}" in said.out
    assert "on top of" not in person.ok("why", "2").out
    assert git(shop, "rev-parse", branch)
    assert person.run("land", number).code == 5


def test_a_result_without_a_worktree_can_be_given_up(person: Person, result) -> None:
    number = result("README")
    assert workspaces(person) == []
    said = person.ok("clean", "--discard", number, "--yes", "-o", "json").json
    assert [(one["number"], one["fate"]) for one in said] == [(1, "given up")]
    assert person.run("clean", "--discard", number, "--yes").code == 5


def test_what_landed_isnt_given_up_by_a_discard(person: Person, shop: Path, result) -> None:
    number = result("README")
    git(shop, "merge", "-q", person.ok("show", number, "-o", "json").json["branch"])
    assert person.run("clean", "--discard", number, "--yes").code == 5
    assert person.ok("show", number, "-o", "json").json["stage"] == "landed"
