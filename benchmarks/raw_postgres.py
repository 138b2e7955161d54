"""What this server does for a guarded claim and completion in bare SQL: the limit to compare with.

No scopes, no events, no kept answers, no batch item answered on its own: a row is claimed with
owner, generation and deadline, and completed if all three still hold.
"""

from __future__ import annotations

import psycopg
from server import pgbench

SCHEMA = """
DROP TABLE IF EXISTS raw_task;
CREATE TABLE raw_task (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  status smallint NOT NULL DEFAULT 0,
  owner text,
  generation int NOT NULL DEFAULT 0,
  lease_expires_at timestamptz,
  payload text NOT NULL DEFAULT '{}'
);
CREATE INDEX raw_task_ready ON raw_task (id) WHERE status = 0;
"""
CLAIM = """UPDATE raw_task SET status = 1, owner = 'w', generation = generation + 1,
 lease_expires_at = now() + interval '60 seconds'
 WHERE id = (SELECT id FROM raw_task WHERE status = 0 ORDER BY id FOR UPDATE SKIP LOCKED LIMIT 1)
 RETURNING id, generation"""
COMPLETE = """UPDATE raw_task SET status = 2, owner = NULL, lease_expires_at = NULL
 WHERE id = :id AND status = 1 AND owner = 'w' AND generation = :generation
 AND lease_expires_at >= now()"""
ONE = f"{CLAIM} \\gset\n{COMPLETE};\n"
# One statement completes the last task and claims the next: one commit a task.
FUSED = f"WITH done AS ({COMPLETE} RETURNING 1) {CLAIM} \\gset\n"
BATCH = """WITH c AS (
 SELECT id FROM raw_task WHERE status = 0 ORDER BY id FOR UPDATE SKIP LOCKED LIMIT 100
), u AS (
 UPDATE raw_task t SET status = 1, owner = 'w', generation = generation + 1,
 lease_expires_at = now() + interval '60 seconds' FROM c WHERE t.id = c.id
 RETURNING t.id, t.generation
) SELECT array_agg(id) AS ids, array_agg(generation) AS gens FROM u \\gset
UPDATE raw_task t SET status = 2, owner = NULL, lease_expires_at = NULL
 FROM unnest(:ids::bigint[], :gens::int[]) AS x(id, gen)
 WHERE t.id = x.id AND t.generation = x.gen AND t.status = 1 AND t.owner = 'w'
 AND t.lease_expires_at >= now();
"""
SCRIPTS = {"one": (ONE, 1), "fused": (FUSED, 1), "batch": (BATCH, 100)}


def raw_rate(dsn: str, mode: str, *, tasks: int, clients: int = 1) -> float:
    """Tasks a second of `mode` out of a fresh table that has twice as many."""
    script, size = SCRIPTS[mode]
    fill(dsn, 2 * tasks)
    return size * pgbench(dsn, script, transactions=tasks // size // clients, clients=clients)


def fill(dsn: str, tasks: int) -> None:
    with psycopg.connect(dsn, autocommit=True) as db:
        for statement in SCHEMA.split(";"):
            if statement.strip():
                db.execute(statement)
        db.execute(
            "INSERT INTO raw_task (payload) SELECT '{}' FROM generate_series(1, %s)", (tasks,)
        )
        db.execute("VACUUM ANALYZE raw_task")
        db.execute("CHECKPOINT")
