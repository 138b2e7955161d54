"""The lease under a supervisor: renewed, watched, frozen in doubt, given up when lost."""

import os
import signal
from dataclasses import replace

from supervisor_rig import BUSY_TERMS, IDLE_TERMS, QUICK, expect, kinds_of, lives, until

from lessor.clock import SystemClock
from lessor.model.lease import LeaseTerms
from lessor.runner.process import ExitStatus
from lessor.runner.proctable import process_row
from lessor.runner.report import EventKind as Kind

BEATING = ("/bin/sh", "-c", "while :; do echo >> beats; sleep 0.005; done")
DOUBTFUL = LeaseTerms(ttl_ms=10_000, margin_ms=8_000, renew_every_ms=300, renew_attempts=10_000)
"""The deadline passes soon and the silence after it takes long."""

SHORT = LeaseTerms(ttl_ms=2_000, margin_ms=500, renew_every_ms=600)


def test_all_calls_come_from_one_thread(rig):
    run = rig.start("/bin/sleep", "600")
    for _ in range(5):
        expect(run, Kind.RENEWED)
    calls = rig.lease.calls("renew") + rig.lease.calls("watch")
    assert len({call["thread"] for call in calls}) == 1


def test_a_refused_renewal_freezes_and_waits_for_the_runner_to_salvage(rig):
    run = rig.start(*BEATING)
    until((rig.worktree / "beats").exists, "it works")
    rig.lease.answer(mode="refuse")
    lost = expect(run, Kind.LOST)
    assert "worker_2" in lost.facts["reason"]
    size = (rig.worktree / "beats").stat().st_size
    asked = len(rig.lease.calls("renew"))
    agent = next(e for e in run.events if e.kind is Kind.STARTED).facts["pid"]
    assert lives(agent)
    run.kill()
    expect(run, Kind.GONE)
    assert (rig.worktree / "beats").stat().st_size == size
    assert len(rig.lease.calls("renew")) == asked
    run.done()
    assert run.status() == ExitStatus(code=7)


def test_an_agent_that_was_being_stopped_is_kept_for_salvage_when_its_lease_is_lost(rig):
    run = rig.start(
        "/bin/sh",
        "-c",
        "trap '' TERM; touch up; while :; do sleep 0.01; done",
        patience=replace(QUICK, grace_ms=2_000),
    )
    until((rig.worktree / "up").exists, "it works")
    run.stop()
    expect(run, Kind.STOPPING)
    rig.lease.answer(mode="refuse")
    expect(run, Kind.LOST)
    agent = next(e for e in run.events if e.kind is Kind.STARTED).facts["pid"]
    clock = SystemClock()
    end_of_grace = clock.boottime_ms() + 2_500
    until(lambda: clock.boottime_ms() > end_of_grace, "the grace of the stop is over")
    assert lives(agent)
    run.kill()
    expect(run, Kind.GONE)


def test_a_lost_agent_gets_little_time_to_end_in_order(rig):
    rig.lease.answer(mode="refuse")
    run = rig.start("/bin/sleep", "600")
    expect(run, Kind.LOST)
    run.stop()
    assert expect(run, Kind.STOPPING).facts["grace_ms"] == QUICK.lost_grace_ms
    expect(run, Kind.GONE)


def test_a_lost_agent_that_nobody_salvages_is_ended_all_the_same(rig):
    rig.lease.answer(mode="refuse")
    run = rig.start("/bin/sleep", "600", patience=replace(QUICK, lost_ms=100))
    expect(run, Kind.LOST)
    assert expect(run, Kind.STOPPING).facts["reason"] == "lost"
    expect(run, Kind.GONE)


def test_a_look_that_shows_the_lease_gone_is_a_loss(rig):
    run = rig.start("/bin/sleep", "600", terms=IDLE_TERMS)
    expect(run, Kind.STARTED)
    rig.lease.answer(mode="live", held=False, reason="it was released by force")
    assert expect(run, Kind.LOST).facts["reason"] == "it was released by force"
    assert rig.lease.calls("renew") == []


def test_a_refused_look_is_a_loss(rig):
    run = rig.start("/bin/sleep", "600", terms=IDLE_TERMS)
    expect(run, Kind.STARTED)
    rig.lease.answer(mode="refuse")
    expect(run, Kind.LOST)


