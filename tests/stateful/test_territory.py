"""The tests' own idea of overlap and the product's agree on every pair of the small world."""

from __future__ import annotations

from itertools import product

import pytest
from territory import SCOPES, overlap

from lessor.model.scope import overlaps, parse_scope


@pytest.mark.parametrize(("one", "other"), list(product(SCOPES, SCOPES)))
def test_two_ways_to_decide_an_overlap_agree(one: str, other: str) -> None:
    assert overlaps(parse_scope(one), parse_scope(other)) == overlap(one, other)
