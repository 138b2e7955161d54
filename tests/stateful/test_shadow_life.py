"""Whatever lands, is given up, fades or is asked, and in whatever order: claims begin where they may."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import pytest
from explore import MORE
from faults import Fault, loaded
from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis.stateful import run_state_machine_as_test
from rig import Rig
from shadow_rules import ShadowMachine

EXAMPLES = {"sqlite": 80, "postgres": 20}
FAULTS = {
    "a setting wakes nobody": Fault(
        edits=[("wake_shadowed", r"l\.ended_ms IS NULL AND", "1 = 0 AND")],
    ),
    "a question leaves nothing": Fault(
        edits=[("asked_results", r"o\.end_reason = 'asked'", "1 = 0")],
    ),
    "a shadow lies on what was read, too": Fault(
        edits=[("cast_shadows", r"w\.mode = 'w'", "w.mode <> ''")],
    ),
    "what was given up is forgotten": Fault(
        edits=[("give_up_result", r"given_up = 1", "given_up = given_up")],
    ),
    "a landing lifts nothing": Fault(
        edits=[("lift_shadow", r"id = :lease_id", "id = -:lease_id")],
    ),
    "a stand doesn't know what it stands on itself": Fault(
        edits=[("put_stands", r"x\.value ->> 'below'", "'[]'")],
    ),
}


def run(rig: Rig, *, examples: int, start: int | None = None, **more: Any) -> None:
    """Run the machine on a kind of store."""
    machine: Any = type("Machine", (ShadowMachine,), {"rig": rig})
    usual: dict[str, Any] = {
        "max_examples": examples,
        "stateful_step_count": 60,
        "deadline": None,
        "database": None,
        "print_blob": True,
        "suppress_health_check": [HealthCheck.too_slow],
    }
    run_state_machine_as_test(
        machine if start is None else seed(start)(machine), settings=settings(**{**usual, **more})
    )


@pytest.mark.timeout(0)
@pytest.mark.parametrize("kind", EXAMPLES)
def test_claims_begin_where_results_let_them(make_rig: Callable[[str], Rig], kind: str) -> None:
    run(make_rig(kind), examples=EXAMPLES[kind] * MORE)


@pytest.mark.timeout(0)
@pytest.mark.skipif(
    "LESSOR_FAULTS" not in os.environ, reason="takes minutes: LESSOR_FAULTS=1 runs it"
)
@pytest.mark.parametrize(
    ("name", "kind"), [(name, kind) for name, fault in FAULTS.items() for kind in fault.kinds]
)
def test_a_fault_of_shadows_is_found(make_rig: Callable[[str], Rig], name: str, kind: str) -> None:
    found = ""
    with loaded(FAULTS[name], kind):
        rig = make_rig(kind)
        for start in (1, 2, 3):
            try:
                found or run(
                    rig,
                    examples=150,
                    start=start,
                    phases=[Phase.generate],
                    print_blob=False,
                    report_multiple_bugs=False,
                )
            except AssertionError as error:
                found = repr(error)
    assert found, "nobody noticed"
