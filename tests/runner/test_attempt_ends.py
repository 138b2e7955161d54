"""How an agent ends, and what that costs: killed, failed, over its limits, cancelled, stopped."""

from __future__ import annotations

import signal
import threading
from dataclasses import replace

import pytest
from run_rig import ADD, git
from supervisor_rig import QUICK, lives, until

from lessor.errors import AgentError
from lessor.model.lease import terms_for as short
from lessor.runner import attempt as attempt_module
from lessor.runner.desk import Plan
from lessor.runner.noting import NoteKind
from lessor.runner.progress import ProgressLimits
from lessor.runner.report import EventKind, read_report

QUICK_LOSS = replace(QUICK, lost_ms=1_000)
DIE = "echo half > half.txt; kill -KILL $$"
WAIT = 'echo half > half.txt; echo ready; touch "$LESSOR_OUTBOX/ready"; while :; do sleep 0.1; done'


def waits(shop):
    """A run whose agent has written half of its work and waits to be ended."""
    started = shop.start(WAIT)
    shop.await_note(NoteKind.STARTED)
    until(lambda: list(shop.state.glob("runs/*/outbox/ready")), "the agent is ready")
    return started


def test_a_killed_agent_costs_no_attempt_and_the_next_one_goes_on_where_it_was(shop):
    task = shop.add(max_attempts=1)
    agent = f'if [ "$LESSOR_EPOCH" = 1 ]; then {DIE}; else cat half.txt > rest.txt; fi'
    assert shop.run(agent) == 0
    assert shop.shown(task, "rest.txt") == "half"
    assert shop.shown(task, "half.txt") == "half"
    assert shop.ends(task) == ["gone", "completed"]
    assert shop.task(task).charged == 0
    (lease, _) = shop.lessor.leases.leases(task=task)
    assert "ECHILD" in lease.proof
    assert shop.notes.of(NoteKind.KILLED)
    assert shop.notes.of(NoteKind.ADOPTED)


def test_what_a_killed_agent_left_is_salvaged_before_anything_else(shop):
    task = shop.add()
    shop.run(f'if [ "$LESSOR_EPOCH" = 1 ]; then {DIE}; else rm half.txt; {ADD}; fi')
    (saved,) = [s for s in shop.lessor.salvages.of_task(task) if s.epoch == 1]
    assert git(shop.root, "show", f"{saved.ref}:half.txt") == "half"


def test_an_adopted_worktree_keeps_its_dependencies_and_runs_setup_once(shop):
    task = shop.add()
    count = shop.directory / "setups"
    agent = f'if [ "$LESSOR_EPOCH" = 1 ]; then {DIE}; else cp deps/made made.txt; fi'
    setup = f"mkdir -p deps; echo made > deps/made; pwd >> {count}"
    assert shop.run(agent, plan=Plan(setup=setup)) == 0
    assert shop.shown(task, "made.txt") == "made"
    assert len([line for line in count.read_text().splitlines() if "verify" not in line]) == 1


def test_a_setup_that_leaves_no_ignored_file_runs_once_too(shop):
    shop.add()
    count = shop.directory / "setups"
    agent = f'if [ "$LESSOR_EPOCH" = 1 ]; then {DIE}; else {ADD}; fi'
    shop.run(agent, plan=Plan(setup=f"pwd >> {count}"))
    assert len(count.read_text().splitlines()) == 1


def test_an_agent_that_always_dies_comes_to_an_end(shop, monkeypatch):
    monkeypatch.setattr(attempt_module, "MOST_CRASHES", 2)
    task = shop.add(max_attempts=1)
    assert shop.run(DIE) == 1
    assert shop.ends(task) == ["gone", "gone", "failed"]
    assert shop.task(task).state == "quarantined"
    assert "signal 9" in shop.task(task).last_error


