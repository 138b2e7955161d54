"""PostgreSQL whose transactions are REPEATABLE READ unless told: nothing is granted twice there either."""

from __future__ import annotations

from threading import Thread

import psycopg
from psycopg import sql

from builders import MakeStore, Yard
from invariants import check_invariants
from lessor.errors import BusyError

TASKS = 60
CLAIMERS = 6


def test_claims_that_overlap_are_granted_one_after_another_at_snapshot_isolation(
    make_store: MakeStore,
) -> None:
    store = make_store("postgres")
    with psycopg.connect(store.url, autocommit=True) as db:
        db.execute(
            sql.SQL(
                "ALTER DATABASE {} SET default_transaction_isolation = 'repeatable read'"
            ).format(sql.Identifier(db.info.dbname))
        )
    yard = Yard(store, store.connect())
    for n in range(TASKS):
        yard.add(f"task {n}", scopes=(f"d{n % 5}/{n % 3}",))
    done: list[str] = []

    def work() -> None:
        while len(done) < TASKS:
            try:
                grants = yard.claim()
                for grant in grants:
                    yard.complete(grant)
                    done.append(grant.task)
            except BusyError:
                continue  # nothing was written; at snapshot isolation that is what a collision is

    threads = [Thread(target=work) for _ in range(CLAIMERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(done) == len(set(done)) == TASKS
    check_invariants(store)
