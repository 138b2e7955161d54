"""The invariants, read by raw SQL: what has to hold after any operation, whatever was refused."""

from __future__ import annotations

from collections import defaultdict
from itertools import combinations
from typing import Any

from builders import StoreUnderTest
from lessor.model.scope import Mode, Scope, conflicts

_TERMINAL = "('succeeded', 'failed', 'cancelled')"

NOTHING: dict[str, str] = {
    "a task has one live lease at most": """
        SELECT task_id FROM lease WHERE kind = 'lease' AND ended_ms IS NULL GROUP BY task_id HAVING count(*) > 1""",
    "a task runs exactly while it has a lease that hasn't ended": """
        SELECT t.id, t.status FROM task AS t
        WHERE (t.status = 'running') <> EXISTS (
          SELECT 1 FROM lease AS l WHERE l.task_id = t.id AND l.kind = 'lease' AND l.ended_ms IS NULL)""",
    "no lease is of a later epoch than its task": """
        SELECT l.id FROM lease AS l JOIN task AS t ON t.id = l.task_id WHERE l.epoch > t.epoch""",
    "the live lease is of the task's latest grant": """
        SELECT l.id FROM lease AS l WHERE l.kind = 'lease' AND l.ended_ms IS NULL AND EXISTS (
          SELECT 1 FROM lease AS m WHERE m.task_id = l.task_id AND m.kind = 'lease' AND m.epoch > l.epoch)""",
    "no fence is above its repository's counter": """
        SELECT l.id FROM lease AS l JOIN counter AS c ON c.repository_id = l.repository_id WHERE l.fence > c.fence""",
    "no fence is given twice": """
        SELECT repository_id, fence FROM lease WHERE kind = 'lease' AND repository_id > 0
        GROUP BY repository_id, fence HAVING count(*) > 1""",
    "a scope row belongs to a lease whose paths haven't been freed": """
        SELECT s.lease_id FROM scope AS s LEFT JOIN lease AS l ON l.id = s.lease_id
        WHERE l.id IS NULL OR l.drained = 1 OR l.end_reason = 'granted'""",
    "a waiting task waits for a lease that will wake it": """
        SELECT t.id, t.waiting_on FROM task AS t LEFT JOIN lease AS l ON l.id = t.waiting_on
        WHERE t.waiting_on IS NOT NULL AND (l.id IS NULL OR l.drained = 1)""",
    "needs_left counts the needs that haven't succeeded": f"""
        SELECT t.id FROM task AS t WHERE t.status NOT IN {_TERMINAL} AND t.needs_left <> (
          SELECT count(*) FROM dependency AS d JOIN task AS n ON n.id = d.needs_id
          WHERE d.task_id = t.id AND n.status <> 'succeeded')""",
    "one unfinished task has a branch": f"""
        SELECT repository_id, branch FROM task WHERE branch IS NOT NULL AND status NOT IN {_TERMINAL}
        GROUP BY repository_id, branch HAVING count(*) > 1""",
    "events are numbered without gaps": """
        SELECT t.id FROM task AS t WHERE t.events <> (SELECT count(*) FROM event AS e WHERE e.task_id = t.id)
          OR t.events <> (SELECT coalesce(max(e.n), 0) FROM event AS e WHERE e.task_id = t.id)""",
    "each grant has its event": """
        SELECT l.id FROM lease AS l WHERE l.kind = 'lease' AND 1 <> (
          SELECT count(*) FROM event AS e WHERE e.task_id = l.task_id AND e.epoch = l.epoch AND e.kind = 'claimed')""",
    "each end has its event": """
        SELECT l.id, l.end_reason FROM lease AS l WHERE l.kind = 'lease' AND l.ended_ms IS NOT NULL AND NOT EXISTS (
          SELECT 1 FROM event AS e WHERE e.task_id = l.task_id AND e.epoch = l.epoch
            AND e.at_ms = l.ended_ms AND e.kind IN (l.end_reason, 'blocked', 'cancelled'))""",
    "each end of a hold, a reserved turn or a shadow has its event": """
        SELECT l.id, l.kind, l.end_reason FROM lease AS l
        WHERE l.kind <> 'lease' AND l.ended_ms IS NOT NULL AND NOT EXISTS (
          SELECT 1 FROM event AS e WHERE e.task_id = l.task_id AND (
            e.at_ms = l.ended_ms AND e.kind IN ('freed', 'claimed', 'cancelled', 'blocked')
            OR e.at_ms >= l.ended_ms AND (e.kind = 'amended' OR e.kind = l.end_reason AND l.kind = 'shadow')))""",
    "an epoch casts one shadow, after its lease ended with a result or a question": """
        SELECT l.id FROM lease AS l WHERE l.kind = 'shadow' AND (NOT EXISTS (
            SELECT 1 FROM lease AS o WHERE o.task_id = l.task_id AND o.epoch = l.epoch AND o.kind = 'lease'
              AND o.end_reason IN ('completed', 'asked') AND o.ended_ms <= l.granted_ms)
          OR EXISTS (
            SELECT 1 FROM lease AS m
            WHERE m.task_id = l.task_id AND m.epoch = l.epoch AND m.kind = 'shadow' AND m.id <> l.id))""",
    "a question's shadow follows its hold": """
        SELECT l.id FROM lease AS l JOIN lease AS o ON o.task_id = l.task_id AND o.epoch = l.epoch AND o.kind = 'lease'
        WHERE l.kind = 'shadow' AND o.end_reason = 'asked' AND NOT EXISTS (
          SELECT 1 FROM lease AS h WHERE h.task_id = l.task_id AND h.epoch = l.epoch AND h.kind = 'hold'
            AND h.end_reason = 'lapsed' AND h.ended_ms = l.granted_ms)""",
    "a task's latest shadow is of its recorded result": """
        SELECT l.id FROM lease AS l WHERE l.kind = 'shadow' AND NOT EXISTS (
          SELECT 1 FROM unlanded AS u WHERE u.task_id = l.task_id
            AND (u.lease_id = l.id AND u.epoch = l.epoch OR u.epoch > l.epoch AND l.ended_ms IS NOT NULL))""",
    "a shadow lies only for work that nobody goes on with and that may land": """
        SELECT l.id, t.status FROM lease AS l JOIN task AS t ON t.id = l.task_id JOIN unlanded AS u ON u.task_id = l.task_id
        WHERE l.kind = 'shadow' AND l.ended_ms IS NULL
          AND (t.status IN ('running', 'failed', 'cancelled') OR u.landed IS NOT NULL OR u.given_up = 1)""",
    "a shadow ends as what became of its result": """
        SELECT l.id, l.end_reason FROM lease AS l JOIN unlanded AS u ON u.task_id = l.task_id
        WHERE l.kind = 'shadow' AND l.ended_ms IS NOT NULL AND u.lease_id = l.id AND (
          l.end_reason NOT IN ('landed', 'discarded', 'lapsed', 'granted', 'cancelled')
          OR l.end_reason = 'landed' AND u.landed IS NULL
          OR l.end_reason = 'discarded' AND u.given_up = 0)""",
    "a finished result that landed is told as landed": """
        SELECT t.id, t.stage FROM task AS t JOIN unlanded AS u ON u.task_id = t.id
        WHERE t.status = 'succeeded' AND u.epoch = t.epoch AND (t.stage = 'landed') <> (u.landed IS NOT NULL)""",
    "paths of a shadow go when it is drained, and are of nothing else": """
        SELECT s.lease_id FROM shadow_scope AS s LEFT JOIN lease AS l ON l.id = s.lease_id AND l.kind = 'shadow'
        WHERE l.id IS NULL OR l.drained = 1 OR l.task_id <> s.task_id OR l.repository_id <> s.repository_id""",
    "what stands on a result stands on one that was recorded": """
        SELECT w.task_id FROM stand AS w WHERE NOT EXISTS (SELECT 1 FROM unlanded AS u WHERE u.task_id = w.on_task)""",
    "nothing runs out before its time": """
        SELECT id FROM lease WHERE end_reason = 'lapsed' AND ended_ms < expires_ms""",
    "what was begun is counted": """
        SELECT t.id FROM task AS t WHERE t.attempts <> (
          SELECT count(*) FROM lease AS l WHERE l.task_id = t.id AND l.kind = 'lease')""",
    "no more is charged than was begun": "SELECT id FROM task WHERE charged > attempts",
    "no holder's end is later than its deadline": """
        SELECT id FROM lease WHERE end_reason IN ('completed', 'failed', 'released', 'asked')
          AND ended_ms >= expires_ms""",
    "a limit is kept": """
        SELECT u.kind, u.key FROM usage_limit AS u WHERE u.maximum < (
          SELECT count(*) FROM lease AS l WHERE l.kind = 'lease' AND l.ended_ms IS NULL AND (
            (u.kind = 'queue' AND l.queue = u.key) OR (u.kind = 'agent' AND l.agent = u.key)
            OR (u.kind = 'key' AND l.limit_key = u.key)))""",
    "one turn is reserved in a repository": """
        SELECT repository_id FROM lease WHERE kind = 'reservation' AND ended_ms IS NULL
        GROUP BY repository_id HAVING count(*) > 1""",
    "a reserved turn is of a task that wants it": """
        SELECT l.id, t.status FROM lease AS l JOIN task AS t ON t.id = l.task_id
        WHERE l.kind = 'reservation' AND l.ended_ms IS NULL AND t.status <> 'queued'""",
    "a request is answered once": """
        SELECT actor, request_id FROM request GROUP BY actor, request_id HAVING count(*) > 1""",
}


