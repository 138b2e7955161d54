"""When a run ends, what it waits for, and what its exit code says."""

from __future__ import annotations

import signal
import threading
from datetime import timedelta

import pytest
from run_rig import ADD, git
from supervisor_rig import until

from lessor.ids import new_request_id, new_token
from lessor.model.grant import ClaimRequest, Result
from lessor.model.waiting import Cause
from lessor.model.worker import NewWorker
from lessor.runner.noting import NoteKind
from lessor.runner.outcome import Outcome, exit_code
from lessor.runner.stopping import Stopping

LAST = Outcome


@pytest.mark.parametrize(
    ("last", "code"),
    [
        ([], 0),
        ([LAST.VERIFIED, LAST.UNVERIFIED, LAST.CANCELLED], 0),
        ([LAST.VERIFIED, LAST.FAILED], 1),
        ([LAST.FAILED, LAST.ASKED], 8),
        ([LAST.ASKED, LAST.LOST, LAST.FAILED], 7),
        ([LAST.VERIFIED, LAST.STOPPED], 75),
        ([LAST.STOPPED, LAST.FAILED], 1),
        ([LAST.KILLED], 0),
    ],
)
def test_the_exit_code_says_the_worst_of_the_last_outcomes(last, code):
    assert exit_code(last) == code


def other_holds(shop, task, *, heartbeat=False, ttl_ms=300_000, **worker):
    made = shop.lessor.registry.add_worker(
        NewWorker(agent="other", kind="claude", heartbeat=heartbeat, **worker)
    )
    (grant,) = shop.lessor.leases.claim(
        ClaimRequest(
            worker=made.id,
            request_id=new_request_id(),
            secret=new_token(),
            repository=shop.repository,
            task=task,
            ttl_ms=ttl_ms,
        )
    )
    return grant


def test_an_empty_queue_is_the_end(shop):
    assert shop.run() == 0


def test_what_a_person_has_to_do_isnt_waited_for(shop):
    shop.lessor.tasks.block([shop.add("blocked")], actor="dana")
    shop.add("another queue", queue="nightly")
    shop.add("another agent", agent="codex")
    shop.add("capable", capabilities=("gpu",))
    shop.add("tomorrow", delay=timedelta(days=1))
    held = shop.add("held", scopes=("src",))
    other_holds(shop, held)
    assert shop.run() == 0
    assert not shop.started_notes()


def test_a_paused_queue_isnt_waited_for(shop):
    shop.add()
    shop.lessor.registry.set_queue("default", paused=True)
    assert shop.run() == 0


def test_what_is_only_for_another_agent_isnt_waited_for_though_one_lives(shop):
    shop.lessor.registry.add_worker(NewWorker(agent="codex-1", kind="codex"))
    shop.add("another agent", agent="codex")
    assert shop.run() == 0


def test_a_delayed_task_is_waited_for(shop):
    task = shop.add(delay=timedelta(seconds=2))
    assert shop.run() == 0
    assert shop.task(task).state == "succeeded"


def test_what_a_live_worker_holds_is_waited_for(shop):
    grant = other_holds(shop, shop.add("first", scopes=("src",)), heartbeat=True)
    task = shop.add("second", scopes=("src/tax",))
    looks = threading.Event()

    class Looking:
        def note(self, note):
            shop.notes.note(note)
            looks.set()

    started = shop.start(ADD.replace("$LESSOR_NUMBER", "src/tax/new"), reporter=Looking())
    assert looks.wait(60)
    shop.connect().leases.complete_one(grant.holder, Result())
    assert started.result() == 0
    assert shop.task(task).state == "succeeded"


def test_what_somebody_holds_by_hand_for_long_isnt_waited_for(shop):
    other_holds(shop, shop.add("first", scopes=("src",)), ttl_ms=3_600_000)
    shop.add("second", scopes=("src/tax",))
    assert shop.run() == 0


def test_tasks_that_wait_for_tasks_come_in_their_order(shop):
    first = shop.add("first")
    second = shop.add("second", needs=(first,))
    third = shop.add("third", needs=(second,))
    assert shop.run(workers=3) == 0
    assert [shop.task(t).state for t in (first, second, third)] == ["succeeded"] * 3


def test_a_task_that_waits_for_one_that_a_live_worker_does_is_waited_for(shop):
    first = shop.add("first")
    grant = other_holds(shop, first, heartbeat=True)
    second = shop.add("second", needs=(first,))
    started = shop.start()
    shop.await_note(NoteKind.BASE)
    shop.connect().leases.complete_one(grant.holder, Result())
    assert started.result() == 0
    assert shop.task(second).state == "succeeded"


