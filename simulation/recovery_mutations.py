"""Each row of what becomes of an ended lease, turned wrong: its task, and on this host its branch and worktree.

The simulation judges where tasks go. What it never meets, a test finds: it has no git and no agents, no
effects are announced but pushes, and a person's cancel ends a lease by itself.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from simulation.mutation import Edit, Mutation

_TABLE = "model/recovery.py"
_CASES = "tests/model/test_recovery.py::test_the_first_rule_that_applies_decides"


def _leads_to(row: str, event: str) -> Edit:
    """The edit that makes a row of the table lead to another event."""
    found = rf'(name="{re.escape(row)}",\n        applies=.*\n        event=)TaskEvent\.\w+'
    return (_TABLE, found, rf"\1TaskEvent.{event}")


def _never(row: str) -> Edit:
    """The edit that makes a row of the table apply to nothing."""
    return (_TABLE, rf'(name="{re.escape(row)}",\n        applies=).*', r"\1lambda _: False,")


TASKS_RECOVERED: Sequence[Mutation] = (
    Mutation(
        name="a cancelled task is undone by the end of its lease",
        row="cancelled",
        edits=[_never("cancelled")],
        test=f"{_CASES}[cancelled]",
    ),
    Mutation(
        name="what only stood for its paths is quarantined",
        row="ad hoc",
        edits=[_leads_to("ad hoc", "QUARANTINE")],
        caught_by=["what_only_stood_for_its_paths_is_over"],
    ),
    Mutation(
        name="a task whose push is in doubt is queued",
        row="unsettled effect",
        edits=[_never("unsettled effect")],
        caught_by=["a_push_in_doubt_is_waited_for"],
    ),
    Mutation(
        name="a missing credential leaves the task to somebody who looks",
        row="credential missing",
        edits=[_leads_to("credential missing", "SUSPECT")],
        caught_by=["a_missing_credential_blocks"],
        needs=["check_fails"],
    ),
    Mutation(
        name="a spent task is left to somebody who looks",
        row="spent",
        edits=[_leads_to("spent", "SUSPECT")],
        caught_by=["what_is_spent_is_quarantined"],
    ),
    Mutation(
        name="a task that only reads waits for a person",
        row="read-only",
        edits=[_leads_to("read-only", "SUSPECT")],
        caught_by=["what_only_reads_is_tried_again"],
    ),
    Mutation(
        name="ordinary work waits for a person",
        row="workspace",
        edits=[_leads_to("workspace", "SUSPECT")],
        caught_by=["work_in_a_worktree_is_tried_again"],
    ),
    Mutation(
        name="a key is of no use",
        row="idempotent with a key",
        edits=[_leads_to("idempotent with a key", "SUSPECT")],
        caught_by=["what_has_a_key_is_tried_again"],
    ),
    Mutation(
        name="a broker that announced nothing is suspected",
        row="brokered, nothing announced",
        edits=[_leads_to("brokered, nothing announced", "SUSPECT")],
        caught_by=["what_announced_nothing_is_tried_again"],
    ),
    Mutation(
        name="an unsafe effect whose outcome is known is suspected all the same",
        row="announced, all settled",
        edits=[(_TABLE, r"\{Effects\.UNSAFE, (Effects\.BROKERED\} and e\.announced)", r"{\1")],
        test=f"{_CASES}[announced, all settled1]",
    ),
    Mutation(
        name="what may have done anything is tried again",
        row="anything else",
        edits=[_leads_to("anything else", "RETRY")],
        caught_by=["what_may_have_done_anything_waits_for_a_person"],
    ),
)

_LOST = "tests/runner/test_recovery_lost.py::test_"
_RUNNER = "tests/runner/test_recovery_runner.py::test_"
_PLACE = "runner/workplace.py"
_WITNESS = "runner/witness.py"

PLACES_RECOVERED: Sequence[Mutation] = (
    Mutation(
        name="a proof of death is told to nobody",
        row="proved gone: the lease ends at once, no attempt is spent",
        edits=[
            ("runner/keeping.py", r"self\._leases\.end_gone\(.*\)", "pass"),
        ],
        test=f"{_RUNNER}the_lease_of_a_killed_runner_ends_at_once_by_its_supervisors_proof",
    ),
    Mutation(
        name="a worktree is never gone on in",
        row="proved gone: the next epoch adopts the worktree",
        edits=[(_PLACE, r"elif over and kept and adopted is None", "elif False and kept")],
        test=f"{_RUNNER}the_next_run_adopts_the_worktree_and_goes_on",
    ),
    Mutation(
        name="a reboot proves nothing",
        row="the host has booted again: proved gone",
        edits=[(_WITNESS, r"if sightings and all\(", "if not sightings and all(")],
        test=f"{_RUNNER}after_a_reboot_the_next_run_goes_on_at_once",
    ),
    Mutation(
        name="a runner without an agent may live for ever",
        row="its runner died before it started an agent: proved gone",
        edits=[(_WITNESS, r"Presence\.GONE, reason=reason\)", "Presence.UNKNOWN, reason=reason)")],
        test=f"{_RUNNER}a_runner_that_died_before_it_started_anything_is_proved_gone",
    ),
    Mutation(
        name="a supervisor that died without a word proves its agent gone",
        row="its supervisor died without a word: unknown, its term runs out",
        edits=[
            (
                _WITNESS,
                r'Presence\.UNKNOWN, (reason="its supervisor died without a word")',
                r"Presence.GONE, \1",
            )
        ],
        test=f"{_RUNNER}without_a_reboot_a_dead_supervisor_proves_nothing",
    ),
    Mutation(
        name="a setup that may still run is taken for over",
        row="its setup may still run: unknown, its worktree isn't adopted",
        edits=[
            (
                _WITNESS,
                r'Presence\.UNKNOWN, (reason="its setup may still run")',
                r"Presence.GONE, \1",
            )
        ],
        test=f"{_RUNNER}a_setup_that_outlived_its_runner_keeps_the_worktree_from_being_adopted",
    ),
    Mutation(
        name="the worktree of a runner that still stands is adopted",
        row="its runner may still act: its worktree isn't adopted",
        edits=[
            (_WITNESS, r"if runner\.presence is not Presence\.GONE:\n        return runner", "")
        ],
        test=f"{_LOST}the_worktree_of_a_runner_that_was_frozen_in_its_check_isnt_adopted",
    ),
    Mutation(
        name="what isn't known to be over is gone on in",
        row="unknown, only files: salvaged, and a fresh start",
        edits=[
            (
                _WITNESS,
                r"presence is Presence\.GONE\n\n\ndef _runner_of",
                "presence is not None\n\n\ndef _runner_of",
            )
        ],
        test=f"{_LOST}the_next_epoch_starts_afresh_where_nothing_was_committed",
    ),
    Mutation(
        name="nothing is saved of what a lost agent had",
        row="unknown, only files: all of them are saved, untracked ones too",
        edits=[("runner/salvaging.py", r"saved = save\(desk, workspace\)", "saved = None")],
        test=f"{_LOST}what_the_frozen_agent_had_is_salvaged_untracked_files_too",
    ),
    Mutation(
        name="each epoch begins on a branch of its own",
        row="unknown, commits: the next epoch inherits the branch",
        edits=[
            (
                _PLACE,
                r'branch = grant\.branch or f"ai/\{grant\.number\}"',
                'branch = f"ai/{grant.number}-{grant.epoch}"',
            )
        ],
        test=f"{_LOST}a_branch_with_commits_is_inherited",
    ),
    Mutation(
        name="an old worktree stays on its branch",
        row="handed on: the old worktree is taken off the branch",
        edits=[
            (
                _PLACE,
                r"            self\._detach\(path\)\n",
                "            list_worktrees(self._desk.repo)\n",
            )
        ],
        test=f"{_LOST}a_zombies_late_commit_moves_no_branch_and_is_kept",
    ),
    Mutation(
        name="a late result leaves no trace",
        row="a late result: refused, and kept as evidence",
        edits=[
            ("service/completing.py", r"        keep_late\(\n(?:            .*\n)+        \)\n", "")
        ],
        test=f"{_LOST}a_zombies_completion_is_refused_and_kept_as_evidence",
    ),
    Mutation(
        name="whoever took a workspace over is overruled by its old runner",
        row="an old runner's late word: it moves nothing of a later epoch",
        edits=[
            (
                "store/sqlite/sql/registry.sql",
                r"WHERE id = :workspace_id AND epoch = :epoch AND state = :from_state",
                "WHERE id = :workspace_id AND :epoch > 0 AND :from_state <> ''",
            ),
            (
                "service/workspaces.py",
                r"            if known\.epoch != workspace\.epoch:\n                return False\n(            check_move)",
                r"\1",
            ),
        ],
        test=f"{_LOST}an_old_runners_word_doesnt_move_a_workspace_that_a_later_epoch_took",
    ),
    Mutation(
        name="what can't be read keeps its task from going on",
        row="its worktree can't be read: quarantined, and the task goes on",
        edits=[
            (
                "runner/salvaging.py",
                r"(except \(LessorError, OSError\) as refused:\n)(        tell\(NoteKind\.KEPT, f\"\{workspace\.path\} stays)",
                r"\1        raise\n\2",
            )
        ],
        test=f"{_LOST}a_worktree_that_cant_be_read_doesnt_keep_its_task_from_going_on",
    ),
    Mutation(
        name="of a worktree that was deleted nothing is looked for",
        row="its worktree was deleted: what was staged is saved",
        edits=[
            (
                "runner/salvaging.py",
                r"    if entry is None:\n        return None\n",
                "    return None\n",
            )
        ],
        test=f"{_LOST}a_worktree_that_was_deleted_by_hand_is_made_anew_with_what_was_staged",
    ),
    Mutation(
        name="half a rebase is gone on in",
        row="its worktree is on no branch: it isn't adopted",
        edits=[(_PLACE, r"if not _is_on_its_branch\(old\) or self", "if self")],
        test=f"{_LOST}a_rebase_left_halfway_isnt_adopted",
    ),
    Mutation(
        name="half a worktree is gone on in",
        row="its worktree was never made whole: taken away, and a new one",
        edits=[
            (
                _PLACE,
                r"if over and kept and _is_half_made\(self\._desk, old\):",
                "if over and kept and not old.path:",
            )
        ],
        test="tests/runner/test_half_made.py::test_the_next_run_begins_in_a_new_worktree",
    ),
    Mutation(
        name="whose a commit is is forgotten when the branch is handed on",
        row="commits of somebody else on the branch: foreign in every later epoch",
        edits=[(_PLACE, r"        if earlier:\n            self\._note_foreign\(.*\)\n", "")],
        test="tests/runner/test_handed_on.py::test_a_zombies_commit_isnt_the_branchs_own_because_it_was_handed_on_once_more",
    ),
)
"""What design §9 and §12 say of an ended lease's branch and worktree: the rows by what is known and what follows."""

RECOVERY: Sequence[Mutation] = (*TASKS_RECOVERED, *PLACES_RECOVERED)
