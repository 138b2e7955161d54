"""Any order of operations leaves both stores as the specification says."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from explore import MORE, explore
from rig import Rig

EXAMPLES = {"sqlite": 250, "postgres": 60}


@pytest.mark.timeout(0)
@pytest.mark.parametrize("kind", EXAMPLES)
def test_any_order_of_operations_is_as_specified(make_rig: Callable[[str], Rig], kind: str) -> None:
    explore(make_rig(kind), examples=EXAMPLES[kind] * MORE)