def test_an_agent_that_exits_with_an_error_spends_an_attempt(shop):
    task = shop.add(max_attempts=2)
    code = shop.run('echo half > half.txt; echo "no such model"; exit 4')
    failed = shop.task(task)
    assert code == 1
    assert (failed.state, failed.charged) == ("quarantined", 2)
    assert "exited with 4" in failed.last_error
    assert "no such model" in failed.last_error
    assert shop.ends(task) == ["failed", "failed"]


def test_an_error_is_tried_again_after_a_delay_in_the_same_worktree(shop):
    task = shop.add(max_attempts=2)
    agent = 'if [ "$LESSOR_EPOCH" = 1 ]; then echo half > half.txt; exit 1; else cp half.txt rest.txt; fi'
    assert shop.run(agent) == 0
    assert shop.shown(task, "rest.txt") == "half"


def test_the_same_error_again_and_again_is_taken_out(shop):
    task = shop.add(max_attempts=10)
    shop.run("exit 3")
    assert shop.task(task).state == "quarantined"
    assert len(shop.ends(task)) == 3
    told = [n for n in shop.notes.all if n.kind in {NoteKind.FAILED, NoteKind.AGAIN}]
    assert [n.kind for n in told] == [
        *(NoteKind.FAILED, NoteKind.AGAIN, NoteKind.FAILED, NoteKind.AGAIN, NoteKind.FAILED)
    ]
    assert told[1].text == "in 0 s at the earliest"


def test_a_quiet_agent_is_warned_about_and_then_stopped(shop):
    task = shop.add(max_attempts=1)
    limits = ProgressLimits(quiet_ms=800, total_ms=60_000)
    assert shop.run("echo half > half.txt; exec sleep 600", limits=limits) == 1
    kinds = [note.kind for note in shop.notes.all]
    assert kinds.index(NoteKind.QUIET) < kinds.index(NoteKind.LIMIT) < kinds.index(NoteKind.FAILED)
    assert "quiet limit" in shop.task(task).last_error
    assert (shop.worktree(task) / "half.txt").read_text() == "half\n"


def test_an_agent_that_takes_too_long_is_stopped(shop):
    task = shop.add(max_attempts=1)
    limits = ProgressLimits(quiet_ms=1_500, total_ms=1_500)
    assert shop.run("while :; do echo still here; sleep 0.05; done", limits=limits) == 1
    assert "total limit" in shop.task(task).last_error


def test_an_agent_that_cant_be_started_fails_with_its_reason(shop):
    task = shop.add(max_attempts=1)
    command = str(shop.write("not-executable", "#!/bin/sh\n"))
    assert shop.run((command,)) == 1
    assert "Permission denied" in shop.task(task).last_error
    assert not shop.notes.of(NoteKind.LOST)


def test_a_program_that_isnt_there_is_refused_before_anything_is_claimed(shop):
    task = shop.add()
    with pytest.raises(AgentError, match="no-such-agent"):
        shop.run(("no-such-agent", "{prompt}"))
    assert shop.task(task).epoch == 0


def test_a_cancel_reaches_the_agent_is_acknowledged_and_its_work_is_kept(shop):
    task = shop.add()
    started = waits(shop)
    shop.connect().tasks.cancel([task], actor="dana", reason="not needed")
    assert started.result() == 0
    (lease,) = shop.lessor.leases.leases(task=task)
    assert lease.end == "cancelled"
    assert "acknowledged" in [entry.kind for entry in shop.lessor.tasks.history(task)]
    (saved,) = shop.lessor.salvages.of_task(task)
    assert git(shop.root, "show", f"{saved.ref}:half.txt") == "half"
    assert shop.notes.of(NoteKind.CANCELLED)


def test_a_lease_that_a_person_took_is_told_in_words(shop):
    task = shop.add()
    started = shop.start(f'if [ "$LESSOR_EPOCH" = 1 ]; then {WAIT}; else {ADD}; fi')
    shop.await_note(NoteKind.STARTED)
    until(lambda: list(shop.state.glob("runs/*/outbox/ready")), "the agent is ready")
    shop.connect().leases.force_release(task, actor="dana", reason="stuck", checked="looked")
    assert shop.await_note(NoteKind.LOST).text == "a person released it by force"
    assert started.result() == 0


