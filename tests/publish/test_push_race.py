"""However pushes race against re-claims: no late one is taken, and no live holder is refused."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from push_journal import TAKEN, Handed, Tried
from push_judge import GONE, Figures, Lived, Moved, judge, read_log
from push_race import WAYS, race

from lessor.git.fence import fence_ref

MEMORY = Path("/dev/shm")
BRANCH = "refs/heads/ai/push-race-0"
A, B = (
    Lived(lease="lease_a", task="task", epoch=1, over_ms=100),
    Lived(lease="lease_b", task="task", epoch=2, over_ms=900),
)
FIRST, SECOND = (
    Handed(lease="lease_a", task="task", epoch=1, branch="b", at_ms=10),
    Handed(lease="lease_b", task="task", epoch=2, branch="b", at_ms=200),
)
WHOSE = {"a1": "lease_a", "a2": "lease_a", "b1": "lease_b"}


@pytest.fixture
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None) as place:
        yield Path(place)


@pytest.mark.race
@pytest.mark.parametrize("way", WAYS)
def test_no_late_push_is_taken_and_no_live_holder_is_refused(folder: Path, way: str) -> None:
    figures = race(folder, way, pushes=300, seed=7, seconds=120)
    assert figures.faults == []
    assert (figures.stale_accepted, figures.live_refused) == (0, 0)
    # The rest only says that something was shown.
    assert figures.stale_tried > 0
    assert figures.accepted > 0
    assert figures.leases > len({BRANCH})


def move(new: str, at_ms: int, *, ref: str = BRANCH, old: str = "x") -> Moved:
    return Moved(ref=ref, old=old, new=new, locked_ms=at_ms, done_ms=at_ms + 1)


def tried(commit: str, lease: str, answered_ms: int, what: str = TAKEN) -> Tried:
    return Tried(
        lease=lease,
        commit=commit,
        began_ms=answered_ms - 5,
        answered_ms=answered_ms,
        what=what,
        said="",
        replayed=False,
    )


def judged(*moves: Moved, entries: tuple[Tried, ...] = (), fenced: bool = False) -> Figures:
    logged = {BRANCH: [m.new for m in moves if m.ref == BRANCH]}
    return judge(moves, logged, [A, B], [FIRST, SECOND, *entries], WHOSE, fenced=fenced)


def test_a_race_without_faults_has_none() -> None:
    figures = judged(move("a1", 50), move("a2", 150), move("b1", 300))
    assert (figures.accepted, figures.stale_accepted, figures.between) == (3, 0, 1)
    assert figures.faults == []


def test_a_move_after_the_next_holder_had_the_task_is_found() -> None:
    assert judged(move("a1", 250)).stale_accepted == 1


def test_a_move_after_one_of_a_later_epoch_is_found_whatever_the_clocks_say() -> None:
    assert judged(move("b1", 150), move("a1", 160)).stale_accepted == 1


def test_a_live_holder_that_is_refused_is_found() -> None:
    refused = tried("a1", "lease_a", 90, "lease_lost")
    late = tried("a2", "lease_a", 100, "lease_lost")
    figures = judged(entries=(refused, late))
    assert (figures.tried, figures.live_refused, figures.stale_tried) == (2, 1, 1)
    assert len(figures.faults) == 1


def test_a_reflog_that_says_otherwise_is_found() -> None:
    figures = judge([move("a1", 50)], {BRANCH: ["a2"]}, [A], [FIRST], WHOSE, fenced=False)
    assert figures.faults


@pytest.mark.parametrize("closed_ms", [150, 250, None])
def test_a_lease_that_is_handed_on_before_the_last_one_is_fenced_off_is_found(
    closed_ms: int | None,
) -> None:
    ref = fence_ref("lease_a")
    moves = [move("f1", 20, ref=ref, old=GONE)]
    if closed_ms is not None:
        moves += [
            move(GONE, closed_ms, ref=ref),
            move("mark", 400, ref=ref),
            move(GONE, 500, ref=ref),
        ]
    assert bool(judged(*moves, fenced=True).faults) is (closed_ms != 150)


@pytest.mark.parametrize("marked_ms", [180, 350])
def test_a_fence_is_off_once_the_next_one_had_its_lock_however_late_the_deletion_was_told(
    marked_ms: int,
) -> None:
    """Whoever deleted it stood still before it had said so; another one found that it was gone."""
    ref = fence_ref("lease_a")
    deletion = Moved(ref=ref, old="f1", new=GONE, locked_ms=150, done_ms=300)
    moves = [move("f1", 20, ref=ref, old=GONE), deletion, move("mark", marked_ms, ref=ref)]
    assert bool(judged(*moves, fenced=True).faults) is (marked_ms == 350)


def test_a_transaction_that_was_aborted_moved_nothing() -> None:
    log = "\n".join(
        [
            f"prepared 5000000 old new {BRANCH}",
            f"aborted 6000000 old new {BRANCH}",
            f"prepared 7000000 old new2 {BRANCH}",
            f"committed 9000000 old new2 {BRANCH}",
        ]
    )
    assert read_log(log) == [Moved(ref=BRANCH, old="old", new="new2", locked_ms=7, done_ms=9)]


@pytest.mark.race
def test_a_remote_that_compares_nothing_is_found_out(folder: Path) -> None:
    """The race shows something: without a fence and without hooks late pushes are taken."""
    figures = race(folder, "nothing", pushes=60, seed=7, seconds=60)
    assert figures.stale_accepted > 0
