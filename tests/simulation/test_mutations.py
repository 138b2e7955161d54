"""The simulation finds what is wrong; all of it takes half an hour: `simulation/mutants`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from simulation.hunting import ROOT, hunt
from simulation.mutation import Mutation, apply
from simulation.mutations import MUTATIONS
from simulation.recovery_mutations import RECOVERY, TASKS_RECOVERED
from simulation.running import INVARIANTS
from simulation.world import RULES

from lessor.model.recovery import RECOVERY_RULES

BY_NAME = {mutation.name: mutation for mutation in MUTATIONS}
GUARDED = {"nothing_stays_parked_on_what_has_ended"}
"""What breaks this breaks another one first; docs/simulation.md says which."""
SOON = (
    "any version is renewed",
    "globs block nobody",
    "what a task needs is not waited for",
)


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.name)
def test_every_edit_still_meets_the_code(mutation: Mutation, tmp_path: Path) -> None:
    apply(mutation, ROOT, tmp_path)


def test_every_mutation_names_what_finds_it() -> None:
    assert len(BY_NAME) == len(MUTATIONS)
    assert all(bool(mutation.caught_by) != bool(mutation.test) for mutation in MUTATIONS)
    named = {name for mutation in MUTATIONS for name in mutation.caught_by}
    assert named <= INVARIANTS, json.dumps(sorted(named - INVARIANTS))
    assert all(rule.__doc__ for rule in RULES)


def test_every_invariant_has_a_mutation_of_its_own() -> None:
    own = {name for m in MUTATIONS if len(m.caught_by) == 1 for name in m.caught_by}
    assert own == INVARIANTS - GUARDED, json.dumps(sorted(INVARIANTS - GUARDED - own))


def test_every_recovery_row_has_a_mutation_that_turns_it_wrong() -> None:
    rows = [mutation.row for mutation in MUTATIONS if mutation.row]
    assert len(rows) == len(set(rows))
    assert {rule.name for rule in RECOVERY_RULES} == {mutation.row for mutation in TASKS_RECOVERED}
    page = (ROOT / "docs" / "simulation.md").read_text(encoding="utf-8")
    for mutation in RECOVERY:
        finder = mutation.test.rpartition("::")[2].partition("[")[0] or "".join(mutation.caught_by)
        assert f"| {mutation.row} | {mutation.name} | {finder} |" in page


@pytest.mark.parametrize(
    "node", [m.test for m in MUTATIONS if m.test], ids=lambda node: node.rpartition("::")[2]
)
def test_every_test_that_finds_a_mutation_is_there(node: str) -> None:
    file, _, name = node.partition("::")
    assert f"def {name.partition('[')[0]}(" in (ROOT / file).read_text(encoding="utf-8")


@pytest.mark.parametrize("name", SOON)
def test_what_is_wrong_is_found_by_the_invariant_that_it_breaks(name: str) -> None:
    one = hunt(BY_NAME[name], seconds=60)
    assert one.caught, f"{one.invariant or 'nobody'}: {one.found}"
