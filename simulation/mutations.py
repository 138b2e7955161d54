"""Lessor with one thing wrong in it, by the dozen: what the simulation has to find.

A row is a name, the edits (a file below src/lessor, a pattern, what stands there instead) and the
invariants that may find it. To add one, add a row.
"""

from __future__ import annotations

from collections.abc import Sequence

from simulation.lone_mutations import LONE
from simulation.mutation import (
    CLAIMING,
    ENDING,
    OWN,
    PUBLISHING,
    REGISTRY,
    SCOPES,
    Mutation,
    ended_alone,
    index,
    trigger,
)
from simulation.recovery_mutations import RECOVERY

# The guard of a single completion, twice in its statements.
_PROOF = r"AND l\.worker_id = :worker_id AND l\.token_hash = :token_hash"
_ALONE = r"AND l\.version = :version AND l\.ended_ms IS NULL"

_GENERAL: Sequence[Mutation] = (
    Mutation(
        name="a completion after the deadline is taken",
        edits=[
            (
                ENDING,
                r"AND l\.ended_ms IS NULL AND :now < l\.expires_ms;\nUPDATE lease SET ended",
                "AND l.ended_ms IS NULL;\nUPDATE lease SET ended",
            ),
            (
                ENDING,
                rf"{_ALONE} AND :now < l\.expires_ms",
                "AND l.version = :version AND l.ended_ms IS NULL",
            ),
        ],
        caught_by=["only_the_live_holder_ends_it_as_done"],
    ),
    Mutation(
        name="an ended lease is completed",
        edits=[
            (
                ENDING,
                r"AND l\.ended_ms IS NULL AND :now < l\.expires_ms;\nUPDATE lease SET ended",
                "AND :now < l.expires_ms;\nUPDATE lease SET ended",
            ),
            (ENDING, rf"{_ALONE} AND", "AND l.version = :version AND"),
            trigger("lease_stays_ended"),
            trigger("task_terminal_stays_terminal"),
        ],
        caught_by=[
            "no_constraint_is_reached",
            "what_ended_stays_ended",
            "only_the_live_holder_ends_it_as_done",
            "a_task_is_finished_once",
            "one_live_lease_a_task",
        ],
    ),
    Mutation(
        name="any token completes",
        edits=[
            (
                ENDING,
                r"WHERE l\.worker_id = x\.value ->> 'worker_id' AND l\.token_hash = x\.value ->> 'token_hash'\n  AND l\.version",
                "WHERE l.version",
            ),
            (ENDING, rf"{_PROOF}\n    {_ALONE}", "AND l.version = :version AND l.ended_ms IS NULL"),
            (ENDING, rf"{_PROOF}\n  {_ALONE}", "AND l.version = :version AND l.ended_ms IS NULL"),
        ],
        caught_by=["only_the_live_holder_ends_it_as_done"],
        needs=["forged"],
    ),
    Mutation(
        name="any version is completed",
        edits=[
            (ENDING, r"AND l\.version = x\.value ->> 'version' AND l\.ended_ms", "AND l.ended_ms"),
            (ENDING, _ALONE, "AND l.ended_ms IS NULL"),
        ],
        caught_by=["only_the_live_holder_ends_it_as_done"],
    ),
    Mutation(
        name="any version is renewed",
        edits=[(ENDING, r" AND l\.version = x\.value ->> 'version';", ";")],
        caught_by=["only_the_live_holder_renews"],
    ),
    Mutation(
        name="a renewal after the deadline is taken",
        edits=[
            (
                ENDING,
                r"AND l\.ended_ms IS NULL AND :now < l\.expires_ms AND l\.version",
                "AND l.ended_ms IS NULL AND l.version",
            )
        ],
        caught_by=["only_the_live_holder_renews"],
    ),
    Mutation(
        name="an ended lease is renewed",
        edits=[
            (
                ENDING,
                r"AND l\.ended_ms IS NULL AND :now < l\.expires_ms AND l\.version",
                "AND :now < l.expires_ms AND l.version",
            ),
            trigger("lease_stays_ended"),
        ],
        caught_by=["only_the_live_holder_renews", "what_ended_stays_ended"],
    ),
    Mutation(
        name="a renewal may shorten the lease",
        edits=[
            (
                ENDING,
                r"min\(max\(:now \+ ttl_ms, expires_ms\), max_until_ms\)",
                "min(:now + ttl_ms - 20000, max_until_ms)",
            )
        ],
        caught_by=["a_deadline_never_comes_nearer"],
    ),
    Mutation(
        name="a renewal doesn't move the version",
        edits=[
            (ENDING, r"SET version = version \+ 1, renewed_ms", "SET version = version, renewed_ms")
        ],
        caught_by=["only_the_live_holder_renews"],
    ),
    Mutation(
        name="a fence is given twice",
        edits=[
            (
                CLAIMING,
                r"UPDATE counter SET fence = :fence, floor",
                "UPDATE counter SET fence = fence, floor",
            ),
            index("lease_one_grant_per_fence"),
        ],
        caught_by=["fences_only_grow", "later_overlap_has_the_larger_fence"],
    ),
    Mutation(
        name="a widening takes no fence of its own",
        edits=[("service/scopes.py", r"fence = repo\.fence \+ 1", "fence = repo.fence")],
        caught_by=["later_overlap_has_the_larger_fence", "no_constraint_is_reached"],
    ),
    Mutation(
        name="the epoch stays when a task is granted again",
        edits=[
            (CLAIMING, r"t\.id, t\.epoch \+ 1, g\.value", "t.id, max(t.epoch, 1), g.value"),
            index("lease_one_per_epoch"),
        ],
        caught_by=["epochs_only_grow", "no_constraint_is_reached"],
    ),
    Mutation(
        name="what lies below a path doesn't block it",
        edits=[
            (
                CLAIMING,
                r"AND w\.key > ts\.key AND w\.key < ts\.key_end",
                "AND w.key > ts.key_end AND w.key < ts.key_end",
            ),
            trigger("scope_no_overlap"),
        ],
        caught_by=["no_overlap"],
    ),
    Mutation(
        name="what lies above a path doesn't block it",
        edits=[
            (
                CLAIMING,
                r"w\.repository_id = :repository_id AND w\.key = a\.value",
                "w.repository_id = :repository_id AND w.key = a.value AND w.key = ts.key",
            ),
            trigger("scope_no_overlap"),
        ],
        caught_by=["no_overlap"],
    ),
    Mutation(
        name="a reader blocks no writer",
        edits=[
            (
                CLAIMING,
                r"AND \(ts\.mode = 'w' OR w\.mode = 'w'\)",
                "AND (ts.mode = 'w' AND w.mode = 'w')",
            ),
            trigger("scope_no_overlap"),
        ],
        caught_by=["no_overlap"],
    ),
    Mutation(
        name="globs block nobody",
        edits=[
            (
                CLAIMING,
                r"AND s\.task_id <> t\.id AND \(s\.reserved",
                "AND s.task_id < 0 AND (s.reserved",
            )
        ],
        caught_by=["no_overlap"],
    ),
    Mutation(
        name="a widening doesn't look at what others hold",
        edits=[
            (
                SCOPES,
                r"s\.key = a\.value AND s\.lease_id <> :lease_id",
                "s.key = a.value AND s.lease_id < 0",
            ),
            trigger("scope_no_overlap"),
            index("scope_one_writer_per_key"),
        ],
        caught_by=["no_overlap"],
    ),
    Mutation(
        name="a widening after the deadline is taken",
        edits=[
            (
                "service/proof.py",
                r"if row\.lease_id is None or not \(row\.mine and live\)",
                "if row.lease_id is None or not row.mine",
            )
        ],
        caught_by=[
            "only_the_live_holder_widens",
            "only_the_live_holder_announces",
            "blocked_paths_belong_to_somebody",
            "a_push_is_settled_once_and_by_the_right_one",
            "nothing_unexpected_is_raised",
        ],
    ),
    Mutation(
        name="ended leases go on blocking",
        edits=[
            (
                CLAIMING,
                r"DELETE FROM scope WHERE lease_id IN \(SELECT lease_id FROM picked\)",
                "DELETE FROM scope WHERE lease_id < 0",
            )
        ],
        caught_by=["blocked_paths_belong_to_somebody"],
    ),
    Mutation(
        name="nobody is woken",
        edits=[(CLAIMING, r"(UPDATE task SET waiting_on = NULL\n)WHERE", r"\1WHERE 1 = 0 AND")],
        caught_by=["nobody_waits_for_what_is_over"],
    ),
    Mutation(
        name="ended leases are never drained",
        edits=[
            (
                CLAIMING,
                r"l\.ended_ms IS NOT NULL AND l\.drained = 0 AND NOT EXISTS",
                "l.ended_ms IS NOT NULL AND l.drained = 2 AND NOT EXISTS",
            )
        ],
        caught_by=[
            "nothing_stays_parked_on_what_has_ended",
            "everything_claimable_is_claimed",
            "everything_is_finished",
        ],
    ),
    Mutation(
        name="what ran out stays",
        edits=[
            (
                CLAIMING,
                r"l\.expires_ms <= \(SELECT max\(:now, c\.floor_ms\)",
                "l.expires_ms + 86400000 <= (SELECT max(:now, c.floor_ms)",
            )
        ],
        caught_by=[
            "what_ran_out_is_ended",
            "everything_claimable_is_claimed",
            "everything_is_finished",
        ],
    ),
    Mutation(
        name="a lease lapses while it lives",
        edits=[
            (
                CLAIMING,
                r"l\.expires_ms <= \(SELECT max\(:now, c\.floor_ms\)",
                "l.expires_ms - 5000 <= (SELECT max(:now, c.floor_ms)",
            ),
            (
                CLAIMING,
                r"l\.ended_ms IS NULL AND l\.expires_ms <= :now\) AS lapsed",
                "l.ended_ms IS NULL AND l.expires_ms - 5000 <= :now) AS lapsed",
            ),
        ],
        caught_by=["only_time_lapses_and_only_people_force"],
    ),
    Mutation(
        name="a lapse spends no attempt",
        edits=[("model/recovery.py", r"\{LeaseEnd\.GONE, ", "{LeaseEnd.LAPSED, LeaseEnd.GONE, ")],
        caught_by=["a_lapse_is_charged_and_a_stop_isnt"],
    ),
    Mutation(
        name="a release spends an attempt",
        edits=[("model/recovery.py", r"LeaseEnd\.RELEASED, ", "")],
        caught_by=["a_lapse_is_charged_and_a_stop_isnt"],
    ),
    Mutation(
        name="attempts have no end",
        edits=[("model/recovery.py", r"ended\.charged >= ended\.max_attempts or", "")],
        caught_by=["attempts_are_bounded"],
    ),
    Mutation(
        name="a question lets go of the paths",
        edits=[
            (ENDING, r"(name = 'lease'\)) WHERE lease_id = :lease_id;", r"\1 WHERE lease_id < 0;")
        ],
        caught_by=["a_question_keeps_its_paths"],
    ),
    Mutation(
        name="limits count nothing",
        edits=[
            (REGISTRY, r"count\(\*\) FROM lease", "0 * count(*) FROM lease"),
        ],
        caught_by=["limits_are_kept"],
    ),
    Mutation(
        name="a paused queue is claimed from",
        edits=[
            (
                CLAIMING,
                r"AND NOT EXISTS \(SELECT 1 FROM queue AS q WHERE q\.name = :queue AND q\.paused = 1\)",
                "",
            )
        ],
        caught_by=["a_grant_is_of_a_ready_task"],
    ),
    Mutation(
        name="what a task needs is not waited for",
        edits=[(CLAIMING, r"AND t\.needs_left = 0", "")],
        caught_by=["a_grant_is_of_a_ready_task"],
    ),
    Mutation(
        name="what is needed never counts as done",
        edits=[(ENDING, r"needs_left - x\.met", "needs_left")],
        caught_by=["needs_are_counted"],
    ),
    Mutation(
        name="any kind of agent gets it",
        edits=[(CLAIMING, r"AND \(t\.agent IS NULL OR t\.agent = :kind\)", "")],
        caught_by=["a_grant_is_of_a_ready_task"],
    ),
    Mutation(
        name="a claim is granted once more when it is repeated",
        edits=[
            (
                CLAIMING,
                r"SELECT :actor, :request_id, :digest, ",
                "SELECT :actor, :request_id || random(), :digest, ",
            ),
        ],
        caught_by=["one_request_is_granted_once"],
    ),
    Mutation(
        name="a lapse has no event",
        edits=[
            (
                ENDING,
                r"SELECT t\.id, t\.events, :at_ms, p\.asked ->> 'kind', p\.epoch, p\.asked ->> 'facts'\nFROM picked AS p JOIN task AS t ON t\.id = p\.task_id\n",
                "SELECT t.id, t.events, :at_ms, p.asked ->> 'kind', p.epoch, p.asked ->> 'facts'\nFROM picked AS p JOIN task AS t ON t.id = p.task_id AND p.asked ->> 'reason' <> 'lapsed'\n",
            )
        ],
        caught_by=["each_change_has_its_event"],
    ),
    Mutation(
        name="a sleep of the machine extends nothing",
        edits=[
            (
                OWN,
                r"UPDATE lease SET expires_ms = expires_ms \+ p\.at_ms, max_until_ms = max_until_ms \+ p\.at_ms",
                "UPDATE lease SET renewed_ms = renewed_ms",
            )
        ],
        caught_by=["only_time_lapses_and_only_people_force"],
    ),
    Mutation(
        name="a reserved turn keeps nobody out",
        edits=[
            (
                CLAIMING,
                r"AND \(w\.reserved_rank IS NULL OR w\.reserved_rank <= c\.rank AND NOT EXISTS",
                "AND (w.reserved_rank IS NULL OR w.reserved_rank > 1000000 AND NOT EXISTS",
            )
        ],
        caught_by=["a_reserved_turn_keeps_others_out"],
    ),
    Mutation(
        name="two turns are reserved",
        edits=[
            ("service/claiming.py", r"not survey\.reserved\n        and", "True\n        and"),
            index("lease_one_reservation_per_repository"),
        ],
        caught_by=["one_reserved_turn_a_repository"],
    ),
    Mutation(
        name="a push is announced by whoever had the lease once",
        edits=[
            (
                "service/proof.py",
                r"row\.expires_ms is not None and is_live\(\n        now=row\.now, expires_ms=row\.expires_ms, ended_ms=row\.ended_ms\n    \)",
                "row.expires_ms is not None",
            )
        ],
        caught_by=[
            "only_the_live_holder_announces",
            "only_the_live_holder_widens",
            "blocked_paths_belong_to_somebody",
            "a_push_is_settled_once_and_by_the_right_one",
            "nothing_unexpected_is_raised",
        ],
    ),
    Mutation(
        name="the paths of an unsettled push are freed",
        edits=[
            (
                CLAIMING,
                r"AND l\.drained = 0 AND NOT EXISTS \(\n\s+SELECT 1 FROM intent AS i\n[^)]*\)",
                "AND l.drained = 0",
            )
        ],
        caught_by=[
            "an_unsettled_push_keeps_its_paths",
            "no_stale_push_lands",
            "a_push_is_settled_as_it_went",
            "no_push_lands_after_its_fence_is_closed",
        ],
    ),
    Mutation(
        name="a push in doubt is taken for failed",
        edits=[
            (
                "model/intent.py",
                r"return Outcome\.FAILED if fence == publish\.fence else Outcome\.DONE",
                "return Outcome.FAILED",
            )
        ],
        caught_by=["a_push_is_settled_as_it_went"],
    ),
    Mutation(
        name="a push in doubt is read before it is fenced",
        edits=[("publish/recovering.py", r"fence = close_fence\(.*\)\n", "fence = None\n")],
        caught_by=[
            "no_stale_push_lands",
            "a_push_is_settled_as_it_went",
            "no_push_lands_that_was_settled_otherwise",
            "no_push_lands_after_its_fence_is_closed",
        ],
        needs=["push_late", "crash_in_doubt"],
        fenced=True,
    ),
    Mutation(
        name="a value of a fence that came late is never read",
        edits=[
            (
                "git/fence.py",
                r"there = fence_tip\(cwd, remote, ref\)\n        if there",
                "there = None\n        if there",
            )
        ],
        caught_by=[
            "everything_is_finished",
            "everything_claimable_is_claimed",
            "every_push_is_settled",
        ],
        needs=["push_late", "suspend"],
        fenced=True,
    ),
    Mutation(
        name="nobody asks what became of a push",
        edits=[("publish/recovering.py", r"after = 0\n    while", "after = 1 << 60\n    while")],
        caught_by=["every_push_is_settled", "everything_claimable_is_claimed"],
    ),
    Mutation(
        name="the fences of ended leases stay open",
        edits=[
            ("publish/fencing.py", r"return \{fence\.lease: fence\.oid for .*\}", "return {}"),
        ],
        caught_by=["no_stale_push_lands"],
        needs=["push_late"],
        fenced=True,
    ),
    Mutation(
        name="a repeated completion is taken twice",
        edits=[
            (
                ENDING,
                r"AND l\.ended_ms IS NULL AND :now < l\.expires_ms;\nUPDATE lease SET ended",
                "AND (l.ended_ms IS NULL OR l.end_reason = 'completed');\nUPDATE lease SET ended",
            ),
            (
                ENDING,
                rf"{_ALONE} AND :now < l\.expires_ms",
                "AND l.version = :version AND (l.ended_ms IS NULL OR l.end_reason = 'completed')",
            ),
            trigger("lease_stays_ended"),
        ],
        caught_by=[
            "no_constraint_is_reached",
            "what_ended_stays_ended",
            "each_change_has_its_event",
            "only_the_live_holder_ends_it_as_done",
            "needs_are_counted",
        ],
    ),
    Mutation(
        name="a cancel leaves the lease",
        edits=[
            ("service/deciding.py", r"if live and end is not None:", "if live and end is None:")
        ],
        caught_by=[
            "what_is_told_as_decided_is_on_record",
            "one_live_lease_a_task",
            "nothing_unexpected_is_raised",
            "everything_is_finished",
        ],
    ),
    Mutation(
        name="a released lease isn't guarded by its version",
        edits=[
            (
                "service/ending.py",
                r"if not live or row\.version != known_version\(holder\):",
                "if not live:",
            )
        ],
        caught_by=["only_the_live_holder_ends_it_as_done"],
    ),
    Mutation(
        name="what ran out is released all the same",
        edits=[
            (
                "service/ending.py",
                r"if not live or row\.version != known_version\(holder\):",
                "if row.version != known_version(holder) or row.ended_ms is not None:",
            )
        ],
        caught_by=["only_the_live_holder_ends_it_as_done"],
    ),
    Mutation(
        name="what was refused is committed",
        edits=[
            (
                "store/sqlite/store.py",
                r"        except BaseException:\n            self\._roll_back\(\)\n            raise\n",
                '        except BaseException:\n            self._db.execute("COMMIT") if _in_transaction(self._db) else None\n            raise\n',
            )
        ],
        caught_by=[
            "no_constraint_is_reached",
            "a_refused_write_changes_nothing",
            "each_change_has_its_event",
            "one_live_lease_a_task",
            "a_live_lease_holds_its_paths",
            "attempts_are_bounded",
            "needs_are_counted",
            "epochs_only_grow",
            "nobody_waits_for_what_is_over",
            "fences_only_grow",
            "a_question_keeps_its_paths",
        ],
    ),
    Mutation(
        name="a renewal is told longer than it is",
        edits=[
            (
                ENDING,
                r"(l\.renew_request, l\.version, l\.ttl_ms,) l\.expires_ms,",
                r"\1 l.expires_ms + 1000 AS expires_ms,",
            )
        ],
        caught_by=["what_is_told_as_renewed_is_on_record"],
    ),
    Mutation(
        name="a refused completion is told as done",
        edits=[
            (ENDING, r"AS ord, changes\(\) AS done,", "AS ord, 1 AS done,"),
            (
                ENDING,
                r"p\.lease_id IS NOT NULL AS done, (l\.id AS lease_id,\n.*\n  l\.ended_ms, l\.end_reason, l\.end_digest)",
                r"1 AS done, \1",
            ),
        ],
        caught_by=["what_is_told_as_ended_is_on_record"],
    ),
    Mutation(
        name="a grant is told longer than it is",
        edits=[
            (
                OWN,
                r"(l\.ttl_ms, l\.granted_ms,) l\.expires_ms,",
                r"\1 l.expires_ms + 1000 AS expires_ms,",
            )
        ],
        caught_by=["what_is_told_as_granted_is_on_record"],
    ),
    Mutation(
        name="a holder is told twice the term",
        edits=[("service/granting.py", r"ttl_ms=time_left\(", "ttl_ms=2 * time_left(")],
        caught_by=["authority_is_exclusive"],
    ),
    Mutation(
        name="all tasks have one branch",
        edits=[
            (OWN, r":branch_type \|\| '/' \|\| s\.number \|\| '-' \|\| s\.branch_words", "'ai/x'"),
            index("lease_one_live_per_branch"),
            index("task_one_unfinished_per_branch"),
        ],
        caught_by=["one_live_lease_a_branch"],
    ),
    Mutation(
        name="a grant takes the floor back",
        edits=[(OWN, r"p\.fence \+ 1, max\(:now, p\.floor_ms\)", "p.fence + 1, :now")],
        caught_by=["nothing_goes_back"],
    ),
    Mutation(
        name="the answer to a request goes with its lease",
        edits=[
            (
                ENDING,
                r"(UPDATE task SET needs_left = needs_left - 1\nWHERE id IN \(SELECT d\.task_id FROM dependency)",
                (
                    r"DELETE FROM request WHERE answer = (SELECT '[' || l.id || ']' FROM lease AS l "
                    r"WHERE l.task_id = :task_id AND l.epoch = :epoch AND l.kind = 'lease');\n\1"
                ),
            )
        ],
        caught_by=["nothing_is_deleted"],
    ),
    Mutation(
        name="a push goes backward",
        edits=[("publish/pushing.py", r"    _refuse_backward\(errand, old\)\n", "")],
        caught_by=["branches_keep_their_commits"],
    ),
    Mutation(
        name="a widening asks whether the lease has ended, and for no deadline",
        edits=[
            (
                "service/scopes.py",
                r"    row = lock_holder\(tx, naming, holder\)\n    wanted, covered",
                ended_alone("naming", indent=4) + "    wanted, covered",
            )
        ],
        caught_by=["only_the_live_holder_widens"],
    ),
    Mutation(
        name="a push asks whether the lease has ended, and for no deadline",
        edits=[
            (
                "service/intents.py",
                r"            row = lock_pusher\(tx, self\._naming, holder\)\n            if row",
                ended_alone("self._naming", indent=12) + 12 * " " + "if row",
            )
        ],
        caught_by=["only_the_live_holder_announces"],
    ),
    Mutation(
        name="what became of a push is recorded again",
        edits=[
            (
                "service/intents.py",
                r"            if found\.settled_ms is not None:\n                return\n",
                "",
            ),
            (PUBLISHING, r"WHERE id = :intent_id AND settled_ms IS NULL", "WHERE id = :intent_id"),
            trigger("intent_settles_once"),
        ],
        caught_by=["a_push_is_settled_once_and_by_the_right_one"],
        needs=["crash_in_doubt"],
    ),
    Mutation(
        name="a lease without paths takes no fence of its own",
        edits=[
            (
                OWN,
                r"c\.id, p\.fence \+ 1, max",
                "c.id, p.fence + EXISTS (SELECT 1 FROM task_scope AS o WHERE o.task_id = c.id), max",
            ),
            index("lease_one_grant_per_fence"),
        ],
        caught_by=["fences_only_grow"],
    ),
    Mutation(
        name="the paths of a widening carry no fence of its own",
        edits=[
            (
                SCOPES,
                r"(value ->> 'mode', value ->> 'pattern', value -> 'ancestors',) :fence\n",
                r"\1 1\n",
            )
        ],
        caught_by=["later_overlap_has_the_larger_fence"],
    ),
    Mutation(
        name="a drained lease is written to once more",
        edits=[
            (
                CLAIMING,
                r"UPDATE lease SET drained = 1 WHERE id IN \(SELECT lease_id FROM picked",
                (
                    "UPDATE lease SET drained = 1, end_digest = coalesce(end_digest, '') || ' ' "
                    "WHERE id IN (SELECT lease_id FROM picked"
                ),
            )
        ],
        caught_by=["what_ended_stays_ended"],
    ),
    Mutation(
        name="what overlaps is left to the database",
        edits=[
            (
                CLAIMING,
                r"AND w\.key > ts\.key AND w\.key < ts\.key_end",
                "AND w.key > CASE WHEN w.reserved_rank IS NULL THEN ts.key_end ELSE ts.key END AND w.key < ts.key_end",
            )
        ],
        caught_by=["no_constraint_is_reached"],
    ),
    Mutation(
        name="a decision is told as if nothing had moved",
        edits=[
            (
                "service/deciding.py",
                r"state=states\[row\.task_id\]\) for row in rows",
                "state=TaskState(row.status or states[row.task_id])) for row in rows",
            )
        ],
        caught_by=["what_is_told_as_decided_is_on_record"],
    ),
    Mutation(
        name="a refusal is noted on the worker",
        edits=[
            (
                "service/proof.py",
                r"    except HolderLostError as lost:\n",
                (
                    "    except HolderLostError as lost:\n"
                    "        more = 'UPDATE worker SET registered_ms = registered_ms + 1'\n"
                    "        store.write(lambda tx: list(tx._execute(more)))\n"
                ),
            )
        ],
        caught_by=["a_refused_write_changes_nothing"],
    ),
)

MUTATIONS: Sequence[Mutation] = (*_GENERAL, *LONE, *RECOVERY)
