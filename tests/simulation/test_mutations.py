"""The simulation finds what is wrong; all of it takes half an hour: `simulation/mutants`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from simulation.hunting import ROOT, hunt
from simulation.mutations import MUTATIONS, Mutation, apply

from simulation import answer_rules, grant_rules, healing, remote_rules, running, write_rules

BY_NAME = {mutation.name: mutation for mutation in MUTATIONS}
SOON = (
    "any version is renewed",
    "globs block nobody",
    "what a task needs is not waited for",
)


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.name)
def test_every_edit_still_meets_the_code(mutation: Mutation, tmp_path: Path) -> None:
    apply(mutation, ROOT, tmp_path)


def test_every_mutation_names_invariants_that_there_are() -> None:
    rules = (
        *(*grant_rules.GRANT_RULES, *write_rules.WRITE_RULES, *answer_rules.ANSWER_RULES),
        *(*remote_rules.LANDED_RULES, *remote_rules.SETTLED_RULES),
    )
    known = {rule.__name__ for rule in rules} | set(healing.SENTENCES) | {running.UNEXPECTED}
    named = {name for mutation in MUTATIONS for name in mutation.caught_by}
    assert named <= known, json.dumps(sorted(named - known))
    assert all(rule.__doc__ for rule in rules)
    assert len(BY_NAME) == len(MUTATIONS)


@pytest.mark.parametrize("name", SOON)
def test_what_is_wrong_is_found_by_the_invariant_that_it_breaks(name: str) -> None:
    one = hunt(BY_NAME[name], seconds=60)
    assert one.caught, f"{one.invariant or 'nobody'}: {one.found}"
