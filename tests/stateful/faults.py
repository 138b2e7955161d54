"""SQL with something wrong in it: what the state machine has to find."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from lessor.store.postgres.transaction import own_statements
from lessor.store.statements import load_statements

BOTH = ("sqlite", "postgres")


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """A guard that is gone, or a step that is left out.

    Attributes:
        edits: statement, pattern, what stands there instead; in each store that has the statement.
        kinds: the stores that it is looked for on.
        triggers: tables whose triggers would forbid what comes of it.
        indexes: unique ones that would.
    """

    edits: Sequence[tuple[str, str, str]]
    kinds: Sequence[str] = ("sqlite",)
    triggers: Sequence[str] = ()
    indexes: Sequence[str] = ()


FAULTS = {
    "a completion after the deadline is taken": Fault(
        edits=[
            ("complete_leases", r"AND (:now|n\.now) < l\.expires_ms", ""),
            ("complete_one", r"AND (:now|l\.now) < l\.expires_ms", ""),
        ],
        kinds=BOTH,
    ),
    "a renewal at the very deadline is taken": Fault(
        edits=[("renew_leases", r"(:now|n\.now) < l\.expires_ms", r"\1 <= l.expires_ms")],
    ),
    "an ended lease is renewed": Fault(
        edits=[("renew_leases", r"AND l\.ended_ms IS NULL", "")],
        kinds=BOTH,
        triggers=["lease"],
    ),
    "an ended lease is completed": Fault(
        edits=[(n, r"AND l\.ended_ms IS NULL", "") for n in ("complete_leases", "complete_one")],
        triggers=["lease", "task"],
    ),
    "any token will do": Fault(
        edits=[
            ("complete_leases", r"AND l\.token_hash = \w\.(value ->> 'token_hash'|token_hash)", ""),
            ("complete_one", r"AND l\.token_hash = :token_hash", ""),
        ],
        kinds=BOTH,
    ),
    "any version is renewed": Fault(
        edits=[("renew_leases", r"AND l\.version = (x\.value ->> 'version'|l\.known)", "")],
        kinds=BOTH,
    ),
    "any version is completed": Fault(
        edits=[
            ("complete_leases", r"AND l\.version = x\.value ->> 'version'", ""),
            ("complete_one", r"AND l\.version = :version", ""),
        ],
    ),
    "a grant doesn't look at the epoch again": Fault(
        edits=[("claim_write", r"t\.epoch = g\.epoch AND ", "")],
        kinds=["postgres"],
    ),
    "a grant doesn't look at the state again": Fault(
        edits=[("claim_write", r"AND t\.status = 'queued' ", "")],
        kinds=["postgres"],
        triggers=["task"],
        indexes=["lease_one_live_per_task", "lease_one_per_epoch"],
    ),
    "nobody is woken": Fault(
        edits=[("drain", r"(SET waiting_on = NULL\s+)WHERE", r"\1WHERE 1 = 0 AND")],
    ),
    "nobody is parked": Fault(
        edits=[("park_tasks", r"AND task\.waiting_on IS NULL", "AND 1 = 0")],
    ),
    "ended leases go on blocking": Fault(
        edits=[("drain", r"DELETE FROM scope WHERE", "DELETE FROM scope WHERE 1 = 0 AND")],
    ),
    "what is needed never counts as done": Fault(
        edits=[
            ("complete_leases", r"needs_left - (x|d)\.met", "needs_left"),
            ("complete_one", r"(needs_left) - 1|\Z", r"\1"),  # PostgreSQL's leaves it to the other
        ],
        kinds=BOTH,
    ),
    "limits count nothing": Fault(
        edits=[("limit_usage", r"count\(\*\)", "0 * count(*)")],
        kinds=BOTH,
    ),
    "what lies below a path doesn't block it": Fault(
        edits=[
            ("candidates", r"w\.key > ts\.key AND", "w.key > ts.key_end AND"),
            ("claim_first", r"s\.key > ts\.key AND", "s.key > ts.key_end AND"),
        ],
        triggers=["scope"],
        indexes=["scope_one_writer_per_key"],
    ),
    "globs block nobody": Fault(
        edits=[("glob_pairs", r"s\.task_id <> t\.id", "s.task_id < 0")],
    ),
    "a fence is given twice": Fault(
        edits=[
            ("claim_write", r"fence = :fence", "fence = fence"),
            ("claim_first", r"SET fence = p\.ord", "SET fence = fence"),
        ],
        indexes=["lease_one_grant_per_fence"],
    ),
    "a lapse spends no attempt": Fault(
        edits=[("end_leases", r"task\.charged \+ \(p\.asked ->> 'charge'\)", "task.charged")],
    ),
    "a lease is found run out one moment late": Fault(
        edits=[
            ("lapsed_leases", r"l\.expires_ms <= ", "l.expires_ms < "),
            ("drain", r"l\.expires_ms <= ", "l.expires_ms < "),
            ("claim_first", r"x\.expires_ms <= ", "x.expires_ms < "),
            ("claim_first_free", r"l\.expires_ms <= ", "l.expires_ms < "),
        ],
    ),
    "a question lets go of the paths": Fault(
        edits=[("put_hold", r"WHERE lease_id = :lease_id", "WHERE 1 = 0 AND lease_id = :lease_id")],
    ),
    "the least urgent goes first": Fault(
        edits=[
            (name, r"ORDER BY t\.rank, t\.id", "ORDER BY -t.rank, t.id")
            for name in ("candidates", "claim_first", "claim_first_free")
        ],
    ),
}


@contextmanager
def loaded(fault: Fault, kind: str) -> Iterator[None]:
    """Stores that are opened meanwhile have the fault."""
    texts = load_statements(kind)
    right = dict(texts)
    if kind == "postgres":
        own_statements.cache_clear()
    for statement, pattern, instead in fault.edits:
        if statement not in texts:
            continue
        texts[statement], times = re.subn(pattern, instead, texts[statement])
        assert times, f"{statement} has no {pattern}"
    try:
        yield
    finally:
        texts.update(right)
        if kind == "postgres":
            own_statements.cache_clear()
