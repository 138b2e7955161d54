"""The same runs on a PostgreSQL store: the main job, and deaths that are proved."""

from __future__ import annotations

import signal
import sys
from pathlib import Path
from urllib.parse import quote, urlsplit, urlunsplit

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo
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


def test_an_agents_commits_go_through_the_gate(shop):
    task = shop.add()
    work = 'mkdir web; echo x > web/x; git add -A; git commit -qm "by hand" || exit 5'
    assert shop.run(work) == 0
    assert shop.messages(task)[0].count("Lessor-Label") == 1
    kinds = [entry.kind for entry in shop.lessor.tasks.history(task)]
    assert kinds.count("widened") == 1


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


def test_a_run_says_that_the_store_is_away_and_that_it_is_back(shop):
    runs = shop.connect()
    started = shop.start(workers=2, stay=True, lessor=runs)
    until(lambda: len(shop.lessor.registry.workers()) == 2, "both slots look for work")
    place = conninfo_to_dict(shop.url)
    name = str(place.pop("dbname"))
    with psycopg.connect(make_conninfo(**place, dbname="postgres"), autocommit=True) as db:
        away = psycopg.sql.SQL("ALTER DATABASE {} ALLOW_CONNECTIONS {}")
        db.execute(away.format(psycopg.sql.Identifier(name), psycopg.sql.SQL("false")))
        db.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", (name,)
        )
        shop.await_note(NoteKind.HELD)
        db.execute(away.format(psycopg.sql.Identifier(name), psycopg.sql.SQL("true")))
    shop.await_note(NoteKind.FOUND)
    shop.lessor.close()
    shop.lessor = shop.connect()
    task = shop.add()
    shop.await_note(NoteKind.CLAIMED)
    until(lambda: shop.task(task).state == "succeeded", "the task is done")
    shop.stopping.drain()
    assert started.result() == 0
    runs.close()
    (told,) = shop.notes.texts(NoteKind.HELD)
    assert told.startswith("nothing is claimed, asked again every 1 s for 2 m: ")
    assert "the store answers again" in shop.notes.texts(NoteKind.FOUND)


PASSWORD = "se:cr\\et@1"


@pytest.fixture
def secretive(make_store):
    """A store whose server wants a password of one login; its URL, with the password."""
    url = make_store("postgres", real_time=True).url
    with psycopg.connect(url, autocommit=True) as db:
        rules = Path(db.execute("SHOW hba_file").fetchone()[0])
        if not rules.is_file():
            pytest.skip("the server's rules of who may connect aren't on this machine")
        before = rules.read_text()
        db.execute("DROP ROLE IF EXISTS lessor_secretive")
        db.execute(
            psycopg.sql.SQL("CREATE ROLE lessor_secretive LOGIN SUPERUSER PASSWORD {}").format(
                PASSWORD
            )
        )
        who = "all lessor_secretive"
        own = f"local {who} scram-sha-256\nhost {who} all scram-sha-256\n"
        rules.write_text(own + before)
        db.execute("SELECT pg_reload_conf()")
        parts = urlsplit(url)
        hosts = parts.netloc.rpartition("@")[2]
        login = f"lessor_secretive:{quote(PASSWORD, safe='')}@{hosts}"
        yield f"postgresql://{login}{urlunsplit(parts._replace(scheme='', netloc=''))}"
        rules.write_text(before)
        db.execute("SELECT pg_reload_conf()")


def test_an_agent_is_told_the_store_without_its_password_and_its_commands_work(
    tmp_path, own_environment, secretive
):
    with pytest.raises(psycopg.OperationalError):
        psycopg.connect(secretive.replace(quote(PASSWORD, safe=""), "wrong"))
    shop = RunRig(tmp_path, url=secretive)
    task = shop.add()
    seen = shop.directory / "seen"
    agent = (
        f"env > {seen}.env; ls -l {shop.state}/leases > {seen}.ls; "
        f"{sys.executable} -m lessor why $LESSOR_TASK -o json > {seen}.why; {ADD}"
    )
    assert shop.run(agent, listen_dsn=secretive) == 0
    environment = Path(f"{seen}.env").read_text()
    assert "lessor_secretive@" in environment
    assert "LESSOR_LISTEN_DSN=" in environment
    assert PASSWORD not in environment
    assert quote(PASSWORD, safe="") not in environment
    assert '"state": "running"' in Path(f"{seen}.why").read_text()
    modes = [line.split()[0] for line in Path(f"{seen}.ls").read_text().splitlines()[1:]]
    assert modes == ["-rw-------"] * 3
    assert shop.task(task).state == "succeeded"
    assert not list((shop.state / "leases").iterdir())
    shop.close()