def test_a_look_that_nobody_answers_is_nothing(rig):
    run = rig.start("/bin/sleep", "600", terms=IDLE_TERMS)
    rig.lease.answer(mode="silent")
    until(lambda: len(rig.lease.calls("watch")) >= 5, "it looks again and again")
    assert set(kinds_of(run)) == {Kind.STARTED}


def test_three_renewals_in_a_row_without_an_answer_stop_the_agent(rig):
    rig.lease.answer(mode="silent")
    run = rig.start("/bin/sleep", "600")
    for failures in (1, 2, 3):
        assert expect(run, Kind.UNANSWERED).facts["failures"] == failures
    assert expect(run, Kind.STOPPING).facts["reason"] == "unanswered"
    assert expect(run, Kind.EXITED).facts["signal"] == signal.SIGTERM
    # The lease lives: when the store is back it can be completed or released.
    rig.lease.answer(mode="live")
    expect(run, Kind.RENEWED)
    assert run.done() == 2
    assert run.status() == ExitStatus(code=0)


def test_two_failures_and_an_answer_stop_nothing(rig):
    rig.lease.answer(mode="silent")
    run = rig.start("/bin/sleep", "600", terms=replace(BUSY_TERMS, renew_attempts=100))
    expect(run, Kind.UNANSWERED)
    expect(run, Kind.UNANSWERED)
    rig.lease.answer(mode="live")
    expect(run, Kind.RENEWED)
    rig.lease.answer(mode="silent")
    assert expect(run, Kind.UNANSWERED).facts["failures"] == 1
    assert Kind.STOPPING not in kinds_of(run)


def test_a_passed_deadline_freezes_and_the_next_answer_thaws(rig):
    rig.lease.answer(mode="silent")
    run = rig.start(*BEATING, terms=DOUBTFUL)
    until((rig.worktree / "beats").exists, "it works")
    assert expect(run, Kind.FROZEN).facts["hold"] == "deadline"
    rig.lease.answer(mode="live")
    expect(run, Kind.THAWED)
    size = (rig.worktree / "beats").stat().st_size
    until(lambda: (rig.worktree / "beats").stat().st_size > size, "it works on")
    assert Kind.LOST not in kinds_of(run)


def pause_past_the_deadline(run):
    """Stop the supervisor itself until its agent's lease has run out for it."""
    os.kill(run.pid, signal.SIGSTOP)
    until(lambda: process_row(run.pid).stopped, "the supervisor is paused")
    clock = SystemClock()
    deadline = clock.boottime_ms() + DOUBTFUL.ttl_ms - DOUBTFUL.margin_ms
    until(lambda: clock.boottime_ms() > deadline, "the deadline passes")
    run.poll_events()


def test_a_supervisor_that_was_paused_past_the_deadline_freezes_before_it_asks(rig):
    rig.lease.answer(mode="live", ttl_ms=DOUBTFUL.ttl_ms)
    run = rig.start(*BEATING, terms=DOUBTFUL)
    expect(run, Kind.RENEWED)
    pause_past_the_deadline(run)
    before = len(run.events)
    os.kill(run.pid, signal.SIGCONT)
    expect(run, Kind.THAWED)
    after = [event.kind for event in run.events[before:]]
    assert after[0] is Kind.FROZEN
    assert Kind.RENEWED in after[1 : after.index(Kind.THAWED)]


def test_failures_while_frozen_stop_nothing_before_the_margin_is_over(rig):
    rig.lease.answer(mode="live", ttl_ms=DOUBTFUL.ttl_ms)
    run = rig.start(*BEATING, terms=replace(DOUBTFUL, renew_attempts=2))
    expect(run, Kind.RENEWED)
    pause_past_the_deadline(run)
    rig.lease.answer(mode="silent")
    os.kill(run.pid, signal.SIGCONT)
    expect(run, Kind.FROZEN)
    while expect(run, Kind.UNANSWERED).facts["failures"] < 2:
        pass
    rig.lease.answer(mode="live", ttl_ms=60_000)
    expect(run, Kind.THAWED)
    assert Kind.STOPPING not in kinds_of(run)


