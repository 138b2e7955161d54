"""A state machine that finds nothing proves nothing: with a fault in the SQL it finds that."""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest
from explore import explore
from faults import FAULTS, loaded
from hypothesis import Phase
from rig import Rig

UNUSABLE = "refused with 'store'"


STARTS = (1, 2, 3)
"""Where chance begins, in this order, until the fault is found."""


@pytest.mark.timeout(0)
@pytest.mark.skipif(
    "LESSOR_FAULTS" not in os.environ, reason="takes ten minutes: LESSOR_FAULTS=1 runs it"
)
@pytest.mark.parametrize(
    ("name", "kind"), [(name, kind) for name, fault in FAULTS.items() for kind in fault.kinds]
)
def test_a_fault_is_found(make_rig: Callable[[str], Rig], name: str, kind: str) -> None:
    fault = FAULTS[name]
    found = ""
    with loaded(fault, kind):
        rig = make_rig(kind)
        rig.uncover(fault.triggers, fault.indexes)
        for start in STARTS:
            found = found or judged(rig, start)
    assert found, "nobody noticed"
    assert UNUSABLE not in found, "the SQL is no SQL any more"


def judged(rig: Rig, start: int) -> str:
    """What the machine finds; nothing when it finds nothing."""
    try:
        explore(
            rig,
            examples=200,
            start=start,
            phases=[Phase.generate],
            print_blob=False,
            report_multiple_bugs=False,
        )
    except AssertionError as error:
        return repr(error)
    return ""
