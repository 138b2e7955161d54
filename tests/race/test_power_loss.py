"""Power fails at any sync: nothing that a writer was told is lost, and the store goes on.

A file is cut as its disk may have been left. A server's crash keeps what it gave to the system, and
loses what it held back; that its own syncs reach the disk is the server's promise.
"""

from __future__ import annotations

import os
import pickle
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from random import Random

import psycopg
import pytest
from forking import Host
from judging import go_on, judge
from power import Image, believing, images
from recorded_disk import Step

from builders import StoreUnderTest
from lessor.clock import SystemClock
from lessor.errors import LessorError
from servers import kill_server, restart_server, start_server, stop_server

PROGRAM = Path(__file__).with_name("recorded_disk.py")
TURNS = int(os.environ.get("LESSOR_POWER_TURNS", "40"))
SHARE = float(os.environ.get("LESSOR_POWER_SHARE", "0.05"))
"""Which part of all cuts is tried."""
CRASHES = int(os.environ.get("LESSOR_POWER_CRASHES", "6"))
LATEST_MS = 1_500
ALL_OF_IT_S = 7_200
"""`make power` tries every cut."""
SEED = int(os.environ.get("LESSOR_POWER_SEED", "21"))


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[Step], bytes]:
    """The steps of a writer's work, and its journal."""
    folder = tmp_path_factory.mktemp("recorded")
    for part in ("store", "journals"):
        (folder / part).mkdir()
    subprocess.run([sys.executable, str(PROGRAM), str(folder), str(TURNS)], check=True, timeout=600)
    steps = [Step._make(step) for step in pickle.loads((folder / "steps").read_bytes())]
    return steps, (folder / "journals" / "writer").read_bytes()


def restored(image: Image, journal: bytes, folder: Path) -> tuple[StoreUnderTest, Path]:
    """The machine after the cut: its store, and what had been told."""
    store, journals = folder / "lessor.db", folder / "journals"
    journals.mkdir(parents=True)
    (journals / "writer").write_bytes(journal[: image.told])
    for name, content in image.files.items():
        (folder / name).write_bytes(content)
    (folder / "lessor.db.high-water").write_bytes(image.high)
    return StoreUnderTest("sqlite", f"sqlite://{store}", SystemClock()), journals


@pytest.mark.race
@pytest.mark.timeout(ALL_OF_IT_S)
def test_no_power_cut_loses_what_a_writer_was_told(
    recorded: tuple[list[Step], bytes], tmp_path: Path
) -> None:
    steps, journal = recorded
    rng, tried, told = Random(SEED), 0, set()
    for image in images(steps, rng, share=SHARE):
        store, journals = restored(image, journal, tmp_path / f"{image.step}-{image.how}")
        try:
            store.connect()
            told.add(len(judge(store, journals).calls))
            go_on(store, journals, turns=2)
            judge(store, journals)
        except (AssertionError, LessorError) as error:
            raise AssertionError(f"cut before step {image.step}, {image.how}: {error}") from error
        finally:
            store.close()
        tried += 1
    print(f"seed {SEED}: {tried} cuts in {len(steps)} steps")  # noqa: T201 - for `make power`
    assert tried > 20, "too few cuts were tried"
    assert len(told) > min(tried / 4, TURNS), "too few of them were within the work"
    assert "lessor.db" in {step.file for step in steps[len(steps) // 2 :]}, "no checkpoint was made"


@pytest.mark.race
def test_a_disk_that_syncs_nothing_is_found_out(
    recorded: tuple[list[Step], bytes], tmp_path: Path
) -> None:
    """Else the test above would pass whatever Lessor waits for."""
    steps, journal = recorded
    found = 0
    for number, image in enumerate(_last(believing(steps))):
        store, journals = restored(image, journal, tmp_path / str(number))
        try:
            store.connect()
            judge(store, journals)
        except (AssertionError, LessorError, KeyError):  # a whole repository may be missing
            found += 1
        finally:
            store.close()
    assert found


def _last(steps: list[Step]) -> Iterator[Image]:
    yield from (image for image in images(steps, Random(SEED)) if image.how != "everything")


@pytest.fixture
def hasty(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A server of its own that answers commits before they are on its disk, unless told otherwise."""
    folder = Path(tempfile.mkdtemp(prefix="lessor-hasty-"))
    url = start_server(folder)
    with psycopg.connect(url, autocommit=True) as db:
        db.execute("ALTER SYSTEM SET synchronous_commit = off")
        db.execute("ALTER SYSTEM SET wal_writer_delay = '10s'")
        db.execute("ALTER SYSTEM SET wal_writer_flush_after = '1GB'")
        db.execute("SELECT pg_reload_conf()")
    yield folder
    stop_server(folder)
    shutil.rmtree(folder, ignore_errors=True)


@pytest.mark.race
@pytest.mark.timeout(ALL_OF_IT_S)
def test_no_crash_of_a_hasty_server_loses_what_a_writer_was_told(
    hasty: Path, journals: Path
) -> None:
    store, rng = StoreUnderTest("postgres", start_server(hasty), SystemClock()), Random(SEED)
    try:
        with Host() as host:
            for number in range(CRASHES):
                writer = host.begin_one(store.url, journals / f"{number:03}")
                host.await_call(journals / f"{number:03}")
                SystemClock().wait(rng.randrange(100, LATEST_MS))
                kill_server(hasty)
                host.end_one(writer)
                store.close()
                restart_server(hasty)
                judge(store, journals)
        go_on(store, journals, turns=2)
        told = [call.op for call in judge(store, journals).calls if call.ok is not None]
        print(f"seed {SEED}: {CRASHES} crashes, {len(told)} answers kept")  # noqa: T201
        assert len(told) > 3 * CRASHES, "too little was told of"
    finally:
        store.close()


@pytest.mark.race
def test_a_crash_of_a_hasty_server_takes_back_what_nobody_waited_for(hasty: Path) -> None:
    """Else the test above would pass whatever Lessor waits for."""
    with psycopg.connect(start_server(hasty), autocommit=True) as db:
        db.execute("CREATE TABLE told (n bigint)")
        db.execute("CHECKPOINT")
        db.execute("INSERT INTO told VALUES (1)")
        kill_server(hasty)
    restart_server(hasty)
    with psycopg.connect(start_server(hasty)) as db:
        assert db.execute("SELECT n FROM told").fetchall() == []