def test_a_cancel_during_the_check_ends_it(shop):
    task = shop.add()
    flag = shop.directory / "checking"
    started = shop.start(plan=Plan(check=f"test ! -e 1.txt || {{ touch {flag}; sleep 600; }}"))
    until(flag.exists, "the check runs")
    shop.connect().tasks.cancel([task], actor="dana")
    assert started.result() == 0
    assert shop.task(task).state == "cancelled"


def test_a_cancel_during_the_setup_ends_it(shop):
    task = shop.add()
    flag = shop.directory / "setting-up"
    started = shop.start(plan=Plan(setup=f"touch {flag}; sleep 600"))
    until(flag.exists, "the setup runs")
    shop.connect().tasks.cancel([task], actor="dana")
    assert started.result() == 0
    assert shop.task(task).state == "cancelled"
    assert not shop.started_notes()


def test_asked_once_a_run_finishes_what_runs_and_claims_no_more(shop):
    first, second = shop.add("first"), shop.add("second")
    go = shop.directory / "go"
    started = shop.start(f"touch {go}.ready; while [ ! -e {go} ]; do sleep 0.05; done; {ADD}")
    until(go.with_name("go.ready").exists, "the agent works")
    shop.stopping.ask()
    go.touch()
    assert started.result() == 0
    assert shop.task(first).state == "succeeded"
    assert (shop.task(second).state, shop.task(second).epoch) == ("queued", 0)


def test_asked_twice_a_run_stops_its_agents_and_keeps_everything(shop):
    task = shop.add(max_attempts=1)
    started = waits(shop)
    shop.stopping.ask()
    shop.stopping.ask()
    assert started.result() == 75
    stopped = shop.task(task)
    assert (stopped.state, stopped.charged) == ("queued", 0)
    assert shop.ends(task) == ["released"]
    assert (shop.worktree(task) / "half.txt").read_text() == "half\n"
    (saved,) = shop.lessor.salvages.of_task(task)
    assert git(shop.root, "show", f"{saved.ref}:half.txt") == "half"


@pytest.mark.parametrize("where", ["setup", "check"])
def test_asked_twice_a_run_stops_its_commands_too(shop, where):
    task = shop.add()
    flag = shop.directory / "runs"
    text = f"test ! -e 1.txt || {{ touch {flag}; sleep 600; }}"
    plan = Plan(check=text) if where == "check" else Plan(setup=f"touch {flag}; sleep 600")
    started = shop.start(plan=plan)
    until(flag.exists, "the command runs")
    shop.stopping.ask()
    shop.stopping.ask()
    assert started.result() == 75
    assert (shop.task(task).state, shop.task(task).charged) == ("queued", 0)


def test_what_was_stopped_goes_on_in_the_next_run(shop):
    task = shop.add(max_attempts=1)
    started = waits(shop)
    shop.stopping.ask()
    shop.stopping.ask()
    started.result()
    shop.stopping.__init__()
    assert shop.run("cp half.txt rest.txt") == 0
    assert shop.shown(task, "rest.txt") == "half"


def test_a_killed_supervisor_proves_nothing_and_its_agent_is_ended(shop):
    """The agent's lease runs out by itself; then the work is salvaged, and another begins anew."""
    task = shop.add(max_attempts=2)
    daemon = "setsid sh -c 'sleep 600 & echo $! > \"$LESSOR_OUTBOX/daemon\"; wait' & "
    agent = f'if [ "$LESSOR_EPOCH" = 1 ]; then {daemon} {WAIT}; else {ADD}; fi'
    started = shop.start(agent, terms=short(4_000))
    note = shop.await_note(NoteKind.STARTED)
    until(lambda: list(shop.state.glob("runs/*/outbox/daemon")), "the agent has left a daemon")
    until(lambda: list(shop.state.glob("runs/*/outbox/ready")), "the agent is ready")
    shop.signal(note.supervisor, signal.SIGKILL)
    assert started.result() == 0
    assert shop.ends(task) == ["lapsed", "completed"]
    assert shop.notes.texts(NoteKind.LOST) == ["its supervisor died"]
    (daemon_pid,) = [int(p.read_text()) for p in shop.state.glob("runs/*/outbox/daemon")]
    assert not lives(daemon_pid)
    assert not shop.notes.of(NoteKind.ADOPTED)
    (saved,) = [s for s in shop.lessor.salvages.of_task(task) if s.epoch == 1]
    assert git(shop.root, "show", f"{saved.ref}:half.txt") == "half"
    with pytest.raises(AssertionError):
        shop.shown(task, "half.txt")


