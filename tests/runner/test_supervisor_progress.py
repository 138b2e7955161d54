"""Progress: quiet is warned of before it counts, and sleep is nobody's fault."""

import os
from dataclasses import replace

import pytest

from lessor.clock import ManualClock
from lessor.errors import TermsInvalidError
from lessor.runner import progress
from lessor.runner.progress import Progress, ProgressLimits, Sample, Verdict, WorktreeScan, awake_ms

LIMITS = ProgressLimits(quiet_ms=20_000, total_ms=120_000)
STILL = Sample(log_bytes=10, cpu_ms=100, worktree=(3, 77))


@pytest.fixture
def watched():
    rule = Progress(LIMITS, now_ms=0)
    rule.observe(STILL, now_ms=0)
    return rule


def test_a_quiet_agent_is_warned_about_once_and_then_ended(watched):
    assert watched.observe(STILL, now_ms=14_999) is Verdict.FINE
    assert watched.observe(STILL, now_ms=15_000) is Verdict.WARNING
    assert watched.observe(STILL, now_ms=15_001) is Verdict.FINE
    assert watched.observe(STILL, now_ms=20_000) is Verdict.QUIET


def test_even_a_late_look_warns_first(watched):
    assert watched.observe(STILL, now_ms=50_000) is Verdict.WARNING
    assert watched.observe(STILL, now_ms=50_001) is Verdict.QUIET


@pytest.mark.parametrize(
    "sample",
    [
        Sample(log_bytes=11, cpu_ms=100, worktree=(3, 77)),
        Sample(log_bytes=0, cpu_ms=100, worktree=(3, 77)),
        Sample(log_bytes=10, cpu_ms=100, worktree=(3, 78)),
        Sample(log_bytes=10, cpu_ms=100, worktree=(2, 77)),
        Sample(log_bytes=10, cpu_ms=100 + 801, worktree=(3, 77)),
    ],
    ids=["log grows", "log is cut", "file changes", "file goes", "computes"],
)
def test_any_sign_of_progress_begins_the_quiet_time_anew(watched, sample):
    assert watched.observe(sample, now_ms=16_000) is Verdict.FINE
    assert watched.quiet_ms(16_000) == 0
    assert watched.observe(sample, now_ms=31_000) is Verdict.WARNING
    assert watched.observe(sample, now_ms=36_000) is Verdict.QUIET


def test_the_timers_of_an_idle_runtime_are_no_progress(watched):
    idle = Sample(log_bytes=10, cpu_ms=100 + 800, worktree=(3, 77))
    assert watched.observe(idle, now_ms=16_000) is Verdict.WARNING


def test_the_first_complete_scan_is_no_progress():
    rule = Progress(LIMITS, now_ms=0)
    rule.observe(Sample(log_bytes=10, cpu_ms=100, worktree=None), now_ms=0)
    rule.observe(STILL, now_ms=10_000)
    assert rule.quiet_ms(10_000) == 10_000


def test_the_total_time_counts_whatever_the_agent_does(watched):
    for second in range(1, 120):
        busy = Sample(log_bytes=10 + second, cpu_ms=100, worktree=(3, 77))
        assert watched.observe(busy, now_ms=second * 1_000) is Verdict.FINE
    assert watched.observe(STILL, now_ms=120_000) is Verdict.TOTAL


def test_being_held_still_by_us_is_excused(watched):
    watched.observe(STILL, now_ms=16_000)
    watched.excuse(40_000)
    assert watched.observe(STILL, now_ms=54_999) is Verdict.FINE
    assert watched.observe(STILL, now_ms=55_000) is Verdict.WARNING


def test_time_asleep_is_not_counted():
    clock = ManualClock()
    before = awake_ms(clock)
    clock.suspend(8 * 3_600_000)
    assert awake_ms(clock) == before
    clock.advance(5)
    assert awake_ms(clock) == before + 5


@pytest.mark.parametrize(
    "limits",
    [
        {"quiet_ms": 0, "total_ms": 1},
        {"quiet_ms": -1, "total_ms": 1},
        {"quiet_ms": 2, "total_ms": 1},
        {"quiet_ms": 1, "total_ms": 10**15},
    ],
)
def test_limits_that_do_not_fit_are_refused(limits):
    with pytest.raises(TermsInvalidError):
        ProgressLimits(**limits)


@pytest.fixture
def tree(tmp_path):
    (tmp_path / "src" / "deep").mkdir(parents=True)
    (tmp_path / "src" / "deep" / "a.py").write_text("a")
    (tmp_path / ".git").mkdir()
    (tmp_path / "node_modules").mkdir()
    (tmp_path / "loop").symlink_to(tmp_path)
    return tmp_path


def fingerprint(scan):
    """Of the next round that begins now."""
    scan.step()
    return scan.step()


def test_a_change_anywhere_in_the_worktree_shows(tree):
    scan = WorktreeScan(str(tree))
    before = fingerprint(scan)
    assert fingerprint(scan) == before
    os.utime(tree / "src" / "deep" / "a.py", ns=(1, 2**62))
    after = fingerprint(scan)
    assert after == (before[0], 2**62)
    (tree / "src" / "deep" / "a.py").unlink()
    assert fingerprint(scan)[0] == before[0] - 1


def test_what_git_and_package_managers_write_does_not_show(tree):
    scan = WorktreeScan(str(tree))
    before = fingerprint(scan)
    for name in (".git", "node_modules"):
        (tree / name / "new").write_text("x")
        os.utime(tree / name, ns=(1, 2**62))
    assert fingerprint(scan) == before


def test_a_scan_takes_bounded_steps_and_bounded_rounds(tree, monkeypatch):
    monkeypatch.setattr(progress, "ENTRIES_A_STEP", 2)
    monkeypatch.setattr(progress, "ENTRIES_A_ROUND", 4)
    for number in range(10):
        (tree / f"file{number}").write_text("x")
    scan = WorktreeScan(str(tree))
    assert [scan.step() for _ in range(2)] == [None, None]
    assert scan.step()[0] == 4


def test_a_worktree_that_is_gone_or_unreadable_is_an_empty_one(tmp_path):
    assert WorktreeScan(str(tmp_path / "gone")).step() == (0, 0)


def test_progress_after_a_warning_is_said_once(watched: Progress) -> None:
    assert watched.observe(STILL, now_ms=15_000) is Verdict.WARNING
    moved = replace(STILL, log_bytes=STILL.log_bytes + 1)
    assert watched.observe(moved, now_ms=16_000) is Verdict.MOVED
    assert watched.observe(replace(moved, log_bytes=99), now_ms=17_000) is Verdict.FINE
