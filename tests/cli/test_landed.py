"""`lessor landed` says what became of branches: tasks' and people's, in words and as records."""

from __future__ import annotations

import os
from contextlib import closing
from pathlib import Path

import pytest
from person import Person, git


@pytest.fixture
def origin(shop: Path, tmp_path: Path) -> Path:
    """A remote that answers."""
    git(tmp_path, "clone", "-q", "--bare", str(shop), "origin.git")
    git(shop, "remote", "set-url", "origin", str(tmp_path / "origin.git"))
    return tmp_path / "origin.git"


def squash(shop: Path, branch: str) -> str:
    git(shop, "merge", "-q", "--squash", branch)
    # In the second of the branch's own commit it would be a copy of it.
    git(shop, "commit", "-q", "-m", "squash it (#7)", "--date=2026-01-02T03:04:05Z")
    return git(shop, "rev-parse", "HEAD")


def branch_of(person: Person, number: str) -> str:
    return person.ok("show", number, "-o", "json").json["branch"]


def test_each_branch_is_told_with_its_task_and_the_commit_that_has_it(
    person: Person, shop: Path, origin: Path, finished
) -> None:
    one = finished("Round totals", {"services/billing/total.py": "2\n"})
    two = finished("Search box", {"web/search/box.ts": "4\n"})
    held = squash(shop, branch_of(person, one))
    git(shop, "branch", "-q", "person/idle")
    git(shop, "push", "-q", "origin", branch_of(person, two))
    said = person.ok("landed").lines
    assert len(said) == 4
    assert f"#1  {branch_of(person, one)}" in said[0]
    assert f"squashed into main as {held[:7]}" in said[0]
    assert f"#2  {branch_of(person, two)}" in said[1]
    assert "open with 1 commit, pushed" in said[1]
    assert "person/idle" in said[2]
    assert "empty" in said[2]
    assert said[3] == "note  recorded as landed: #1"


def test_records_have_the_verdict_its_reason_and_its_commits(
    person: Person, shop: Path, origin: Path, finished
) -> None:
    number = finished("Round totals", {"services/billing/total.py": "2\n"})
    held = squash(shop, branch_of(person, number))
    (record,) = person.ok("landed", number, "-o", "json").json
    assert record["verdict"] == "squashed"
    assert record["heldBy"] == [held]
    assert record["changes"] == {"landed": 1, "of": 1}
    assert (record["target"], record["targetCommit"]) == ("main", held)
    assert (record["number"], record["pushed"]) == (1, "no")
    assert record["taskId"].startswith("task_")
    assert record["ownCommits"] == [record["commit"]]
    assert record["why"]


def test_a_branch_is_named_by_its_task_or_by_itself(person: Person, shop: Path, finished) -> None:
    number = finished("Round totals", {"services/billing/total.py": "2\n"})
    branch = branch_of(person, number)
    by_task = person.ok("landed", f"#{number}", "--offline", "-o", "json").json
    by_name = person.ok("landed", branch, "--offline", "-o", "json").json
    assert by_task == by_name
    mixed = person.ok("landed", number, "no/such", "--offline", "-o", "json").json
    assert [record["verdict"] for record in mixed] == ["open", "missing"]


def test_a_branch_that_was_deleted_after_it_had_landed_is_still_told(
    person: Person, shop: Path, finished
) -> None:
    number = finished("Round totals", {"services/billing/total.py": "2\n"})
    branch = branch_of(person, number)
    squash(shop, branch)
    git(shop, "branch", "-q", "-D", branch)
    line, _ = person.ok("landed", "--offline").lines
    assert "squashed into main" in line
    assert "branch deleted" in line


def test_what_landed_and_has_no_branch_any_more_is_told_by_its_number_alone(
    person: Person, shop: Path, finished
) -> None:
    """Else the list, and what is read for it, would grow with every task there ever was."""
    old = finished("Round totals", {"services/billing/total.py": "2\n"})
    squash(shop, branch_of(person, old))
    there = finished("Search box", {"web/search/box.ts": "4\n"})
    squash(shop, branch_of(person, there))
    person.ok("landed", "--offline")
    git(shop, "branch", "-q", "-D", branch_of(person, old))
    told = person.ok("landed", "--offline", "-o", "json").json
    assert [(one["number"], one["verdict"]) for one in told] == [(int(there), "squashed")]
    (record,) = person.ok("landed", old, "--offline", "-o", "json").json
    assert (record["verdict"], record["branchExists"]) == ("squashed", False)


