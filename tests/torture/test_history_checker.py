"""The live harness's checker finds each wrong in a history that has it, and nothing in right ones."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from told import Told
from torture.checker import RULES, find_violations
from torture.recovering import ENOUGH


def deaths(told: Told, *, followed_after: int) -> Told:
    """As many as it takes to judge them, each with a lease that somebody gets later."""
    for n in range(ENOUGH):
        who, task, at = f"w{n}", f"t{n}", n * 30_000
        told.claim(who, at, task=task, fence=2 * n + 1).fault("kill", at + 99, at + 100, who)
        told.claim("next", at + followed_after, task=task, epoch=2, fence=2 * n + 2)
    return told


WRONG: dict[str, list[Callable[[Told], Told]]] = {
    "unexplained_tasks": [
        # a renewal was taken although another epoch had been granted and ended in between
        lambda t: t.claim("w1", 0).claim("w2", 4000, epoch=2, fence=2).renew("w1", 5000),
        # a completion was taken long after the term was over
        lambda t: t.claim("w1", 0).end("w1", 9000),
        # a second epoch was granted while the first had a second to live
        lambda t: t.claim("w1", 0).claim("w2", 2000, epoch=2, fence=2, paths=("b/0",)),
        # a completed task was granted again
        lambda t: t.claim("w1", 0).end("w1", 100).claim("w2", 5000, epoch=2, fence=2),
        # a live holder was refused, and nothing had ended its lease
        lambda t: t.claim("w1", 0).call(
            "w1", "renew", 500, 510, no="lease_lost", task="t", epoch=1
        ),
        # a step back ended a lease early
        lambda t: (
            t.claim("w1", 0)
            .fault("clock back", 500, 2500)
            .claim("w2", 2000, epoch=2, fence=2, paths=("b/0",))
        ),
        # somebody without a grant completed
        lambda t: t.end("w1", 100, epoch=3),
    ],
    "double_accepts": [
        lambda t: (
            t.claim("w1", 0)
            .end("w1", 100)
            .claim("w2", 4000, epoch=2, fence=2)
            .end("w2", 4100, epoch=2)
        ),
        lambda t: t.claim("w1", 0).end("w1", 100).end("w1", 200),
    ],
    "second_grants": [
        lambda t: t.claim("w1", 0).claim("w2", 5, fence=1),
        lambda t: t.claim("w1", 0, request="r").claim(
            "w1", 50, task="u", paths=("b/0",), fence=2, request="r"
        ),
    ],
    "shrinking_epochs": [lambda t: t.claim("w1", 0, epoch=2).claim("w2", 4000, epoch=1, fence=2)],
    "shrinking_fences": [
        lambda t: t.claim("w1", 0, fence=5).claim("w2", 100, task="u", fence=4, paths=("b/0",)),
        lambda t: t.claim("w1", 0, fence=5, term=1).claim(
            "w2", 100, task="u", fence=6, paths=("b/0",)
        ),
        lambda t: t.claim("w1", 0, fence=5).call(
            "w1", "widen", 100, 110, ok={"fence": 3}, task="t", epoch=1, paths=["b/0"]
        ),
    ],
    "overtaken_writes": [
        lambda t: t.claim("w1", 0).claim("w2", 4000, epoch=2, fence=2).end("w1", 5000)
    ],
    "lost_acknowledgements": [
        lambda t: t.claim("w1", 0).read(),
        lambda t: t.claim("w1", 0, fence=7).read(leases=(("t", 1, 6, 1, "lapsed"),)),
        lambda t: t.claim("w1", 0).renew("w1", 100).read(leases=(("t", 1, 1, 1, "lapsed"),)),
        lambda t: t.claim("w1", 0).end("w1", 100).read(leases=(("t", 1, 1, 1, "lapsed"),)),
        lambda t: (
            t.claim("w1", 0)
            .end("w1", 100)
            .read(leases=(("t", 1, 1, 1, "completed"),), tasks={"t": "queued"})
        ),
        lambda t: t.call("w1", "submit", 0, 10, ok={"tasks": ["u"]}).read(),
    ],
    "overlapping_beliefs": [
        lambda t: t.claim("w1", 0, paths=("a",)).claim(
            "w2", 100, task="u", fence=2, paths=("a/1",)
        ),
        lambda t: t.claim("w1", 0).renew("w1", 2000).claim("w2", 4000, task="u", fence=2),
        lambda t: (
            t.claim("w1", 0, paths=("b/0",))
            .claim("w2", 50, task="u", fence=2)
            .call("w1", "widen", 100, 110, ok={"fence": 3}, task="t", epoch=1, paths=["a/0"])
        ),
        lambda t: t.claim("w1", 0).claim("w2", 2000, epoch=2, fence=2),
    ],
    "disordered_moves": [
        lambda t: t.push("w2", 100, "c2", fence=2).push("w1", 200, "c1", fence=1),
        lambda t: t.push("w2", 100, "c2", term=1).push("w1", 200, "c1", fence=9),
        lambda t: (
            t.push("w1", 0, "c1")
            .push("w1", 50, "c2", lands=False)
            .fault("kill", 0, 1)
            .push("w3", 90, "c0", fence=0)
        ),
    ],
    "lost_pushes": [
        lambda t: t.push("w1", 0, "c1", lands=False),
        lambda t: t.push("w1", 0, "c1", no="push_refused"),
    ],
    "unknown_pushes": [
        lambda t: t.push("w1", 0, "c1", no="outcome_unknown").read(intents=(("c1", None),)),
        lambda t: t.push("w1", 0, "c1").read(intents=(("c1", "failed"),)),
        lambda t: t.push("w1", 0, "c1", lands=False, no="lease_lost").read(
            intents=(("c1", "done"),)
        ),
    ],
    "late_recoveries": [lambda t: deaths(t, followed_after=20_000)],
}

RIGHT: dict[str, Callable[[Told], Told]] = {
    "a task's life": lambda t: (
        t.claim("w1", 0)
        .renew("w1", 900)
        .end("w1", 1200)
        .read(leases=(("t", 1, 1, 2, "completed"),))
    ),
    "a lapse, and the late holder's refusals": lambda t: (
        t.claim("w1", 0)
        .claim("w2", 3100, epoch=2, fence=2)
        .call("w1", "renew", 3500, 3510, no="lease_lost", task="t", epoch=1)
        .call("w1", "complete", 3600, 3610, no="lease_lost", task="t", epoch=1)
        .end("w2", 4000, epoch=2)
    ),
    "a completion whose answer was lost, and its repetition": lambda t: (
        t.claim("w1", 0)
        .call("w1", "complete", 100, 150, no="store_unavailable", task="t", epoch=1)
        .end("w1", 200, repeated=True)
    ),
    "a completion that nobody was told of, by a process that died": lambda t: (
        t.claim("w1", 0)
        .call("w1", "complete", 100, None, task="t", epoch=1)
        .read(leases=(("t", 1, 1, 1, "completed"),))
    ),
    "a release that nobody was told of, and the next grant": lambda t: (
        t.claim("w1", 0)
        .call("w1", "release", 100, None, task="t", epoch=1)
        .claim("w2", 400, epoch=2, fence=2)
    ),
    "a renewal that nobody was told of lets the lease live longer": lambda t: (
        t.claim("w1", 0)
        .call("w1", "renew", 2500, None, task="t", epoch=1, request="r")
        .end("w1", 4500)
    ),
    "a lost answer to a claim, asked again": lambda t: t.call(
        "w1", "claim", 0, 20, no="store_unavailable", request="r", wanted=1
    ).claim("w1", 500, request="r", ttl=2500),
    "places given back, and granted to another": lambda t: (
        t.claim("w1", 0).end("w1", 500, op="release").claim("w2", 505, task="u", fence=2)
    ),
    "a widening over what the lease had": lambda t: (
        t.claim("w1", 0, fence=3)
        .claim("w2", 100, task="u", fence=4, paths=("b/0",))
        .call("w1", "widen", 200, 210, ok={"fence": 3}, task="t", epoch=1, paths=["a/0"])
    ),
    "a promotion ends every lease at once": lambda t: (
        t.claim("w1", 0)
        .fault("failover", 500, 1500)
        .claim("w2", 1600, epoch=1002, fence=2, term=1)
        .call("w1", "renew", 1700, 1710, no="lease_lost", task="t", epoch=1)
    ),
    "a lease that was over lives again after a step back, as nobody else got it": lambda t: (
        t.claim("w1", 0).fault("clock back", 4000, 6000).end("w1", 4500, op="release")
    ),
    "pushes in the order of their fences": lambda t: (
        t.push("w1", 0, "c1")
        .push("w2", 5000, "c2", fence=2)
        .push("w1", 6000, "c3", lands=False, no="lease_lost")
        .push("w2", 7000, "c4", fence=2, no="outcome_unknown")
        .read(intents=(("c1", "done"), ("c2", "done"), ("c3", "failed"), ("c4", "done")))
    ),
    "deaths, and the next grants within the term and five seconds": lambda t: deaths(
        t, followed_after=3200
    ),
}


@pytest.mark.parametrize(
    ("rule", "wrong"), [(rule, wrong) for rule, several in WRONG.items() for wrong in several]
)
def test_a_wrong_history_is_found(rule: str, wrong: Callable[[Told], Told]) -> None:
    assert rule in find_violations(wrong(Told()).history())


@pytest.mark.parametrize("right", RIGHT.values(), ids=RIGHT)
def test_nothing_is_found_in_a_right_history(right: Callable[[Told], Told]) -> None:
    assert find_violations(right(Told()).history()) == {}


def test_each_rule_is_shown_a_history_that_breaks_it() -> None:
    assert {rule.__name__ for rule in RULES} == WRONG.keys()
