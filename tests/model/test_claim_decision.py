from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from lessor.model.claiming import Candidate, Park, Room, Taken, decide, is_starved
from lessor.model.scope import Mode, Scope, conflicts, parse_scope

TEXTS = ["a", "a/b", "a/b/c", "b", "b/**/x", "a/*", "*.md", ".", "c/d", "c"]
SCOPES = st.builds(parse_scope, st.sampled_from(TEXTS), mode=st.sampled_from(Mode))


def candidate(task: int, *scopes: Scope, **more: object) -> Candidate:
    values: dict = {
        "epoch": 0,
        "rank": 0,
        "number": task,
        "title": "t",
        "branch": None,
        "limit_key": None,
        "progress": True,
        "has_own": False,
        "blocker": None,
    }
    return Candidate(task=task, scopes=scopes, **{**values, **more})


@given(st.lists(st.lists(SCOPES, min_size=1, max_size=3), min_size=1, max_size=6))
def test_a_batch_never_grants_two_that_conflict_and_never_holds_back_one_that_does_not(
    wishes: list[list[Scope]],
) -> None:
    wanted = [candidate(n, *scopes) for n, scopes in enumerate(wishes, start=1)]
    decision = decide(wanted, wanted=len(wanted), room=Room(), glob_blockers={})
    granted: list[Candidate] = []
    for one in wanted:
        against = [
            g.task for g in granted if any(conflicts(a, b) for a in one.scopes for b in g.scopes)
        ]
        if one in decision.grants:
            assert not against
            granted.append(one)
        else:
            park = next(park for park in decision.parks if park.task == one.task)
            assert park.behind in against


@given(st.lists(SCOPES, max_size=4), st.lists(SCOPES, min_size=1, max_size=4))
def test_looking_up_taken_scopes_equals_comparing_each_pair(
    taken: list[Scope], asked: list[Scope]
) -> None:
    looked = Taken()
    looked.add(1, taken)
    expected = any(conflicts(a, b) for a in taken for b in asked)
    assert (looked.overlapping(asked) is not None) == expected


def test_a_candidate_behind_a_live_lease_is_parked_on_it() -> None:
    decision = decide(
        [candidate(1, blocker=7), candidate(2)], wanted=1, room=Room(), glob_blockers={}
    )
    assert decision.parks == [Park(task=1, lease=7)]
    assert [grant.task for grant in decision.grants] == [2]


def test_a_candidate_behind_a_glob_is_parked_on_it() -> None:
    decision = decide([candidate(1)], wanted=1, room=Room(), glob_blockers={1: 9})
    assert decision.parks == [Park(task=1, lease=9)]


def test_a_candidate_at_a_limit_is_passed_over_and_not_parked() -> None:
    room = Room(keys={"k": 1})
    decision = decide(
        [candidate(1, limit_key="k"), candidate(2, limit_key="k"), candidate(3)],
        wanted=3,
        room=room,
        glob_blockers={},
    )
    assert [grant.task for grant in decision.grants] == [1, 3]
    assert decision.parks == []


def test_a_full_queue_or_agent_gets_nothing() -> None:
    for room in (Room(queue=0), Room(agent=0)):
        assert decide([candidate(1)], wanted=1, room=room, glob_blockers={}).grants == []


def test_a_task_is_starved_by_grants_or_by_time() -> None:
    often = {"parked_fence": 10, "parked_ms": 0, "limit": 20, "limit_ms": 600}
    assert not is_starved(fence=29, now=599, **often)
    assert is_starved(fence=30, now=0, **often)
    assert is_starved(fence=10, now=600, **often)
