"""A checker that finds nothing proves nothing: with a guard taken out of the product, it finds that."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest
from arena import POLICY, set_up
from checker import ALWAYS, find_violations
from history import load_history
from mutants import MUTANTS, uncover
from nemesis import Nemesis

from builders import MakeStore

ROUNDS = 40
"""The first one that shows it is the last: on a busy machine less happens in each."""
PLAYERS = 4
ROUND_MS = 2_500


@pytest.mark.race
@pytest.mark.parametrize(
    ("name", "kind"), [(name, kind) for name, mutant in MUTANTS.items() for kind in mutant.kinds]
)
def test_a_missing_guard_is_noticed(
    make_store: MakeStore, tmp_path: Path, journals: Path, name: str, kind: str
) -> None:
    store = make_store(kind, real_time=True)
    set_up(store.connect(policy=POLICY), limited=name == "limits")
    uncover(store, name)
    nemesis = Nemesis(tmp_path, journals, store.url, Random(7), mutant=name)
    found: dict[str, list[str]] = {}
    for _ in range(ROUNDS):
        nemesis.run(players=PLAYERS, milliseconds=ROUND_MS)
        found = find_violations(load_history(store, journals), *ALWAYS)
        if found.keys() & set(MUTANTS[name].broken):
            return
    raise AssertionError(f"{ROUNDS} rounds without {name} broke {found or 'nothing'}")