def test_silence_after_the_deadline_is_a_loss_and_the_agent_does_nothing_meanwhile(rig):
    rig.lease.answer(mode="silent")
    run = rig.start(*BEATING, terms=replace(SHORT, renew_attempts=10_000))
    until((rig.worktree / "beats").exists, "it works")
    expect(run, Kind.FROZEN)
    size = (rig.worktree / "beats").stat().st_size
    assert "nobody answered" in expect(run, Kind.LOST).facts["reason"]
    assert (rig.worktree / "beats").stat().st_size == size
    run.kill()
    expect(run, Kind.GONE)
    assert (rig.worktree / "beats").stat().st_size == size


def test_a_store_that_hangs_keeps_nobody_from_freezing_and_ending(rig):
    rig.lease.answer(mode="hang")
    run = rig.start("/bin/sleep", "600", terms=SHORT)
    expect(run, Kind.FROZEN)
    expect(run, Kind.LOST)
    run.kill()
    expect(run, Kind.GONE)
    run.done()
    assert run.status() == ExitStatus(code=7)


def test_a_lifeline_that_breaks_counts_as_silence(rig):
    rig.lease.answer(mode="crash")
    run = rig.start("/bin/sleep", "600", terms=replace(BUSY_TERMS, renew_attempts=100))
    expect(run, Kind.UNANSWERED)
    assert expect(run, Kind.UNANSWERED).facts["failures"] == 2
    rig.lease.answer(mode="live")
    expect(run, Kind.RENEWED)
    assert "ZeroDivisionError" in (rig.directory / "report.stderr").read_text()


def test_a_cancel_that_only_a_look_can_see_ends_the_agent_and_all_renewals(rig):
    run = rig.start("/bin/sleep", "600", terms=IDLE_TERMS)
    expect(run, Kind.STARTED)
    rig.lease.answer(mode="live", cancelled=True)
    expect(run, Kind.CANCELLED)
    assert expect(run, Kind.STOPPING).facts["reason"] == "cancelled"
    expect(run, Kind.GONE)
    assert rig.lease.calls("renew") == []


def test_a_cancel_that_comes_with_a_renewal_is_heard_once_and_nothing_is_renewed_after_it(rig):
    rig.lease.answer(mode="live", cancelled=True)
    run = rig.start(
        "/bin/sh",
        "-c",
        "trap '' TERM; touch up; while :; do sleep 0.01; done",
        patience=replace(QUICK, grace_ms=500, watch_every_ms=5_000),
    )
    expect(run, Kind.CANCELLED)
    expect(run, Kind.GONE)  # several renewals later, had there been any
    assert kinds_of(run).count(Kind.CANCELLED) == 1
    assert len(rig.lease.calls("renew")) == 1


def test_the_store_may_ask_for_an_orderly_end(rig):
    run = rig.start("/bin/sleep", "600", terms=IDLE_TERMS)
    expect(run, Kind.STARTED)
    rig.lease.answer(mode="live", stop=True)
    assert expect(run, Kind.STOPPING).facts["reason"] == "asked"
    assert expect(run, Kind.EXITED).facts["signal"] == signal.SIGTERM


def test_a_lease_lost_during_the_checks_is_reported(rig):
    run = rig.start("/bin/true")
    expect(run, Kind.GONE)
    rig.lease.answer(mode="refuse")
    expect(run, Kind.LOST)
    run.done()
    assert run.status() == ExitStatus(code=7)


def test_done_waits_for_the_renewal_that_is_in_flight_and_hands_its_version_over(rig):
    terms = replace(BUSY_TERMS, margin_ms=30_000)
    run = rig.start("/bin/true", terms=terms, patience=replace(QUICK, watch_every_ms=5_000))
    expect(run, Kind.GONE)
    rig.lease.answer(mode="hang")
    until(rig.lease.unanswered, "a renewal hangs")
    run._process.say("done")
    rig.lease.let_go()
    handed_over = expect(run, Kind.HANDED_OVER)
    assert not handed_over.facts["in_flight"]
    assert handed_over.facts["version"] == 1 + len(rig.lease.calls("renew"))


def test_done_does_not_wait_for_a_store_that_hangs_longer_than_the_margin(rig):
    run = rig.start("/bin/true", patience=replace(QUICK, watch_every_ms=5_000))
    expect(run, Kind.GONE)
    rig.lease.answer(mode="hang")
    until(rig.lease.unanswered, "a renewal hangs")
    assert run.done() is not None
    assert run.events[-1].facts["in_flight"]
