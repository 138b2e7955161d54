"""`--request-id`: a command that is sent again does nothing twice and gets the first answer."""

from __future__ import annotations

import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from person import Person

from lessor.cli.main import root
from lessor.runner.lease_file import read_holder

AGAIN = ("--request-id", "mine-1")
REPEATABLE = [
    *("add", "answer", "retry", "cancel", "block", "unblock", "force-release"),
    *("claim", "acquire", "hold", "widen"),
]
PAGE = (Path(__file__).parents[2] / "docs" / "command-line.md").read_text()


@pytest.mark.parametrize("name", REPEATABLE)
def test_mutations_take_a_request_id(name: str) -> None:
    with root.make_context("lessor", [name], resilient_parsing=True) as ctx:
        found = root.get_command(ctx, name)
    assert found is not None
    assert "--request-id" in {option for parameter in found.params for option in parameter.opts}
    paragraph = next(part for part in PAGE.split("\n\n") if "`--request-id ID`" in part)
    assert f"`{name}`" in paragraph


def test_a_task_that_is_added_again_with_its_request_id_is_the_same(person: Person) -> None:
    first, second = (person.add("a", "--scope", "web", *AGAIN) for _ in range(2))
    assert first["taskId"] == second["taskId"]
    assert first["created"] is second["created"] is True
    assert len(person.ok("list", "-o", "json").json) == 1
    other = person.run("add", "b", *AGAIN, "-o", "json")
    assert (other.code, other.problem["code"]) == (6, "request_reused")


def test_a_claim_that_is_sent_again_gets_the_same_lease_and_its_token(person: Person) -> None:
    person.add("a")
    person.add("b")
    first = person.claim(*AGAIN)
    (person.state / "leases" / f"{first['leaseId']}.json").unlink()
    second = person.claim(*AGAIN)
    assert first["leaseId"] == second["leaseId"]
    person.ok("renew", first["leaseId"])
    person.claim(*AGAIN)
    person.ok("complete", first["leaseId"])
    late = person.run("claim", *AGAIN, "-o", "json")
    assert (late.code, late.problem["code"]) == (7, "grant_over")
    key = person.state / "request-key"
    assert stat.S_IMODE(key.stat().st_mode) == 0o600


@pytest.mark.parametrize("name", ["acquire", "hold"])
def test_paths_that_are_acquired_again_with_their_request_id_are_held_once(
    person: Person, name: str
) -> None:
    paths = ("--scope", "web") if name == "acquire" else ("web",)
    first, second = (person.ok(name, *paths, *AGAIN, "-o", "json").json for _ in range(2))
    assert first["leaseId"] == second["leaseId"]
    assert person.run(name, *paths).code == 6
    person.ok("drop", "web")


def test_decisions_that_are_sent_again_are_made_once(person: Person) -> None:
    person.add("a")
    for _ in range(2):
        person.ok("block", "1", "--request-id", "block-1")
    person.ok("unblock", "1", "--request-id", "unblock-1")
    person.ok("unblock", "1", "--request-id", "unblock-1")
    for _ in range(2):
        person.ok("cancel", "1", "--request-id", "cancel-1")
    again = [
        person.ok("retry", "1", "more", "--request-id", "retry-1", "-o", "json").json["number"]
        for _ in range(2)
    ]
    assert again == [2, 2]
    person.claim()
    forced = ("force-release", "2", "--reason", "stuck", "--checked", "asked")
    for _ in range(2):
        person.ok(*forced, "--request-id", "force-1")
    kinds = [e["kind"] for e in person.ok("history", "1", "-o", "json").json]
    assert kinds == ["submitted", "blocked", "unblocked", "cancelled"]


def test_an_answer_that_is_sent_again_is_told_once(person: Person) -> None:
    person.add("a")
    grant = person.claim()
    lessor = person.open()
    holder = read_holder(person.state / "leases" / f"{grant['leaseId']}.json")
    lessor.leases.ask(holder, "Which rate?")
    lessor.close()
    for _ in range(2):
        person.ok("answer", "1", "19", *AGAIN)
    assert person.ok("show", "1", "-o", "json").json["prompt"].count("19") == 1


def test_processes_that_make_the_key_at_once_get_one(person: Person) -> None:
    assert person.run("claim").code == 3  # so that they are one worker
    for n in range(4):
        person.add(f"task {n}")
    with ThreadPoolExecutor(4) as pool:
        claims = list(pool.map(lambda _: person.claim(*AGAIN), range(4)))
    assert len({claim["leaseId"] for claim in claims}) == 1