def check_invariants(store: StoreUnderTest, *, without: tuple[str, ...] = ()) -> None:
    """Fail with everything that doesn't hold in the store as it is now."""
    broken = {}
    for name, text in NOTHING.items():
        rows = [] if name in without else store.sql(text)
        if rows:
            broken[name] = rows[:5]
    overlapping = find_overlaps(store)
    if overlapping:
        broken["no two live scopes of which one writes overlap"] = overlapping[:5]
    missing = store.sql(
        """SELECT l.id FROM lease AS l WHERE l.kind = 'lease' AND l.ended_ms IS NULL AND l.repository_id > 0
             AND (SELECT count(*) FROM task_scope AS t WHERE t.task_id = l.task_id)
               <> (SELECT count(*) FROM scope AS s WHERE s.lease_id = l.id)"""
    )
    if missing:
        broken["a live lease holds all of its task's paths"] = missing[:5]
    assert not broken, broken


def find_overlaps(store: StoreUnderTest) -> list[Any]:
    """Pairs of scope rows of different leases that can't be held side by side."""
    found = defaultdict(list)
    for lease, repository, text, key, mode, pattern in store.sql(
        "SELECT lease_id, repository_id, text, key, mode, pattern FROM scope WHERE reserved_rank IS NULL"
    ):
        scope = Scope(text=text, key=key, mode=Mode(mode), pattern=pattern)
        found[repository].append((lease, scope))
    return [
        (a, one.text, b, other.text)
        for rows in found.values()
        for (a, one), (b, other) in combinations(rows, 2)
        if a != b and conflicts(one, other)
    ]