def test_branches_of_any_name_are_judged(person: Person, shop: Path) -> None:
    for name in ("caf\u00e9", "x" * 220, os.fsdecode(b"feat/\xff")):
        git(shop, "branch", name)
    told = person.ok("landed", "--offline", "-o", "json").json
    assert {one["verdict"] for one in told} == {"empty"}
    assert len(told) == 3


def test_branches_are_listed_by_their_tasks_numbers_and_others_last(
    person: Person, shop: Path
) -> None:
    for branch in ("chore/z", "chore/a"):
        person.add("one more", "--branch", branch)
    for branch in ("aside", "chore/a", "chore/z"):
        git(shop, "branch", branch)
    told = person.ok("landed", "--offline", "-o", "json").json
    assert [one["branch"] for one in told] == ["chore/z", "chore/a", "aside"]


def test_another_target_can_be_named(person: Person, shop: Path, finished) -> None:
    number = finished("Round totals", {"services/billing/total.py": "2\n"})
    git(shop, "branch", "-q", "release/2", "main")
    squash(shop, branch_of(person, number))
    (record,) = person.ok("landed", number, "--onto", "release/2", "--offline", "-o", "json").json
    assert (record["verdict"], record["target"]) == ("open", "release/2")
    (record,) = person.ok("landed", number, "--onto", "nowhere", "--offline", "-o", "json").json
    assert record["verdict"] == "unknown"
    assert "nowhere" in record["why"]


def test_a_remote_that_doesnt_answer_leaves_what_is_pushed_unknown(
    person: Person, shop: Path, origin: Path, finished
) -> None:
    number = finished("Round totals", {"services/billing/total.py": "2\n"})
    origin.rename(origin.with_name("away"))
    line, *notes = person.ok("landed", number).lines
    assert "open with 1 commit" in line
    assert "pushed" not in line
    assert "origin didn't say what is pushed" in " ".join(notes)
    assert all(len(note) <= 80 for note in notes)
    assert person.ok("landed", number, "-o", "json").json[0]["pushed"] == "unknown"


def test_a_renamed_default_branch_is_said_with_what_to_do(
    person: Person, shop: Path, origin: Path, finished
) -> None:
    number = finished("Round totals", {"services/billing/total.py": "2\n"})
    git(origin, "branch", "-m", "main", "trunk")
    line = person.ok("landed", number).lines[0]
    assert "unknown" in line
    record = person.ok("landed", number, "-o", "json").json[0]
    assert "git fetch origin" in record["why"]
    git(shop, "fetch", "-q", "origin")
    assert "open" in person.ok("landed", number).lines[0]


def test_a_task_that_has_no_branch_yet_has_none(person: Person) -> None:
    person.add("later")
    (record,) = person.ok("landed", "1", "--offline", "-o", "json").json
    assert record["verdict"] == "missing"


def test_outside_of_a_repository_that_is_said(outside: Person) -> None:
    assert outside.run("landed").code == 5


def unlanded(person: Person) -> list[int]:
    with closing(person.open()) as lessor:
        results = lessor.landings.results()
        return sorted(lessor.tasks.task(one.task).number for one in results)


def test_what_is_found_to_have_landed_is_recorded(person: Person, shop: Path, finished) -> None:
    one = finished("Round totals", {"services/billing/total.py": "2\n"})
    finished("Search box", {"web/search/box.ts": "4\n"})
    held = squash(shop, branch_of(person, one))
    assert unlanded(person) == [1, 2]
    records = person.ok("landed", "--offline", "-o", "json").json
    assert {r["number"]: r["recorded"] for r in records} == {1: "landed", 2: None}
    assert unlanded(person) == [2]
    shown = person.ok("show", one, "-o", "json").json
    assert shown["stage"] == "landed"
    with closing(person.open()) as lessor:
        (event,) = [e for e in lessor.tasks.history(shown["taskId"]) if e.kind == "landed"]
        assert (event.facts["commit"], event.facts["target"]) == (held, "main")
    assert "recorded" not in person.ok("landed", "--offline").out


