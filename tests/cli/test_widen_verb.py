"""`lessor widen` adds paths to a lease that one holds, where nobody else has them."""

from __future__ import annotations

import json
from pathlib import Path

from person import Person


def claimed(person: Person, title: str, *args: str) -> dict:
    return person.claim("--task", str(person.add(title, *args)["number"]))


def test_a_free_path_is_taken_with_a_fence_of_its_own(person: Person) -> None:
    grant = claimed(person, "Round totals", "--scope", "services/billing")
    said = person.ok("widen", "1", "services/tax").lines
    assert said[0].startswith("services/tax  is yours too, fence ")
    record = person.ok("widen", grant["leaseId"], "web/search", "README", "-o", "json").json
    assert record["leaseId"] == grant["leaseId"]
    assert record["scope"] == {
        "kind": "path-set",
        "paths": ["services/billing", "services/tax", "README", "web/search"],
    }
    assert record["fence"] > grant["fence"]
    assert person.run("acquire", "--scope", "services/tax/rate.py", "--agent", "x").code == 6


def test_what_somebody_else_holds_is_refused_and_nothing_is_taken(person: Person) -> None:
    claimed(person, "Round totals", "--scope", "services/billing")
    person.ok("acquire", "--scope", "services/tax", "--agent", "codex-1")
    refused = person.run("widen", "1", "web/search", "services/tax/rate.py", "-o", "json")
    assert refused.code == 6
    assert refused.problem["facts"]["holder"] == "codex-1"
    shown = person.ok("show", "1", "-o", "json").json
    assert shown["scope"]["paths"] == ["services/billing"]


def test_what_was_taken_since_the_lease_began_is_refused(person: Person) -> None:
    """It is free again, but this work doesn't have what was changed there."""
    claimed(person, "Round totals", "--scope", "services/billing")
    other = person.ok("acquire", "--scope", "services/tax", "--agent", "codex-1", "-o", "json").json
    person.ok("release", other["leaseId"])
    refused = person.run("widen", "1", "services/tax")
    assert refused.code == 6
    assert "codex-1" in refused.err


def test_a_path_counts_from_where_one_is(person: Person, shop: Path) -> None:
    claimed(person, "Round totals", "--scope", "web")
    person.ok("widen", "1", "billing", cwd=shop / "services")
    shown = person.ok("show", "1", "-o", "json").json
    assert shown["scope"]["paths"] == ["web", "services/billing"]


def test_an_agent_widens_by_the_token_that_it_was_given(person: Person, tmp_path: Path) -> None:
    grant = claimed(person, "Round totals", "--scope", "web")
    (token,) = (person.state / "leases").iterdir()
    given = tmp_path / "given"
    given.write_text(token.read_text())
    given.chmod(0o600)
    token.unlink()
    assert person.run("widen", "1", "services/tax").code == 4
    agent = Person(home=person.home, cwd=person.cwd, env={"LESSOR_LEASE_FILE": str(given)})
    assert json.loads(given.read_text())
    agent.ok("widen", grant["leaseId"], "services/tax")


def test_nobody_widens_what_they_dont_hold(person: Person) -> None:
    person.add("waits")
    assert person.run("widen", "1", "services/tax").code == 5
    grant = claimed(person, "mine", "--scope", "web")
    person.ok("release", grant["leaseId"])
    assert person.run("widen", grant["leaseId"], "services/tax").code == 7


def test_a_widening_that_is_sent_again_gets_the_first_answer(person: Person) -> None:
    claimed(person, "Round totals", "--scope", "services/billing")
    again = ("widen", "1", "services/tax", "--request-id", "mine-1", "-o", "json")
    first = person.ok(*again).json
    person.ok("widen", "1", "web")
    assert person.ok(*again).json["fence"] == first["fence"]
    other = person.run("widen", "1", "README", "--request-id", "mine-1", "-o", "json")
    assert (other.code, other.problem["code"]) == (6, "request_reused")
