"""Two claims that need each other's limits: what the races found, told step by step."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from builders import MakeStore, Yard
from held import holding, until_waiting


def test_a_claim_that_looks_further_doesnt_wait_for_a_limit_that_another_claim_has_locked(
    make_store: MakeStore,
) -> None:
    """Its first look locked `z`; waiting for `a` then is how two claims would wait in a circle."""
    store = make_store("postgres")
    yard = Yard(store, store.connect())
    for key in ("a", "z"):
        yard.lessor.registry.set_limit("key", key, 50)
    yard.running("src")
    for n in range(20):
        yard.add(f"behind {n}", scopes=("src",), limit_key="z")
    yard.add("limited", scopes=("docs",), limit_key="a")
    yard.add("other", scopes=("lib",))
    with store.raw() as claiming:
        claiming.autocommit = False
        claiming.execute("SELECT 1 FROM usage_limit WHERE key = 'a' FOR UPDATE")
        assert yard.claim_one().title == "other"
        claiming.rollback()
    assert yard.claim_one().title == "limited"


@pytest.mark.parametrize("left", [1, 0])
def test_a_claim_that_finds_nothing_else_waits_for_a_limit_that_another_has_locked(
    make_store: MakeStore, left: int
) -> None:
    """Taken as full for good, the only task that could be granted were answered with nothing."""
    store = make_store("postgres")
    yard = Yard(store, store.connect())
    for key in ("a", "z"):
        yard.lessor.registry.set_limit("key", key, left)
    yard.running("src")
    for n in range(20):
        yard.add(f"behind {n}", scopes=("src",), limit_key="z" if left else None)
    yard.add("limited", scopes=("docs",), limit_key="a")
    with ThreadPoolExecutor(1) as aside:
        with holding(yard, "UPDATE usage_limit SET maximum = 1 WHERE key = 'a'"):
            claiming = aside.submit(yard.claim)
            if left:
                until_waiting(yard)
        assert yard.titles(claiming.result(timeout=30)) == ["limited"] * left
