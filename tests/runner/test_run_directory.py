"""The directory of a run is its agent's to write: what it puts there costs it its own result at most."""

from __future__ import annotations

import pytest
from run_rig import ADD

from lessor.runner.desk import Plan
from lessor.runner.noting import NoteKind

RUN = 'run=$(dirname "$LESSOR_BRIEF")'
ENDINGS = (".spec", ".stderr")
PUT = {
    "a directory for a question": 'mkdir -p "$LESSOR_OUTBOX/question/inside"',
    "a file for the outbox": 'rm -rf "$LESSOR_OUTBOX"; echo x > "$LESSOR_OUTBOX"',
    "a link for the outbox": 'rm -rf "$LESSOR_OUTBOX"; ln -s /nowhere "$LESSOR_OUTBOX"',
    "a directory for the brief": 'rm "$LESSOR_BRIEF"; mkdir "$LESSOR_BRIEF"',
    "a pipe for the brief": 'rm "$LESSOR_BRIEF"; mkfifo "$LESSOR_BRIEF"',
    "a link for the scope": 'rm "$LESSOR_SCOPE_FILE"; ln -s "{victim}" "$LESSOR_SCOPE_FILE"',
}


@pytest.mark.parametrize("what", PUT)
def test_the_next_round_begins_all_the_same(shop, what: str) -> None:
    victim = shop.write("../victim", "somebody's\n")
    task = shop.add(scopes=("1.txt",))
    agent = f'test "$LESSOR_ROUND" = 1 && {{ {PUT[what].format(victim=victim)}; }}; {ADD}'
    started = shop.start(
        agent, plan=Plan(check="test ! -e 1.txt || test $(wc -l < 1.txt) = 2"), rounds=2
    )
    assert started.result() == 0
    assert shop.task(task).stage == "verified"
    assert victim.read_text() == "somebody's\n"


@pytest.mark.parametrize(
    "name", ["check.log", "agent.log", *(f"report-2.jsonl{x}" for x in ENDINGS)]
)
def test_a_pipe_in_the_place_of_a_log_costs_this_task_its_attempt_and_nobody_else(
    shop, name: str
) -> None:
    task = shop.add(max_attempts=1)
    agent = f'{RUN}; rm -f "$run/{name}"; mkfifo "$run/{name}"; {ADD}'
    started = shop.start(agent, plan=Plan(check="test ! -e 1.txt"), rounds=2)
    assert started.result() == 1
    assert shop.task(task).state == "quarantined"
    assert name.partition(".")[0] in shop.task(task).last_error


def test_a_pipe_in_the_place_of_a_report_is_read_by_nobody(shop) -> None:
    """What a supervisor can't tell, nobody knows: the lease runs out by itself."""
    shop.add(max_attempts=1)
    agent = f'{RUN}; mkfifo "$run/report-2.jsonl"; {ADD}'
    started = shop.start(agent, plan=Plan(check="test ! -e 1.txt"), rounds=2)
    shop.await_note(NoteKind.LOST)
    for _ in range(2):
        shop.stopping.ask()
    started.result()
