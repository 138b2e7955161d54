"""`lessor add` and what it says; bad input of every kind."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing

import pytest
from person import Person, git, names

from lessor import ClaimRequest, NewWorker
from lessor.ids import new_request_id, new_token
from lessor.model.task import AD_HOC

Finished = Callable[..., str]


def test_add_says_how_many_files_a_scope_has_and_warns_at_none(person: Person) -> None:
    said = person.ok(
        *("add", "Rounding", "--scope", "services", "--scope", "web/**/*.ts"),
        *("--scope", "srvices", "--read", "README"),
    ).out
    assert "services     3 files" in said
    assert "web/**/*.ts  1 file" in said
    assert "srvices      no file yet" in said
    assert said.splitlines()[-1] == "next  lessor run"


def test_add_says_whom_it_has_to_wait_for(person: Person) -> None:
    person.ok(
        "acquire", "--scope", "services/billing", "--agent", "codex-1", "--title", "retry on 503"
    )
    said = person.ok("add", "Drop the legacy client", "--scope", "services").out
    assert "waits   for #1 retry on 503 (services/billing, codex-1, " in said
    assert "starts  when that is done and somebody runs it" in said
    assert "by itself" not in said
    assert said.splitlines()[-1] == "next  lessor why 2"


def test_add_says_that_a_run_under_way_takes_it_up(person: Person) -> None:
    """Leases that a run renews have a worker with a heartbeat."""
    person.add("first", "--scope", "services")
    with closing(person.open()) as lessor:
        worker = lessor.registry.add_worker(NewWorker(agent="codex-1", heartbeat=True))
        wish = ClaimRequest(worker=worker.id, request_id=new_request_id(), secret=new_token())
        assert lessor.leases.claim(wish)
    said = person.ok("add", "second", "--scope", "services").out
    assert "starts  when that is done, in the run that still goes on then" in said


def test_add_says_on_whose_result_it_begins(person: Person, finished: Finished) -> None:
    finished("first", {"services/new.py": "one\n"}, scopes=("services",))
    said = " ".join(person.ok("add", "second", "--scope", "services").out.split())
    assert "begins on top of the result of #1, which hasn't landed" in said


def test_add_says_which_results_have_to_land_first(person: Person, finished: Finished) -> None:
    finished("first", {"services/new.py": "one\n"}, scopes=("services",))
    finished("second", {"web/new.ts": "one\n"}, scopes=("web",))
    said = person.ok("add", "third", "--scope", "services", "--scope", "web")
    assert "   waits   for the result of #" in said.out
    assert said.lines[-1] == "next  lessor why 3"


def test_add_says_which_task_has_to_come_first(person: Person) -> None:
    person.add("first")
    assert "   waits   for #1 (queued)" in person.ok("add", "second", "--after", "1").lines


def test_every_option_of_add_arrives(person: Person) -> None:
    first = person.add("first")
    record = person.add(
        "second",
        *(
            "--scope",
            "web",
            "--read",
            "services",
            "--strict",
            "--check",
            "pytest -q",
            "--agent",
            "codex",
        ),
        *("--after", "#1", "--need", "docker", "--priority", "7", "--in", "1h", "--key", "k1"),
        *("--queue", "night", "--branch", "fix/rounding", "--effects", "idempotent"),
        *("--idempotency-key", "pay-1", "--max-attempts", "5", "--limit-key", "slow"),
    )
    assert record["scope"]["paths"] == ["web"]
    assert record["reads"] == ["services"]
    expected = {
        "strict": True,
        "check": "pytest -q",
        "agent": "codex",
        "capabilities": ["docker"],
        "priority": 7,
        "key": "k1",
        "queue": "night",
        "branch": "fix/rounding",
        "effects": "idempotent",
        "idempotencyKey": "pay-1",
        "maxAttempts": 5,
        "limitKey": "slow",
        "needsLeft": 1,
    }
    assert {name: record[name] for name in expected} == expected
    assert record["runAt"] > record["createdAt"]
    assert person.ok("show", "2", "-o", "json").json["needs"] == [first["taskId"]]


def test_a_prompt_comes_from_a_file_or_from_standard_input(person: Person) -> None:
    (person.cwd / "ask.md").write_text("do it\n$(touch hacked)\n")
    assert person.add("a", "--prompt", "ask.md")["prompt"] == "do it\n$(touch hacked)\n"
    said = person.ok("add", "b", "--prompt", "-", "-o", "json", stdin="from a pipe; `touch hacked`")
    assert said.json["prompt"] == "from a pipe; `touch hacked`"
    assert not (person.cwd / "hacked").exists()


def test_the_same_key_is_the_same_task(person: Person) -> None:
    first = person.add("a", "--key", "nightly")
    again = person.add("b", "--key", "nightly")
    assert (again["number"], again["created"]) == (first["number"], False)
    assert "is there already" in person.ok("add", "c", "--key", "nightly").out


def test_named_scopes_come_from_the_manifest(person: Person) -> None:
    (person.cwd / "lessor.toml").write_text(
        '[scopes]\nmoney = ["services/billing", "services/tax"]\n'
    )
    git(person.cwd, "commit", "-qam", "scopes")
    assert person.add("a", "--scope", "@money")["scope"]["paths"] == [
        "services/billing",
        "services/tax",
    ]


def test_a_path_counts_from_where_one_is_if_it_is_there(person: Person) -> None:
    inside = person.cwd / "services"
    record = person.ok("add", "a", "--scope", "billing", "-o", "json", cwd=inside).json
    assert record["scope"]["paths"] == ["services/billing"]
    record = person.ok("add", "b", "--scope", "web/search", "-o", "json", cwd=inside).json
    assert record["scope"]["paths"] == ["web/search"]
    record = person.ok("add", "c", "--scope", "../web", "-o", "json", cwd=inside).json
    assert record["scope"]["paths"] == ["web"]
    whole = str(person.cwd / "services" / "tax")
    assert person.add("d", "--scope", whole)["scope"]["paths"] == ["services/tax"]


@pytest.mark.parametrize(
    ("args", "code"),
    [
        ([""], 2),
        (["   "], 2),
        (["two\nlines"], 2),
        (["bell\a"], 2),
        (["x" * 501], 2),
        (["a", "--scope", ".."], 2),
        (["a", "--scope", "/etc"], 2),
        (["a", "--scope", ".git/config"], 2),
        (["a", "--scope", "a\\b"], 2),
        (["a", "--scope", ""], 2),
        (["a", "--scope", "x" * 5000], 2),
        (["a", "--priority", "5000"], 2),
        (["a", "--priority", "high"], 2),
        (["a", "--max-attempts", "-1"], 2),
        (["a", "--in", "-5m"], 2),
        (["a", "--in", "soon"], 2),
        (["a", "--in", "99999999999w"], 2),
        (["a", "--at", "25:00"], 2),
        (["a", "--at", "2026-13-01"], 2),
        (["a", "--at", "14:30", "--in", "1h"], 2),
        (["a", "--after", "99"], 5),
        (["a", "--after", "nothing"], 2),
        (["a", "--after", "9999999999999999999999"], 2),
        (["a", "--after", "task_00000000000000000000000000"], 5),
        (["a", "--branch", "main"], 2),
        (["a", "--branch", "fix/a;b"], 2),
        (["a", "--effects", "harmless"], 2),
        (["a", "--key", " k"], 2),
        (["a", "--queue", ""], 2),
        (["a", "--max-attempts", "0"], 2),
        (["a", "--need", "x" * 300], 2),
        (["a", "--prompt", "no-such-file"], 2),
        (["a", "--prompt", "."], 2),
        (["a", "b"], 2),
        ([], 2),
        (["--no-such-option", "a"], 2),
    ],
    ids=lambda value: repr(value)[:60],
)
def test_bad_input_is_refused_with_its_exit_code(
    person: Person, args: list[str], code: int
) -> None:
    said = person.run("add", *args)
    assert said.code == code, said
    if code:
        assert said.err.startswith("lessor: ")
        assert person.ok("list", "-o", "json").json == []


def test_a_prompt_of_megabytes_and_thousands_of_scopes_are_taken_or_refused(person: Person) -> None:
    assert (
        len(
            person.ok("add", "big", "--prompt", "-", "-o", "json", stdin="x" * 1_000_000).json[
                "prompt"
            ]
        )
        == 1_000_000
    )
    assert person.run("add", "huge", "--prompt", "-", stdin="x" * 5_000_000).code == 2
    assert person.run("add", "not text", "--prompt", "-", stdin=b"\xff\xfe").code == 2


def test_a_title_with_markup_and_wide_letters_prints_literally(person: Person) -> None:
    title = "[red]fix[/red] 日本語のテスト {x} $(rm -rf ~)"
    person.add(title)
    for command in (["list"], ["ready"], ["show", "1"], ["why", "1"], []):
        assert title in person.ok(*command).out


def test_text_that_steers_a_terminal_is_shown_and_not_sent(person: Person) -> None:
    prompt = "look \x1b[2J\x1b]0;title\x07 and \u202eevil and \x9b31m"
    person.ok("add", "a", "--prompt", "-", stdin=prompt)
    said = person.ok("show", "1").out
    assert "␛[2J␛]0;title␇" in said
    assert "\\u202eevil" in said
    assert not set(said) & {"\x1b", "\x07", "\u202e", "\x9b"}
    assert person.ok("show", "1", "-o", "json").json["prompt"] == prompt
    assert not set(person.ok("show", "1", "-o", "json").out) & {"\x1b", "\x07", "\u202e", "\x9b"}


def test_tasks_without_a_repository_are_a_place_of_their_own(outside: Person) -> None:
    assert outside.run("add", "a").code == 5
    record = outside.ok("add", "a", "--repo", "none", "-o", "json").json
    assert record["repo"] is None
    assert names(outside.ok("ready", "--repo", "none", "-o", "json").json) == ["a"]
    assert outside.run("add", "b", "--repo", "none", "--scope", "x").code == 2
    assert outside.ok("claim", "--repo", "none", "-o", "json").json[0]["title"] == "a"


def test_ad_hoc_leases_are_not_in_the_queue(person: Person) -> None:
    person.ok("acquire", "--scope", "web")
    assert person.ok("ready", "-o", "json").json == []
    assert person.ok("list", "--queue", AD_HOC, "-o", "json").json[0]["state"] == "running"
