"""When this machine or the store stands in the way: said, nothing lost, no attempt spent."""

from __future__ import annotations

import shutil
import subprocess
import sys

import apsw
import pytest
from run_rig import ADD
from supervisor_rig import until

from lessor.clock import SystemClock
from lessor.errors import HostError
from lessor.model.lease import terms_for
from lessor.runner.desk import Plan
from lessor.runner.noting import NoteKind
from lessor.runner.report import EventKind, read_report
from lessor.store.sqlite import opening

WAIT = "echo half > half.txt; touch {ready}; while [ ! -e {go} ]; do sleep 0.05; done; {then}"


def namespaces_work() -> bool:
    if shutil.which("unshare") is None:
        return False
    asked = ["unshare", "-rm", "mount", "-t", "tmpfs", "none", "/mnt"]
    return subprocess.run(asked, capture_output=True, check=False).returncode == 0


@pytest.mark.parametrize("place", ["runs", "leases", "worktrees"])
def test_a_directory_that_cant_be_used_ends_the_run_and_spends_nothing(shop, place):
    task = shop.add(max_attempts=1)
    (shop.state / place).write_text("not a directory")
    with pytest.raises(HostError) as refused:
        shop.run()
    assert refused.value.exit_code == 75
    assert str(shop.state) in str(refused.value)
    assert (shop.task(task).state, shop.task(task).charged) == ("queued", 0)
    (shop.state / place).unlink()
    assert shop.run() == 0


def test_a_directory_for_the_base_that_cant_be_used_ends_the_run_before_a_claim(shop):
    task = shop.add()
    (shop.state / "baselines").write_text("not a directory")
    with pytest.raises(HostError):
        shop.run(plan=Plan(check="true"))
    assert shop.task(task).epoch == 0


def test_what_cant_be_salvaged_stays_where_it_is_and_the_run_goes_on(shop):
    """Ignored files go to an archive, and that can't be written."""
    task = shop.add(max_attempts=1)
    (shop.state / "salvage").write_text("not a directory")
    assert shop.run("echo mine > mine.log; echo half > half.txt; exit 1") == 1
    assert (shop.worktree(task) / "mine.log").read_text() == "mine\n"
    (kept,) = shop.lessor.workspaces.of_task(task)
    assert kept.state == "quarantined"
    assert any("stays as it is" in text for text in shop.notes.texts(NoteKind.KEPT))


def on_a_small_disk(shop, *, size: str, first: str = "") -> tuple[str, ...]:
    """A command that runs another one where `small` is a disk of its own."""
    small = shop.directory / "small"
    small.mkdir()
    text = f'mount -t tmpfs -o size={size} none {small} && {{ {first or "true"}; exec "$@"; }}'
    return ("unshare", "-rm", "sh", "-c", text, "sh")


def spawned_on_a_small_disk(shop, agent, *, plan=None, **how):
    before = on_a_small_disk(shop, **how)
    return shop.spawn(
        agent,
        state=str(shop.directory / "small"),
        host_state=str(shop.state),
        before=before,
        plan=plan or {},
        ttl_ms=3_000,
        lost_ms=1_000,
    )


@pytest.mark.skipif(not namespaces_work(), reason="needs a mount namespace of its own")
def test_a_full_disk_ends_the_run_with_its_reason_and_spends_nothing(shop):
    task = shop.add(max_attempts=1)
    fill = f"dd if=/dev/zero of={shop.directory}/small/fill bs=1k 2>/dev/null"
    run = spawned_on_a_small_disk(shop, ADD, size="1m", first=fill)
    assert run.result() == 75
    said = run.output.read_text()
    assert "host: " in said
    assert "No space left" in said
    assert "Traceback" not in said
    assert (shop.task(task).state, shop.task(task).charged) == ("queued", 0)