def test_a_turn_that_is_reserved_for_a_task_that_never_comes_isnt_waited_for(shop):
    """It was passed so often that it goes first; what it waits for is in a person's hands."""
    other_holds(shop, shop.add("held", scopes=("src",)), ttl_ms=3_600_000)
    shop.lessor.registry.set_queue("default", overtake_limit=1)
    starved = shop.add("starved", scopes=("src", "docs"))
    tasks = [shop.add(f"docs {n}", scopes=("docs",)) for n in range(4)]
    assert shop.run('echo "$LESSOR_NUMBER" > "docs/$LESSOR_NUMBER"') == 0
    states = [shop.task(task).state for task in (starved, *tasks)]
    assert states[0] == states[-1] == "queued"
    assert shop.lessor.tasks.why(tasks[-1]).cause is Cause.RESERVATION


def test_a_task_whose_need_waits_for_a_person_isnt_waited_for(shop):
    first = shop.add("first")
    shop.lessor.tasks.block([first], actor="dana")
    shop.add("second", needs=(first,))
    assert shop.run() == 0


def test_a_run_that_stays_waits_for_more(shop):
    started = shop.start(stay=True)
    first = shop.add("first")
    until(lambda: shop.task(first).state == "succeeded", "the first is done")
    second = shop.add("second")
    until(lambda: shop.task(second).state == "succeeded", "the second is done")
    assert started.thread.is_alive()
    shop.stopping.ask()
    assert started.result() == 0


def test_only_the_task_that_was_asked_for_is_run(shop):
    first, second = shop.add("first"), shop.add("second")
    assert shop.run(task=second) == 0
    assert [shop.task(t).state for t in (first, second)] == ["queued", "succeeded"]


def test_slots_work_side_by_side(shop):
    """Each agent waits until the other is there."""
    for title in ("first", "second"):
        shop.add(title)
    here = shop.directory
    agent = f"touch {here}/is-$LESSOR_NUMBER; while [ ! -e {here}/is-1 ] || [ ! -e {here}/is-2 ]; do sleep 0.05; done; {ADD}"
    assert shop.run(agent, workers=2) == 0
    assert {note.agent for note in shop.started_notes()} == {"claude-1", "claude-2"}


def test_a_fault_in_a_slot_ends_the_run_with_it(shop):
    """Never with an exit code that says that all is well, and never with a lease left behind."""

    class Faulty:
        def note(self, note):
            if note.kind is NoteKind.STARTED:
                raise ZeroDivisionError

    task = shop.add()
    with pytest.raises(ZeroDivisionError):
        shop.run("exec sleep 600", reporter=Faulty())
    assert shop.ends(task) == ["gone"]


def test_the_workers_of_a_run_are_retired(shop):
    shop.add()
    shop.run(workers=2)
    assert shop.lessor.registry.workers(host_id=shop.host.id) == []


def test_handlers_are_put_back(shop):
    before = [signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)]
    told = []
    stopping = Stopping(on_drain=lambda: told.append("drain"))
    with stopping.by_signals():
        signal.raise_signal(signal.SIGHUP)
        assert (stopping.draining, stopping.now) == (True, False)
        signal.raise_signal(signal.SIGTERM)
        assert stopping.now
    assert told == ["drain"]
    assert [signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)] == before


def test_a_hangup_that_was_ignored_stays_ignored(shop):
    """As nohup asked for."""
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        stopping = Stopping()
        with stopping.by_signals():
            signal.raise_signal(signal.SIGHUP)
            assert not stopping.draining
    finally:
        signal.signal(signal.SIGHUP, before)


HANGS = """
git config filter.hang.clean 'touch {ready}; exec sleep 1000'
echo '*.txt filter=hang' > .gitattributes
echo half > half.txt
"""
"""An agent whose worktree git can't commit: a filter that waits for ever."""


def test_asking_once_more_ends_a_git_command_that_waits(shop):
    task, ready = shop.add(max_attempts=1), shop.directory / "ready"
    started = shop.start(HANGS.format(ready=ready))
    until(ready.exists, "git waits for the filter")
    shop.stopping.ask()
    shop.stopping.ask()
    assert started.result() != 0
    assert (shop.task(task).state, shop.task(task).charged) == ("queued", 0)
    (salvaged,) = shop.lessor.salvages.of_task(task)
    assert git(shop.root, "show", f"{salvaged.ref}:half.txt") == "half"


def test_asking_once_more_ends_a_git_command_that_makes_the_worktree(shop):
    ready = shop.directory / "ready"
    shop.write(".gitattributes", "*.txt filter=hang\n")
    shop.write("a.txt", "a\n")
    shop.commit("filtered")
    git(shop.root, "config", "filter.hang.smudge", f"touch {ready}; exec sleep 1000")
    task = shop.add(max_attempts=1)
    started = shop.start()
    until(ready.exists, "git waits for the filter")
    shop.stopping.ask()
    shop.stopping.ask()
    assert started.result() != 0
    assert (shop.task(task).state, shop.task(task).charged) == ("queued", 0)
    git(shop.root, "config", "--unset", "filter.hang.smudge")
    shop.stopping = Stopping()
    assert shop.run() == 0
