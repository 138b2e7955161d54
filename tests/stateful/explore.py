"""The whole state machine, and how it is run."""

from __future__ import annotations

import os
from typing import Any

from holder_rules import HolderRules
from hypothesis import HealthCheck, seed, settings
from hypothesis.stateful import run_state_machine_as_test
from meanwhile_rules import MeanwhileRules
from person_rules import PersonRules
from rig import Rig
from world_rules import WorldRules

MORE = int(os.environ.get("LESSOR_TEST_STATEFUL", "1"))
"""How many times more examples than usual."""


class LessorMachine(MeanwhileRules, HolderRules, PersonRules, WorldRules):
    """Any order of operations, by holders old and new, on a clock that jumps."""


def explore(rig: Rig, *, examples: int, start: int | None = None, **more: Any) -> None:
    """Run the machine on a kind of store; a failure prints how to repeat it.

    Args:
        start: where chance begins; None means somewhere else each time.
    """
    usual: dict[str, Any] = {
        "max_examples": examples,
        "stateful_step_count": 100,
        "deadline": None,
        "database": None,
        "print_blob": True,
        "suppress_health_check": [HealthCheck.too_slow],
    }
    machine = type("Machine", (LessorMachine,), {"rig": rig})
    run_state_machine_as_test(
        machine if start is None else seed(start)(machine), settings=settings(**{**usual, **more})
    )
