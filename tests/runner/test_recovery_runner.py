"""A runner that dies: its supervisor ends the agent and proves it, the next run goes on."""

from __future__ import annotations

import json
import os
import signal

from run_rig import ADD, git
from supervisor_rig import lives, until

from lessor.ids import new_request_id, new_token
from lessor.model.grant import ClaimRequest
from lessor.model.lease import HEARTBEAT_TERMS
from lessor.model.worker import NewWorker
from lessor.runner.lease_file import lease_file, write_holder
from lessor.runner.noting import NoteKind
from lessor.runner.recovering import recover

WAIT = (
    'echo half > half.txt; mkdir -p deps; echo made > deps/made; touch "$LESSOR_OUTBOX/ready"; '
    "while :; do sleep 0.1; done"
)
FIRST = f'if [ "$LESSOR_EPOCH" = 1 ]; then {WAIT}; else cp half.txt rest.txt; fi'


def spawned_and_killed(shop, agent=FIRST, **config):
    """A run in a process of its own, killed once its agent has written half of its work."""
    run = shop.spawn(agent, **config)
    note = run.await_note(NoteKind.STARTED)
    until(lambda: list(shop.state.glob("runs/*/outbox/ready")), "the agent is ready")
    run.process.send_signal(signal.SIGKILL)
    run.process.wait()
    return note


def test_the_lease_of_a_killed_runner_ends_at_once_by_its_supervisors_proof(shop):
    task = shop.add(max_attempts=1)
    note = spawned_and_killed(shop)
    until(lambda: shop.ends(task) == ["gone"], "the proof is recorded")
    assert not lives(note["pid"])
    until(lambda: not lives(note["supervisor"]), "the supervisor ends")
    assert (shop.task(task).state, shop.task(task).charged) == ("queued", 0)
    (lease,) = shop.lessor.leases.leases(task=task)
    assert lease.ended_ms < lease.expires_ms
    assert "ECHILD" in lease.proof


def test_the_next_run_adopts_the_worktree_and_goes_on(shop):
    task = shop.add(max_attempts=1)
    spawned_and_killed(shop)
    until(lambda: shop.ends(task) == ["gone"], "the proof is recorded")
    assert shop.run(FIRST) == 0
    assert shop.shown(task, "rest.txt") == "half"
    assert shop.notes.of(NoteKind.ADOPTED)
    assert (shop.worktree(task) / "deps" / "made").exists()
    (saved,) = [s for s in shop.lessor.salvages.of_task(task) if s.epoch == 1 and s.ref]
    assert git(shop.root, "show", f"{saved.ref}:half.txt") == "half"


def test_the_workers_of_a_dead_run_are_retired(shop):
    """Else a task would seem to have somebody who could do it."""
    task = shop.add()
    spawned_and_killed(shop)
    until(lambda: shop.ends(task) == ["gone"], "the proof is recorded")
    by_hand = shop.lessor.registry.add_worker(NewWorker(agent="dana", host_id=shop.host.id))
    recover(shop.desk())
    assert [w.id for w in shop.lessor.registry.workers(host_id=shop.host.id)] == [by_hand.id]


def test_a_run_removes_tokens_that_are_left_of_leases_that_are_over(shop):
    """Killed before it had a workspace, a run leaves nothing else to find it by."""
    shop.add()
    shop.add("another")
    worker = shop.lessor.registry.add_worker(NewWorker(agent="dana"))
    over, lives_on = shop.lessor.leases.claim(
        ClaimRequest(
            worker=worker.id,
            request_id=new_request_id(),
            secret=new_token(),
            repository=shop.repository,
            wanted=2,
        )
    )
    shop.lessor.leases.release(over.holder)
    desk = shop.desk()
    for grant in (over, lives_on):
        write_holder(lease_file(desk.tokens_dir, grant.lease), grant.holder)
        os.utime(lease_file(desk.tokens_dir, grant.lease), (0, 0))
    recover(desk)
    assert not lease_file(desk.tokens_dir, over.lease).exists()
    assert lease_file(desk.tokens_dir, lives_on.lease).exists()


def test_a_run_that_starts_at_once_waits_for_the_proof(shop):
    task = shop.add(max_attempts=1)
    spawned_and_killed(shop)
    assert shop.run(FIRST) == 0
    assert shop.ends(task) == ["gone", "completed"]
    assert shop.shown(task, "rest.txt") == "half"


def test_after_a_reboot_the_next_run_goes_on_at_once(shop):
    """Runner and supervisor die together, as with the machine; their boot is over."""
    task = shop.add(max_attempts=1)
    run = shop.spawn(FIRST)
    note = run.await_note(NoteKind.STARTED)
    until(lambda: list(shop.state.glob("runs/*/outbox/ready")), "the agent is ready")
    for pid in (note["supervisor"], run.pid, note["pid"]):
        shop.signal(pid, signal.SIGSTOP)
    for pid in (note["supervisor"], run.pid, note["pid"]):
        shop.signal(pid, signal.SIGKILL)
    run.process.wait()
    (report,) = shop.state.glob("runs/*/report-1.jsonl")
    report.write_text(report.read_text().replace(shop.host.boot_id, "boot-of-before"))
    assert shop.run(FIRST) == 0
    assert shop.ends(task) == ["gone", "completed"]
    assert shop.shown(task, "rest.txt") == "half"
    (found,) = shop.notes.of(NoteKind.FOUND)
    assert "booted again" in found.text
    assert shop.notes.of(NoteKind.ADOPTED)


