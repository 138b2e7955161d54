"""What a person decides: answer, retry, cancel, block, hold, drop, release by force, queues."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

from person import Person, names

from lessor.model.lease import Holder


def asked(person: Person, question: str = "v2 or v3?") -> str:
    """The number of a task whose agent asked something."""
    grant = _claimed(person, "Quickstart")
    path = person.state / "leases" / f"{grant['leaseId']}.json"
    lessor = person.open()
    lessor.leases.ask(Holder(**json.loads(path.read_text())), question)
    lessor.close()
    return str(grant["number"])


def test_answer_puts_the_task_back_with_the_answer_in_its_prompt(person: Person) -> None:
    number = asked(person)
    page = person.ok().out
    assert f'needs you  #{number} Quickstart  asks: "v2 or v3?"' in page
    assert page.splitlines()[-1] == f'next  lessor answer {number} "…"'
    said = person.ok("answer", number, "v3, and link the guide")
    assert "goes on with your answer" in said.out
    task = person.ok("show", number, "-o", "json").json
    assert task["state"] == "queued"
    assert task["prompt"].endswith("v3, and link the guide")


def test_show_tells_an_answer_from_what_was_asked(person: Person) -> None:
    number = asked(person)
    person.ok("answer", number, "v3, and link the guide")
    lines = person.ok("show", number).lines
    assert '  question "v2 or v3?"' in lines
    assert "  answered dana: v3, and link the guide" in lines
    assert not [line for line in lines if line.startswith(("  asked ", "  said "))]


def test_show_keeps_what_was_asked_at_first_apart_from_later_words(person: Person) -> None:
    person.ok("add", "a", "--max-attempts", "1", "--prompt", "-", stdin="Round half even.")
    person.ok("fail", person.claim()["leaseId"], "--error", "boom")
    person.ok("retry", "1", "mind the rounding")
    lines = person.ok("show", "1").lines
    assert "  asked    Round half even." in lines
    assert "  added    dana: mind the rounding" in lines


def test_answer_reads_standard_input(person: Person) -> None:
    number = asked(person)
    person.ok("answer", number, "-", stdin="from a file\n")
    assert person.ok("show", number, "-o", "json").json["prompt"].endswith("from a file")


def test_answer_of_a_task_that_asks_nothing_is_refused(person: Person) -> None:
    person.add("a")
    refused = person.run("answer", "1", "yes")
    assert refused.code == 6
    assert "#1 can't be answered: it is queued." in refused.err
    assert refused.err.splitlines()[-1] == "  next  See: lessor why 1"


def test_a_finished_task_is_refused_in_the_words_of_the_other_pages(
    person: Person, finished: Callable[..., str]
) -> None:
    number = finished("a", {"web/new.ts": "five\n"})
    for command in (["answer", number, "yes"], ["cancel", number]):
        refused = person.run(*command)
        assert (refused.code, " it has succeeded." in refused.err) == (6, True)


def test_an_empty_answer_is_refused_and_the_task_still_asks(person: Person) -> None:
    number = asked(person)
    for words in ("", "  "):
        refused = person.run("answer", number, words)
        assert (refused.code, "The answer is empty." in refused.err) == (2, True)
    assert person.ok("show", number, "-o", "json").json["state"] == "needs_person"


def test_retry_takes_a_task_that_failed_too_often_back_with_more_words(person: Person) -> None:
    person.add("a", "--max-attempts", "1")
    grant = person.claim()
    person.ok("fail", grant["leaseId"], "--error", "boom")
    assert "quarantined: boom" in person.ok().out
    person.ok("retry", "1", "mind the rounding")
    task = person.ok("show", "1", "-o", "json").json
    assert (task["state"], task["charged"]) == ("queued", 0)
    assert task["prompt"].endswith("mind the rounding")


def test_retry_of_a_finished_task_is_a_new_one_with_the_same_scope(person: Person) -> None:
    person.add("a", "--scope", "web", "--check", "true")
    person.ok("complete", person.claim()["leaseId"])
    again = person.ok("retry", "1", "also cap it", "-o", "json").json
    assert (again["number"], again["scope"]["paths"], again["check"]) == (2, ["web"], "true")
    assert again["prompt"] == "also cap it"
    assert person.ok("show", "1", "-o", "json").json["state"] == "succeeded"


def test_cancel_ends_several_and_a_running_one(person: Person) -> None:
    for title in ("a", "b", "c"):
        person.add(title)
    grant = person.claim()
    person.ok("cancel", "1", "#2", "--reason", "not needed")
    states = {t["number"]: t["state"] for t in person.ok("list", "-o", "json").json}
    assert states == {1: "cancelled", 2: "cancelled", 3: "queued"}
    assert person.run("renew", grant["leaseId"]).code == 7
    refused = person.run("cancel", "3", "1")
    assert (refused.code, "#1 can't be cancelled: it is cancelled." in refused.err) == (6, True)
    assert person.ok("show", "3", "-o", "json").json["state"] == "queued"


def test_block_keeps_a_task_from_being_claimed_until_it_is_unblocked(person: Person) -> None:
    person.add("a")
    person.ok("block", "1", "--reason", "waiting for the key")
    assert person.run("claim").code == 3
    assert "is blocked by dana: waiting for the key" in person.ok("why", "1").out
    assert "is blocked by dana: waiting for the key" in person.ok("show", "1").out
    person.ok("unblock", "1")
    assert person.run("claim").code == 0


def test_force_release_needs_a_reason_and_what_was_checked(person: Person) -> None:
    grant = _claimed(person, "a")
    assert person.run("force-release", "1", "--reason", "x").code == 2
    assert person.run("force-release", "1", "--reason", " ", "--checked", " ").code == 2
    person.ok("force-release", "1", "--reason", "laptop lost", "--checked", "pinged it")
    last = person.ok("history", "1", "-o", "json").json[-1]
    assert last["kind"] == "forced"
    assert last["facts"]["reason"] == "laptop lost"
    assert last["facts"]["checked"] == "pinged it"
    assert last["facts"]["actor"] == "dana"
    refused = person.run("force-release", "1", "--reason", "x", "--checked", "y")
    assert refused.code == 6
    assert grant["epoch"] == 1


def test_hold_keeps_paths_until_they_are_dropped(person: Person) -> None:
    said = person.ok("hold", "services/billing", "web", "--for", "2h").out
    assert said.startswith("services/billing, web  is yours for 2 h, until ")
    page = person.ok().out
    assert "held       services/billing, web  dana" in page
    assert "lessor drop 1" in page
    refused = person.run("acquire", "--scope", "web/search", "--agent", "codex-1")
    assert (refused.code, "dana" in refused.err) == (6, True)
    holder = person.ok("who", "services/billing/client.py").lines[0]
    assert holder == "  holder    #1 held by dana  epoch 1"
    said = person.ok("add", "Search", "--scope", "web").out
    assert re.search(r"for #1 held by dana \(web, \d+ s in\)", said)
    dropped = person.ok("drop", "web").out
    assert dropped == "services/billing, web is free again\n"
    assert person.ok("who", "web").out == "nobody holds web\n"
    assert person.run("drop", "web").code == 5


def test_a_hold_is_never_work_for_an_agent(person: Person) -> None:
    person.ok("hold", "web")
    person.ok("drop", "1")
    assert person.run("claim").code == 3
    assert person.run("claim", "--queue", "ad-hoc").code == 3


def test_dropped_paths_are_no_work_to_ask_for_again(person: Person) -> None:
    person.ok("hold", "services/billing", "web")
    assert person.ok("show", "1").lines[-1] == "next  lessor drop 1"
    person.ok("drop", "1")
    assert person.ok("show", "1").lines[-1] == "next  lessor history 1"
    refused = person.run("retry", "1")
    assert (refused.code, "#1 stood for its paths alone" in refused.err) == (2, True)
    again = refused.err.splitlines()[-1].partition("lessor hold ")[2]
    assert person.ok("hold", *again.split()).code == 0


def test_drop_of_what_others_hold_is_refused(person: Person) -> None:
    record = person.ok("acquire", "--scope", "web", "--agent", "codex-1", "-o", "json").json
    (person.state / "leases" / f"{record['leaseId']}.json").unlink()
    refused = person.run("drop", "web")
    assert (refused.code, "codex-1" in refused.err) == (4, True)


def test_a_paused_queue_grants_nothing(person: Person) -> None:
    person.add("a")
    assert "paused" in person.ok("queue", "pause").out
    assert person.run("claim").code == 3
    assert "queue default is paused" in person.ok("why", "1").out
    assert "  the queue default is paused" in person.ok().out
    person.ok("queue", "resume")
    assert person.run("claim").code == 0


def test_queue_settings_are_kept(person: Person) -> None:
    person.ok("queue", "set", "night", "--wait-max", "2h", "--overtake-limit", "5")
    row = next(q for q in person.ok("queue", "list", "-o", "json").json if q["name"] == "night")
    assert (row["waitMaxMs"], row["overtakeLimit"], row["paused"]) == (7_200_000, 5, False)
    assert person.ok("queue").lines[-1].startswith("night  open  overdue after 2 h")
    assert person.run("queue", "set", "night", "--overtake-limit", "0").code == 2
    assert person.run("queue", "stop", "night").code == 2


def test_a_limit_holds_the_rest_back(person: Person) -> None:
    person.add("a")
    person.add("b")
    assert person.ok("limit").out == "no limits are set\n"
    person.ok("limit", "queue", "default", "1")
    person.claim()
    assert person.run("claim").code == 3
    assert "1 of 1 at once run for the queue default" in person.ok("why", "2").out
    assert person.ok("limit", "queue", "default", "none", "-o", "json").json == []
    assert person.run("claim").code == 0
    assert person.run("limit", "queue", "default").code == 2
    assert person.run("limit", "queue", "default", "many").code == 2
    assert person.run("limit", "planet", "x", "1").code == 2


def test_list_filters_and_goes_on(person: Person) -> None:
    for n in range(5):
        person.add(f"t{n}")
    person.ok("cancel", "2")
    assert names(person.ok("list", "--state", "cancelled", "-o", "json").json) == ["t1"]
    first = person.ok("list", "-n", "2", "-o", "json").json
    assert names(first) == ["t4", "t3"]
    assert names(person.ok("list", "-n", "2", "--before", "4", "-o", "json").json) == ["t2", "t1"]
    assert person.ok("list", "-n", "2").lines[-1] == "next  lessor list -n 2 --before 4"
    filtered = person.ok("list", "--state", "queued", "--queue", "default", "-n", "1").lines[-1]
    assert filtered.startswith("next  lessor list --state queued --queue default -n 1 --before ")
    assert person.run("list", "--state", "lost").code == 2


def _claimed(person: Person, title: str) -> dict[str, object]:
    number = person.add(title)["number"]
    return person.claim("--task", str(number))


def test_holding_what_has_no_file_asks_whether_it_is_spelt_right(
    person: Person, shop: Path
) -> None:
    (shop / "notes").mkdir()
    (shop / "notes" / "new.md").write_text("not committed yet\n")
    said = person.ok("hold", "srvices", "web/**/*.tsx", "services/tax", "notes", "web/**/*.ts")
    assert [line.strip() for line in said.lines[1:-1]] == [
        "srvices: no file yet: is it spelt right?",
        "web/**/*.tsx: no file yet: is it spelt right?",
    ]


def test_a_refusal_tells_how_long_a_hold_lasts_in_a_unit_that_fits(person: Person) -> None:
    person.ok("hold", "services", "--for", "3d")
    person.ok("hold", "web", "--for", "4h")
    person.ok("hold", "docs", "--for", "80s")
    for path, left in (
        ("services/tax", "3 more days"),
        ("web", "4 more hours"),
        ("docs", "1 more minute"),
    ):
        refused = person.run("hold", path)
        assert (refused.code, f" for about {left}." in refused.err) == (6, True)


def test_dropping_what_ran_out_says_how_to_hold_it_again_and_speaks_of_no_branch(
    person: Person,
) -> None:
    person.ok("hold", "docs", "web", "--for", "50ms")
    while {lease["status"] for lease in person.ok("list", "--leases", "-o", "json").json} == {
        "active"
    }:
        pass
    refused = person.run("drop", "docs")
    assert refused.code == 7
    said = " ".join(refused.err.split())
    assert said.endswith("It keeps nobody out any more; to go on: lessor hold docs web")
