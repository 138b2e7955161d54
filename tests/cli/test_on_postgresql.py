"""The same commands on a PostgreSQL store."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING
from urllib.parse import urlsplit, urlunsplit

import pytest
from person import Person, names

if TYPE_CHECKING:
    from servers import Server


@pytest.fixture
def fleet(person: Person, server: Server) -> Iterator[Person]:
    """A person whose store is a database."""
    url = server.create("real")
    yield Person(home=person.home, cwd=person.cwd, env={"LESSOR_STORE": url})
    server.drop(url)


def test_a_task_goes_from_add_to_complete(fleet: Person) -> None:
    fleet.add("a", "--scope", "web")
    fleet.add("b", "--after", "1")
    assert names(fleet.ok("ready", "-o", "json").json) == ["a"]
    grant = fleet.claim()
    fleet.ok("renew", grant["leaseId"])
    fleet.ok("complete", grant["leaseId"])
    assert names(fleet.ok("ready", "-o", "json").json) == ["b"]
    assert "1 ready" in fleet.ok().out
    assert not fleet.store.exists()


def test_doctor_names_the_store_without_its_password(fleet: Person) -> None:
    mark = "&" if "?" in fleet.env["LESSOR_STORE"] else "?"
    store = f"{fleet.env['LESSOR_STORE']}{mark}password=secret"
    found = {f["what"]: f for f in fleet.ok("doctor", "--store", store, "-o", "json").json}
    assert found["store"]["sentence"].startswith("PostgreSQL at postgresql://")
    assert "secret" not in found["store"]["sentence"]
    assert found["size"]["sentence"].startswith("the store takes ")
    assert "integrity" not in found
    assert found["failover"]["grade"] == "ok"


def test_doctor_says_where_a_power_cut_takes_grants_back(fleet: Person) -> None:
    import psycopg  # noqa: PLC0415 - drivers are imported where they are needed

    with psycopg.connect(fleet.env["LESSOR_STORE"], autocommit=True) as db:
        off = [
            name
            for name in ("fsync", "full_page_writes")
            if db.execute(f"SHOW {name}").fetchone() == ("off",)  # type: ignore[call-overload]
        ]
    told = fleet.ok("doctor", "-o", "json").json
    (found,) = [finding for finding in told if finding["what"] == "durability"]
    assert found["grade"] == ("weaker" if off else "ok")
    assert all(name in found["sentence"] for name in off)


def test_doctor_says_where_a_failover_cant_be_told(fleet: Person) -> None:
    """The server of a host that keeps those functions from everybody but itself."""
    import psycopg  # noqa: PLC0415 - drivers are imported where they are needed

    fleet.ok("doctor")
    parts = urlsplit(fleet.env["LESSOR_STORE"])
    role = f"lessor_kept_{os.getpid()}"
    with psycopg.connect(fleet.env["LESSOR_STORE"], autocommit=True) as db:
        db.execute(f"CREATE ROLE {role} LOGIN")  # type: ignore[call-overload]
        db.execute(f"GRANT ALL ON SCHEMA lessor TO {role}")  # type: ignore[call-overload]
        for kind in ("TABLES", "SEQUENCES", "FUNCTIONS"):
            db.execute(f"GRANT ALL ON ALL {kind} IN SCHEMA lessor TO {role}")  # type: ignore[call-overload]
        db.execute("REVOKE EXECUTE ON FUNCTION pg_walfile_name(pg_lsn) FROM PUBLIC")
        try:
            store = urlunsplit(parts._replace(netloc=f"{role}:@{parts.netloc.rpartition('@')[2]}"))
            told = fleet.ok("doctor", "--store", store, "-o", "json").json
        finally:
            db.execute(f"DROP OWNED BY {role}")  # type: ignore[call-overload]
            db.execute(f"DROP ROLE {role}")  # type: ignore[call-overload]
    (found,) = [finding for finding in told if finding["what"] == "failover"]
    assert found["grade"] == "weaker"
    assert "lessor restore --new-term" in found["sentence"]


def test_a_new_term_ends_every_grant(fleet: Person) -> None:
    fleet.add("a", "--scope", "web")
    grant = fleet.claim()
    fleet.ok("restore", "--new-term")
    assert fleet.run("renew", grant["leaseId"]).code == 7
    again = fleet.claim()
    assert again["term"] > grant["term"]
    assert again["epoch"] > grant["epoch"]
    fleet.ok("renew", again["leaseId"])
