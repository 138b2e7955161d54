"""The same runs on a PostgreSQL store: the main job, and deaths that are proved."""

from __future__ import annotations

import signal

import pytest
from run_rig import ADD, RunRig
from supervisor_rig import until

from lessor.runner.desk import Plan
from lessor.runner.noting import NoteKind

WAIT = 'echo half > half.txt; touch "$LESSOR_OUTBOX/ready"; while :; do sleep 0.1; done'


@pytest.fixture
def shop(tmp_path, own_environment, make_store):
    made = RunRig(tmp_path, url=make_store("postgres", real_time=True).url)
    yield made
    made.close()


def test_slots_take_tasks_and_verify_their_results(shop):
    tasks = [shop.add(f"task {n}") for n in range(4)]
    assert shop.run(plan=Plan(check="test -e README"), workers=2) == 0
    assert {shop.task(task).stage for task in tasks} == {"verified"}


def test_a_killed_agents_work_goes_on_in_the_same_worktree(shop):
    task = shop.add(max_attempts=1)
    agent = f'if [ "$LESSOR_EPOCH" = 1 ]; then echo half > half.txt; kill -KILL $$; else {ADD}; fi'
    assert shop.run(agent) == 0
    assert shop.ends(task) == ["gone", "completed"]
    assert shop.shown(task, "half.txt") == "half"


def test_a_cancel_reaches_a_working_agent(shop):
    task = shop.add()
    started = shop.start(WAIT)
    until(lambda: list(shop.state.glob("runs/*/outbox/ready")), "the agent is ready")
    other = shop.connect()
    other.tasks.cancel([task], actor="dana")
    other.close()
    assert started.result() == 0
    assert shop.task(task).state == "cancelled"


def test_a_killed_runners_lease_ends_by_its_supervisors_proof(shop):
    task = shop.add(max_attempts=1)
    run = shop.spawn(WAIT)
    run.await_note(NoteKind.STARTED)
    until(lambda: list(shop.state.glob("runs/*/outbox/ready")), "the agent is ready")
    run.process.send_signal(signal.SIGKILL)
    until(lambda: shop.ends(task) == ["gone"], "the proof is recorded")
    assert shop.run("cp half.txt rest.txt") == 0
    assert shop.shown(task, "rest.txt") == "half"
