"""Faults that show in one thing only: what would pass if its one invariant weren't there.

Each leaves what the others look at as it should be, or makes good what it did before they look.
"""

from __future__ import annotations

from collections.abc import Sequence

from simulation.mutation import (
    CLAIMING,
    ENDING,
    LANDING,
    OWN,
    PUBLISHING,
    SCHEMA,
    TASKS,
    Mutation,
    ended_alone,
    index,
    trigger,
)

_AD_HOC = "CASE WHEN queue = 'ad-hoc' THEN 'queued' ELSE 'running' END"
_TWICE = (
    r"FROM picked AS p CROSS JOIN task_scope AS ts ON ts\.task_id = p\.task_id;",
    (
        "FROM picked AS p CROSS JOIN (SELECT * FROM task_scope UNION ALL SELECT task_id, ord + 1000, text, key, key_end, "
        "mode, pattern, ancestors, widened FROM task_scope) AS ts ON ts.task_id = p.task_id;"
    ),
)

LONE: Sequence[Mutation] = (
    Mutation(
        name="acquired paths are held for a task that is on record as queued",
        edits=[
            (CLAIMING, r"SET status = 'running', epoch = p", f"SET status = {_AD_HOC}, epoch = p"),
            (
                OWN,
                r"SET status = 'running', epoch = epoch",
                f"SET status = {_AD_HOC}, epoch = epoch",
            ),
        ],
        caught_by=["one_live_lease_a_task"],
    ),
    Mutation(
        name="the epochs of a task that is done are forgotten",
        edits=[
            (
                ENDING,
                r"stage = :stage, finished_ms = :now, events = events \+ 1\n",
                "stage = :stage, finished_ms = :now, epoch = 0, events = events + 1\n",
            ),
            trigger("task_epoch_only_grows"),
        ],
        caught_by=["epochs_only_grow"],
    ),
    Mutation(
        name="what is held for an answer blocks nobody",
        edits=[
            (
                CLAIMING,
                r"CASE WHEN w\.task_id <> c\.id THEN 1 ELSE \(SELECT o\.kind = 'lease'",
                (
                    "CASE WHEN w.task_id <> c.id THEN (SELECT o.kind <> 'hold' FROM lease AS o WHERE o.id = w.lease_id) "
                    "ELSE (SELECT o.kind = 'lease'"
                ),
            ),
            trigger("scope_no_overlap"),
            index("scope_one_writer_per_key"),
        ],
        caught_by=["no_overlap"],
    ),
    Mutation(
        name="each path is blocked twice",
        edits=[(CLAIMING, *_TWICE), (OWN, *_TWICE), index("scope_one_writer_per_key")],
        caught_by=["a_live_lease_holds_its_paths"],
    ),
    Mutation(
        name="a task that is cancelled stays parked",
        edits=[
            (
                TASKS,
                r"status', waiting_on = NULL, parked_fence",
                "status', waiting_on = CASE WHEN p.asked ->> 'status' = 'cancelled' THEN waiting_on END, parked_fence",
            ),
            (SCHEMA, r"  CONSTRAINT task_waits_only_when_queued .*\n", ""),
        ],
        caught_by=["nobody_waits_for_what_is_over"],
    ),
    Mutation(
        name="a task without a repository blocks a path that nobody frees",
        edits=[
            (
                OWN,
                r"(?=INSERT INTO request .*\nSELECT :actor, :request_id, :digest, '\[' \|\| last_insert_rowid)",
                (
                    "INSERT INTO scope (lease_id, ord, repository_id, task_id, text, key, key_end, mode, ancestors, fence)\n"
                    "SELECT l.id, 0, 0, l.task_id, '.', '/', '0', 'r', '[]', 0\n"
                    "FROM lease AS l WHERE l.id = last_insert_rowid() AND changes() = 1;\n"
                ),
            )
        ],
        caught_by=["blocked_paths_belong_to_somebody"],
    ),
    Mutation(
        name="a lease without paths is over before its push is",
        edits=[
            (
                CLAIMING,
                r"(l\.ended_ms IS NOT NULL AND l\.drained = 0 AND) (NOT EXISTS \(\n  SELECT 1 FROM intent AS i\n[^)]*\))\nORDER BY l\.ended_ms",
                r"\1 (\2\n  OR NOT EXISTS (SELECT 1 FROM scope AS s WHERE s.lease_id = l.id))\nORDER BY l.ended_ms",
            )
        ],
        caught_by=["an_unsettled_push_keeps_its_paths"],
        needs=["crash_in_doubt"],
    ),
    Mutation(
        name="what is needed counts as done when somebody claims next",
        edits=[
            (ENDING, r"needs_left - x\.met", "needs_left"),
            (ENDING, r"SET needs_left = needs_left - 1\n", "SET needs_left = needs_left\n"),
            (
                CLAIMING,
                r"(?=SELECT \(SELECT count\(\*\) FROM picked\) AS drained)",
                (
                    "UPDATE task SET needs_left = (SELECT count(*) FROM dependency AS d JOIN task AS n ON n.id = d.needs_id "
                    "WHERE d.task_id = task.id AND n.status <> 'succeeded') WHERE needs_left > 0;\n"
                ),
            ),
        ],
        caught_by=["needs_are_counted"],
    ),
    Mutation(
        name="a fence reference is announced by whoever hasn't been ended",
        edits=[
            (
                "service/fences.py",
                r"            row = lock_pusher\(tx, self\._naming, holder\)\n",
                ended_alone("self._naming", indent=12),
            )
        ],
        caught_by=["only_the_live_holder_announces"],
        needs=["pause"],
        fenced=True,
    ),
    Mutation(
        name="a push is settled anew by each that asks",
        edits=[
            (
                "service/intents.py",
                r"            if found\.settled_ms is not None:\n                return\n",
                "",
            ),
            (
                PUBLISHING,
                r"outcome = :outcome, response = :response\nWHERE id = :intent_id AND settled_ms IS NULL",
                "outcome = coalesce(outcome, :outcome), response = :response\nWHERE id = :intent_id",
            ),
            trigger("intent_settles_once"),
        ],
        caught_by=["a_push_is_settled_once_and_by_the_right_one"],
        needs=["crash_in_doubt"],
    ),
    Mutation(
        name="a result that lands completes its task once more",
        edits=[
            (
                LANDING,
                r"end_reason = :reason\nWHERE id = :lease_id AND kind = 'shadow'",
                "end_reason = CASE :reason WHEN 'landed' THEN 'completed' ELSE :reason END\nWHERE id = :lease_id AND kind = 'shadow'",
            )
        ],
        caught_by=["a_task_is_finished_once"],
    ),
    Mutation(
        name="late results are forgotten when a task is completed",
        edits=[
            (
                ENDING,
                r"(?=UPDATE task SET needs_left = needs_left - 1\nWHERE id IN \(SELECT d\.task_id FROM dependency)",
                "DELETE FROM late_result WHERE task_id = :task_id;\n",
            )
        ],
        caught_by=["nothing_is_deleted"],
    ),
    Mutation(
        name="a fence is on record as closed when its lease ends",
        edits=[
            (
                ENDING,
                r"(?=UPDATE task SET status = p\.asked ->> 'status', charged)",
                (
                    "UPDATE fence_ref SET state = 'closed', at_ms = 0 "
                    "WHERE state <> 'closed' AND lease_id IN (SELECT lease_id FROM picked);\n"
                ),
            ),
            (
                PUBLISHING,
                r"AND (f\.)?state <> 'closed'",
                r"AND (\1state <> 'closed' OR \1at_ms = 0)",
            ),
        ],
        caught_by=["no_push_lands_after_its_fence_is_closed"],
        needs=["person_intrudes"],
        fenced=True,
    ),
    Mutation(
        name="a push without an answer is looked for, and may still land",
        edits=[
            (
                "publish/pushing.py",
                r"    found, moved = ask_fence\((cwd, wish\.remote, fence_ref\(holder\.lease\)), values\)\n",
                (
                    r"    from lessor.git.fence import fence_tip\n"
                    r"    found = moved = fence_tip(\1)\n"
                    r"    found, moved = (found, moved) if found in values else (None, None)\n"
                ),
            )
        ],
        caught_by=["no_push_lands_that_was_settled_otherwise"],
        needs=["push_late"],
        fenced=True,
    ),
    Mutation(
        name="a task's delay lasts two lease times longer",
        edits=[
            (
                CLAIMING,
                r"t\.due = 0 AND t\.run_at_ms <= :now\n(  ORDER BY t\.run_at_ms, t\.id LIMIT :most)",
                (
                    r"t.due = 0 AND t.run_at_ms <= :now - CASE WHEN EXISTS (SELECT 1 FROM dependency AS d WHERE d.task_id = t.id) "
                    r"THEN 0 ELSE 45000 + 2 * coalesce((SELECT max(l.ttl_ms) FROM lease AS l WHERE l.kind = 'lease'), 0) END\n\1"
                ),
            )
        ],
        caught_by=["everything_claimable_is_claimed"],
        lacks=["step_back"],  # the end waits for as long as the clock was set back
    ),
    Mutation(
        name="a quarantined task that is asked for again stays where it is",
        edits=[
            (
                "model/lifecycle.py",
                r"\(_S\.QUARANTINED, _E\.REQUEUE\): _S\.QUEUED",
                "(_S.QUARANTINED, _E.REQUEUE): _S.QUARANTINED",
            )
        ],
        caught_by=["everything_is_finished"],
        lacks=["step_back"],  # the end waits for as long as the clock was set back
    ),
    Mutation(
        name="what ran out is ended three terms later",
        edits=[
            (
                CLAIMING,
                r"AND l\.expires_ms <= \(SELECT max\(:now, c\.floor_ms\)",
                (
                    "AND l.expires_ms + CASE l.kind WHEN 'lease' THEN 3 * l.ttl_ms + 40000 ELSE 0 END "
                    "<= (SELECT max(:now, c.floor_ms)"
                ),
            )
        ],
        caught_by=["what_ran_out_is_ended"],
        lacks=["step_back"],  # the end waits for as long as the clock was set back
    ),
    Mutation(
        name="nobody asks about the push of a task that is over while nobody waits for it",
        edits=[
            (
                PUBLISHING,
                r"AND i\.settled_ms IS NULL AND l\.ended_ms IS NOT NULL AND i\.id > :after",
                (
                    "AND i.settled_ms IS NULL AND l.ended_ms IS NOT NULL AND i.id > :after\n"
                    "  AND (EXISTS (SELECT 1 FROM task AS t WHERE t.id = i.task_id AND t.finished_ms IS NULL)\n"
                    "    OR EXISTS (SELECT 1 FROM task AS w WHERE w.waiting_on = i.lease_id))"
                ),
            )
        ],
        caught_by=["every_push_is_settled"],
        needs=["push_unanswered", "crash_in_doubt"],
    ),
    Mutation(
        name="an acknowledgement that comes too early is met by nobody",
        edits=[
            (
                "service/holding.py",
                r"    if not rows:\n        watch",
                "    if rows is None:\n        watch",
            )
        ],
        caught_by=["nothing_unexpected_is_raised"],
    ),
)