def test_without_a_reboot_a_dead_supervisor_proves_nothing(shop):
    task = shop.add(max_attempts=2)
    run = shop.spawn(FIRST, ttl_ms=4_000)
    note = run.await_note(NoteKind.STARTED)
    until(lambda: list(shop.state.glob("runs/*/outbox/ready")), "the agent is ready")
    for pid in (note["supervisor"], run.pid):
        shop.signal(pid, signal.SIGSTOP)
    for pid in (note["supervisor"], run.pid):
        shop.signal(pid, signal.SIGKILL)
    run.process.wait()
    agent = f'if [ "$LESSOR_EPOCH" = 1 ]; then {WAIT}; else {ADD}; fi'
    assert shop.run(agent) == 0
    assert shop.ends(task) == ["lapsed", "completed"]
    assert not shop.notes.of(NoteKind.ADOPTED)
    (saved,) = [s for s in shop.lessor.salvages.of_task(task) if s.epoch == 1 and s.ref]
    assert git(shop.root, "show", f"{saved.ref}:half.txt") == "half"


def test_a_runner_that_died_before_it_started_anything_is_proved_gone(shop):
    """The claim was answered, and then the power went: nobody has to wait for the lease's end."""
    dead = shop.spawn("true")
    dead.result()
    task = shop.add(max_attempts=1)
    worker = shop.lessor.registry.add_worker(
        NewWorker(
            agent="claude",
            host_id=shop.host.id,
            boot_id=shop.host.boot_id,
            pid=dead.pid,
            pid_namespace=shop.host.pid_namespace,
            start_ticks=1,
            heartbeat=True,
        )
    )
    grant = claim(shop, worker.id)
    write_holder(lease_file(shop.state / "leases", grant.lease), grant.holder)
    assert recover(shop.desk()) == 1
    assert shop.ends(task) == ["gone"]
    assert not list((shop.state / "leases").iterdir())


def test_a_lease_that_somebody_took_by_hand_is_left_alone(shop):
    task = shop.add()
    worker = shop.lessor.registry.add_worker(NewWorker(agent="dana", host_id=shop.host.id))
    claim(shop, worker.id)
    assert recover(shop.desk()) == 0
    assert shop.ends(task) == ["None"]


def test_a_run_leaves_the_leases_of_another_living_run_alone(shop):
    task = shop.add()
    other = shop.spawn(WAIT)
    note = other.await_note(NoteKind.STARTED)
    assert shop.run() == 0
    assert shop.ends(task) == ["None"]
    assert lives(note["pid"])
    assert not shop.notes.of(NoteKind.FOUND)


def test_a_setup_that_outlived_its_runner_keeps_the_worktree_from_being_adopted(shop):
    task = shop.add(max_attempts=2)
    flag = shop.directory / "setting-up"
    setup = f"test -e {flag} || {{ touch {flag}; exec sleep 600; }}"
    run = shop.spawn(ADD, plan={"setup": setup}, ttl_ms=4_000)
    until(flag.exists, "the setup runs")
    run.process.send_signal(signal.SIGKILL)
    run.process.wait()
    assert shop.run(ADD) == 0
    assert shop.ends(task) == ["lapsed", "completed"]
    assert not shop.notes.of(NoteKind.ADOPTED)


def test_a_second_run_on_a_repository_doesnt_wait_for_the_firsts_check(shop):
    shop.add("first")
    flag, go = shop.directory / "checking", shop.directory / "go"
    check = f"test ! -e 1.txt || {{ touch {flag}; while [ ! -e {go} ]; do sleep 0.05; done; }}"
    first = shop.spawn(ADD, plan={"check": check})
    until(flag.exists, "the first run checks")
    second = shop.add("second")
    other = shop.spawn(ADD, plan={"check": check}, name="codex")
    assert other.result() == 0
    assert shop.task(second).stage == "verified"
    go.touch()
    assert first.result() == 0
    assert sorted(p.name for p in shop.state.glob("worktrees/*/verify-?")) == [
        "verify-1",
        "verify-2",
    ]


def test_sigterm_drains_and_a_second_one_stops(shop):
    task = shop.add()
    run = shop.spawn(WAIT)
    run.await_note(NoteKind.STARTED)
    run.process.send_signal(signal.SIGTERM)
    run.process.send_signal(signal.SIGHUP)
    assert run.result() == 75
    assert (shop.task(task).state, shop.ends(task)) == ("queued", ["released"])


def test_a_terminal_that_hangs_up_drains(shop):
    task = shop.add()
    go = shop.directory / "go"
    run = shop.spawn(f"while [ ! -e {go} ]; do sleep 0.05; done; {ADD}")
    run.await_note(NoteKind.STARTED)
    run.process.send_signal(signal.SIGHUP)
    go.touch()
    assert run.result() == 0
    assert shop.task(task).state == "succeeded"


def claim(shop, worker):
    (grant,) = shop.lessor.leases.claim(
        ClaimRequest(
            worker=worker,
            request_id=new_request_id(),
            secret=new_token(),
            repository=shop.repository,
            ttl_ms=HEARTBEAT_TERMS.ttl_ms,
        )
    )
    return grant


def test_a_report_that_breaks_off_proves_nothing(shop):
    """Half a line is what a power cut leaves of the last event."""
    task = shop.add()
    run_dir = shop.state / "runs" / "lease"
    run_dir.mkdir(parents=True)
    (run_dir / "report-1.jsonl").write_text(json.dumps({"event": "gone", "at_ms": 1})[:-3])
    assert recover(shop.desk()) == 0
    assert shop.task(task).state == "queued"
