"""The world by force is large enough for the arena: it finds each overlap that there is, and no other."""

from __future__ import annotations

from itertools import combinations_with_replacement

import pytest
from arena import GLOBS, LITERALS
from brute import paths_of

from lessor.model.scope import PathRules, overlaps, parse_scope


@pytest.mark.parametrize("fold", [False, True])
def test_scopes_share_a_path_of_the_small_world_exactly_when_they_overlap(fold: bool) -> None:
    rules = PathRules(fold_case=fold)
    scopes = {text: parse_scope(text, rules=rules) for text in (*LITERALS, *GLOBS)}
    wrong = [
        (one, other)
        for one, other in combinations_with_replacement(scopes, 2)
        if bool(paths_of(one, fold=fold) & paths_of(other, fold=fold))
        is not overlaps(scopes[one], scopes[other])
    ]
    assert wrong == []