def test_a_supervisor_that_never_answers_again_is_given_up(shop):
    task = shop.add(max_attempts=2)
    patience = QUICK_LOSS
    agent = f'if [ "$LESSOR_EPOCH" = 1 ]; then {WAIT}; else {ADD}; fi'
    started = shop.start(agent, terms=short(3_000), patience=patience)
    note = shop.await_note(NoteKind.STARTED)
    until(lambda: list(shop.state.glob("runs/*/outbox/ready")), "the agent is ready")
    shop.signal(note.supervisor, signal.SIGSTOP)
    assert started.result() == 0
    assert shop.task(task).state == "succeeded"
    assert not lives(note.pid)


def test_an_agent_that_completes_by_itself_isnt_lost(shop):
    task = shop.add()
    agent = shop.python(
        "import os, pathlib, time\n"
        "from lessor.connect import connect\n"
        "from lessor.model.grant import Result\n"
        "from lessor.runner.lease_file import read_holder\n"
        "lessor = connect(os.environ['LESSOR_STORE'])\n"
        "lessor.leases.complete_one(read_holder(pathlib.Path(os.environ['LESSOR_LEASE_FILE'])), Result(said='mine'))\n"
        "lessor.close()\n"
        "time.sleep(600)\n"
    )
    assert shop.run(agent) == 0
    assert shop.task(task).state == "succeeded"
    assert not shop.notes.of(NoteKind.LOST)


RENEW = """
import os, pathlib, sys, time
from dataclasses import replace
from lessor.connect import connect
from lessor.runner.lease_file import read_holder, write_holder
lessor = connect(os.environ["LESSOR_STORE"])
path = pathlib.Path(os.environ["LESSOR_LEASE_FILE"])
holder = read_holder(path)
renewed = lessor.leases.renew_one(holder)
write_holder(path, replace(holder, version=renewed.version))
lessor.close()
pathlib.Path("1.txt").write_text("work")
time.sleep(int(sys.argv[1]))
"""


def test_an_agent_that_renews_by_itself_keeps_its_heartbeat(shop):
    """Its renewal makes a newer version of the lease, which the supervisor has to learn of."""
    task = shop.add()
    assert shop.run((*shop.python(RENEW), "4"), terms=short(3_000)) == 0
    assert shop.task(task).state == "succeeded"
    (report,) = shop.state.glob("runs/*/report-1.jsonl")
    kinds = [event.kind for event in read_report(str(report))]
    assert EventKind.RENEWED in kinds
    assert EventKind.LOST not in kinds


def test_an_agent_that_renewed_last_is_completed_for(shop):
    task = shop.add()
    assert shop.run((*shop.python(RENEW), "0")) == 0
    assert shop.task(task).state == "succeeded"


def test_a_closed_terminal_doesnt_end_a_run(shop):
    class ClosedTerminal:
        def note(self, note):
            raise BrokenPipeError

    task = shop.add()
    assert shop.run(reporter=ClosedTerminal()) == 0
    assert shop.task(task).state == "succeeded"


def test_no_thread_and_no_token_is_left(shop):
    shop.add()
    before = threading.active_count()
    shop.run()
    assert threading.active_count() == before
    assert not list((shop.state / "leases").iterdir())