def test_what_nobody_can_tell_lifts_nothing(person: Person, shop: Path, finished) -> None:
    """Nor does what another target has."""
    number = finished("Round totals", {"services/billing/total.py": "2\n"})
    git(shop, "branch", "-q", "release/2", "main")
    git(shop, "checkout", "-q", "release/2")
    squash(shop, branch_of(person, number))
    git(shop, "checkout", "-q", "main")
    (record,) = person.ok("landed", number, "--onto", "release/2", "--offline", "-o", "json").json
    assert (record["verdict"], record["recorded"]) == ("squashed", None)
    assert unlanded(person) == [1]
    (shop / ".git/shallow").write_text(git(shop, "rev-parse", branch_of(person, number)) + "\n")
    (record,) = person.ok("landed", number, "--offline", "-o", "json").json
    assert (record["verdict"], record["recorded"]) == ("unknown", None)
    person.ok("clean")
    assert unlanded(person) == [1]


@pytest.fixture
def run_once(person: Person, shop: Path):
    """A result that a run made in this clone, in a worktree that it took away again; its branch."""
    git(shop, "rm", "-q", "lessor.toml")
    git(shop, "commit", "-q", "-m", "no check")

    def make(title: str, *scopes: str) -> str:
        person.add(title, *(word for path in scopes for word in ("--scope", path)))
        person.ok("run", "--", "/bin/sh", "-c", "echo $LESSOR_NUMBER >> README; echo done")
        return branch_of(person, "1")

    return make


@pytest.mark.parametrize("command", ["landed", "clean"])
def test_a_result_whose_branch_was_deleted_is_given_up(
    person: Person, shop: Path, run_once, command: str
) -> None:
    branch = run_once("one", "README")
    person.ok(command, *(["--offline"] if command == "landed" else []))
    assert unlanded(person) == [1]
    tip = git(shop, "rev-parse", branch)
    git(shop, "branch", "-q", "-D", branch)
    git(shop, "update-ref", "refs/keep/it", tip)
    person.ok(command)
    assert unlanded(person) == [1]  # something has it still
    git(shop, "update-ref", "-d", "refs/keep/it")
    said = person.ok(command).out
    assert "given up" in said
    assert "#1" in said
    assert unlanded(person) == []


def test_a_branch_that_was_never_in_this_clone_isnt_gone(
    person: Person, shop: Path, tmp_path: Path, run_once
) -> None:
    run_once("one", "README")
    git(tmp_path, "clone", "-q", "--single-branch", "-b", "main", str(shop), "other")
    git(tmp_path / "other", "remote", "set-url", "origin", git(shop, "remote", "get-url", "origin"))
    person.ok("landed", "--offline", cwd=tmp_path / "other")
    person.ok("clean", cwd=tmp_path / "other")
    assert unlanded(person) == [1]


def test_what_was_pushed_is_gone_only_by_the_remotes_own_word(
    person: Person, shop: Path, origin: Path, run_once
) -> None:
    branch = run_once("one", "README")
    tip = git(shop, "rev-parse", branch)
    git(shop, "push", "-q", str(origin), branch)
    git(shop, "branch", "-q", "-D", branch)
    person.ok("landed")  # the remote has it
    assert unlanded(person) == [1]
    git(origin, "update-ref", "-d", f"refs/heads/{branch}", tip)
    person.ok("landed")
    assert unlanded(person) == []


def test_what_the_remote_may_have_in_commits_that_are_not_here_is_not_gone(
    person: Person, shop: Path, origin: Path, tmp_path: Path, run_once
) -> None:
    """Merged there and deleted at both ends, and nobody has fetched yet."""
    branch = run_once("one", "README")
    git(shop, "push", "-q", "origin", branch)
    git(tmp_path, "clone", "-q", str(origin), "theirs")
    git(tmp_path / "theirs", "merge", "-q", "--no-ff", "-m", "merge it", f"origin/{branch}")
    git(tmp_path / "theirs", "push", "-q", "origin", "HEAD")
    git(shop, "push", "-q", "origin", "--delete", branch)
    git(shop, "branch", "-q", "-D", branch)
    person.ok("landed")
    assert unlanded(person) == [1]
    git(shop, "pull", "-q", "--ff-only", "origin", "main")
    assert "landed" in person.ok("landed").out
    assert unlanded(person) == []
    assert person.ok("show", "1", "-o", "json").json["stage"] == "landed"