@pytest.mark.skipif(not namespaces_work(), reason="needs a mount namespace of its own")
@pytest.mark.parametrize("large", ["data.bin", ".env"])
def test_a_disk_without_room_for_a_worktree_ends_the_run_and_spends_nothing(shop, large):
    """Git's checkout, or the copy of an ignored file: what is half made is taken away, and there is room."""
    shop.write(large, "x" * 4_000_000)
    shop.write(".gitignore", ".env\n")
    shop.commit("more")
    task = shop.add(max_attempts=1)
    run = spawned_on_a_small_disk(shop, ADD, size="2m", plan={"bring": [".env"]})
    assert run.result() == 75
    assert "host: " in run.output.read_text()
    assert (shop.task(task).state, shop.task(task).charged) == ("queued", 0)


@pytest.mark.skipif(not namespaces_work(), reason="needs a mount namespace of its own")
def test_an_agent_that_fills_the_disk_loses_nothing_that_it_committed(shop):
    task = shop.add(max_attempts=1)
    agent = (
        "echo half > half.txt; git add half.txt; git commit -qm half; "
        'dd if=/dev/zero of="$LESSOR_OUTBOX/fill" bs=1k 2>/dev/null; true'
    )
    run = spawned_on_a_small_disk(shop, agent, size="1m")
    assert run.result() in {0, 7, 75}
    assert "Traceback" not in run.output.read_text()
    assert shop.shown(task, "half.txt") == "half"


@pytest.fixture
def impatient(shop, monkeypatch):
    """The store, opened so that it waits for a lock only shortly."""
    monkeypatch.setattr(opening, "BUSY_MS", 300)
    opened = shop.connect()
    yield opened
    opened.close()


def test_a_store_that_doesnt_answer_for_a_while_costs_nothing(shop, impatient):
    task = shop.add(max_attempts=1)
    go, ready = shop.directory / "go", shop.directory / "ready"
    started = shop.start(WAIT.format(ready=ready, go=go, then="true"), lessor=impatient)
    until(ready.exists, "the agent works")
    other = apsw.Connection(str(shop.state / "lessor.db"))
    other.set_busy_timeout(10_000)
    other.execute("BEGIN IMMEDIATE")
    go.touch()
    shop.await_note(NoteKind.ENDED)
    SystemClock().wait(1_000)
    other.execute("ROLLBACK")
    other.close()
    assert started.result() == 0
    assert shop.ends(task) == ["completed"]


def test_a_store_that_never_answers_again_loses_the_lease_and_not_the_work(shop, impatient):
    task = shop.add(max_attempts=1)
    go, ready = shop.directory / "go", shop.directory / "ready"
    started = shop.start(
        WAIT.format(ready=ready, go=go, then="true"),
        terms=terms_for(3_000),
        lessor=impatient,
    )
    until(ready.exists, "the agent works")
    other = apsw.Connection(str(shop.state / "lessor.db"))
    other.set_busy_timeout(10_000)
    other.execute("BEGIN IMMEDIATE")
    shop.await_note(NoteKind.LOST)
    shop.stopping.ask()
    other.execute("ROLLBACK")
    other.close()
    assert started.result() == 7
    assert (shop.worktree(task) / "half.txt").read_text() == "half\n"


def test_a_report_that_couldnt_be_written_is_written_later(tmp_path):
    """The disk was full: nobody else will ever tell of the agent's end."""
    path = tmp_path / "report.jsonl"
    script = (
        "import resource, sys\n"
        "from lessor.clock import SystemClock\n"
        "from lessor.runner.report import EventKind, ReportWriter\n"
        "writer = ReportWriter(sys.argv[1], SystemClock())\n"
        "soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))\n"
        "writer.append(EventKind.GONE, proof='it is gone')\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))\n"
        "writer.flush()\n"
    )
    subprocess.run([sys.executable, "-c", script, str(path)], check=True)
    (event,) = read_report(str(path))
    assert event.kind is EventKind.GONE
    assert event.facts["proof"] == "it is gone"
