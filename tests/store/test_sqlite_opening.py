"""Where a SQLite store may lie and what it may be: refused with what to do, and left as it was."""

from __future__ import annotations

import os
import random
import shutil
import stat
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import apsw
import pytest

from builders import MakeStore, StoreUnderTest, Yard
from lessor.connect import connect
from lessor.errors import (
    LessorError,
    StoreCorruptError,
    StoreError,
    StoreUnavailableError,
    StoreUnsupportedError,
)
from lessor.store.sqlite.place import NETWORK, check_place, file_system
from lessor.store.sqlite.store import SqliteStore

SEED = 20_261_129


@pytest.fixture
def used(make_store: MakeStore) -> StoreUnderTest:
    """A small store with some of everything in it, closed."""
    store = make_store("sqlite")
    yard = Yard(store, store.connect())
    for n in range(30):
        yard.add(f"task {n}", scopes=(f"d{n}", f"e{n}/*.py"), prompt="p" * 200)
    grants = yard.claim(wanted=12)
    for grant in grants[:6]:
        yard.complete(grant)
    store.close()
    return store


@contextmanager
def nothing_changes(folder: Path) -> Iterator[None]:
    """The files in `folder` are the same bytes afterwards; companions of the store may come."""
    before = {path: path.read_bytes() for path in folder.iterdir() if path.is_file()}
    yield
    for path, content in before.items():
        assert path.read_bytes() == content, path.name


def test_a_new_store_is_made_for_its_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "a" / "lessor.db"
    path.parent.mkdir()
    lessor = connect(f"sqlite://{path}")
    lessor.registry.add_repository("x")
    for file in path.parent.iterdir():
        assert stat.S_IMODE(file.stat().st_mode) == 0o600, file.name
    lessor.close()


def test_every_promise_is_switched_on(make_store: MakeStore) -> None:
    db = make_store("sqlite").connect().store._db
    found = {name: db.pragma(name) for name in ("journal_mode", "synchronous", "foreign_keys")}
    assert found == {"journal_mode": "wal", "synchronous": 2, "foreign_keys": 1}


@pytest.mark.parametrize("replaced", [False, True])
def test_nothing_is_granted_in_a_file_that_others_no_longer_find(
    make_store: MakeStore, tmp_path: Path, replaced: bool
) -> None:
    store = make_store("sqlite")
    yard = Yard(store, store.connect())
    yard.add(scopes=("a",))
    if replaced:
        copy = tmp_path / "copy.db"
        yard.lessor.store.backup(copy)
        copy.replace(store.path)
    else:
        store.path.unlink()
    for use in (yard.claim, yard.lessor.tasks.tasks, lambda: yard.add(scopes=("b",))):
        with pytest.raises(StoreUnavailableError, match="was moved or deleted while it was open"):
            use()


def test_a_directory_is_no_store(tmp_path: Path) -> None:
    with nothing_changes(tmp_path), pytest.raises(StoreUnsupportedError, match="is a directory"):
        connect(f"sqlite://{tmp_path}")


def test_a_device_is_no_store() -> None:
    with pytest.raises(StoreUnsupportedError, match="is a device"):
        connect("sqlite:///dev/null")


def test_a_path_through_a_file_is_no_store(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with nothing_changes(tmp_path), pytest.raises(StoreUnavailableError):
        connect(f"sqlite://{tmp_path}/file/lessor.db")


def test_a_path_that_is_too_long_is_no_store(tmp_path: Path) -> None:
    with pytest.raises(StoreUnavailableError):
        connect(f"sqlite://{tmp_path}/{'x' * 300}")


@pytest.mark.parametrize("application_id", [0, 77])
def test_another_programs_database_is_refused_and_left_as_it_was(
    tmp_path: Path, application_id: int
) -> None:
    path = tmp_path / "other.db"
    with apsw.Connection(str(path)) as db:
        db.execute("CREATE TABLE bill (id INTEGER); INSERT INTO bill VALUES (7)")
        db.execute(f"PRAGMA application_id={application_id}")
    db.close()
    with nothing_changes(tmp_path), pytest.raises(StoreCorruptError, match="another program"):
        connect(f"sqlite://{path}")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["other.db"]


def test_a_file_that_is_no_database_is_refused_and_left_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("remember the milk\n" * 100)
    with nothing_changes(tmp_path), pytest.raises(StoreCorruptError):
        connect(f"sqlite://{path}")


def test_an_empty_file_becomes_a_store(tmp_path: Path) -> None:
    path = tmp_path / "lessor.db"
    path.touch()
    connect(f"sqlite://{path}").close()
    connect(f"sqlite://{path}").close()


def test_a_store_cut_short_is_refused(used: StoreUnderTest) -> None:
    size = used.path.stat().st_size
    for kept in (size // 2, size - 4096, 4096, 100, 50):
        copy = used.path.with_name(f"cut-{kept}.db")
        copy.write_bytes(used.path.read_bytes()[:kept])
        with pytest.raises(StoreError):
            connect(f"sqlite://{copy}")


def test_flipped_bytes_are_told_or_harmless(used: StoreUnderTest) -> None:
    """Wherever a byte is wrong: a typed error, or everything works and nothing else has changed."""
    chance = random.Random(SEED)
    whole = used.path.read_bytes()
    outcomes = {"refused": 0, "harmless": 0}
    for turn in range(100):
        at = chance.randrange(len(whole))
        wrong = bytearray(whole)
        wrong[at] ^= 1 << chance.randrange(8)
        path = used.path.with_name(f"flipped-{turn}.db")
        path.write_bytes(wrong)
        outcome = "harmless"
        lessor = None
        try:
            lessor = connect(f"sqlite://{path}", clock=used.clock)
            _use(lessor)
        except LessorError:
            outcome = "refused"
        finally:
            if lessor is not None:
                lessor.close()
        outcomes[outcome] += 1
        for file in path.parent.glob(f"flipped-{turn}.db*"):
            file.unlink()
    assert outcomes["refused"], "else the bytes were all unused ones"
    assert outcomes["harmless"]


def test_a_text_that_is_no_text_is_told_as_damage(used: StoreUnderTest) -> None:
    used.sql("UPDATE submission SET title = CAST(x'EB28' AS TEXT) WHERE task_id = 3")
    with closing(used.connect()) as lessor, pytest.raises(StoreCorruptError):
        lessor.tasks.tasks(everywhere=True, most=1000)


def _use(lessor: object) -> None:
    from builders import Yard  # noqa: PLC0415
    from lessor.service.lessor import Lessor  # noqa: PLC0415

    assert isinstance(lessor, Lessor)
    repository = lessor.registry.repositories()[0]
    for task in lessor.tasks.tasks(repository=repository.id, most=1000):
        lessor.tasks.why(task.id)
        lessor.tasks.history(task.id)
    lessor.leases.leases()
    yard = Yard.__new__(Yard)
    yard.lessor = lessor
    yard.repository = repository
    yard.worker = lessor.registry.workers()[0]
    for grant in yard.claim(wanted=3):
        yard.complete(grant)
    lessor.leases.sweep()


def test_a_damaged_write_ahead_log_loses_its_tail_or_is_refused(make_store: MakeStore) -> None:
    """A log cut at any byte gives back a state that was committed, never half of one."""
    store = make_store("sqlite")
    lessor = store.connect()
    keeper = apsw.Connection(str(store.path))  # keeps the log from being merged at close
    keeper.execute("SELECT count(*) FROM task").fetchall()
    yard = Yard(store, lessor)
    for n in range(8):
        yard.add(f"task {n}")
    log = store.path.with_name("lessor.db-wal")
    whole, main = log.read_bytes(), store.path.read_bytes()
    chance = random.Random(SEED)
    for turn in range(30):
        path = store.path.with_name(f"torn-{turn}.db")
        path.write_bytes(main)
        path.with_name(path.name + "-wal").write_bytes(whole[: chance.randrange(len(whole))])
        again = connect(f"sqlite://{path}", clock=store.clock)
        titles = [task.title for task in again.tasks.tasks(everywhere=True)]
        assert titles == [f"task {n}" for n in reversed(range(len(titles)))]
        for title in titles:
            assert title
        again.close()
    keeper.close()


UNPRIVILEGED = """
import os, sys
from lessor.connect import connect
from lessor.errors import LessorError
connect(":memory:").registry.add_repository("x")  # everything is imported before it may not be
os.setgid(65534)
os.setuid(65534)
try:
    lessor = connect(sys.argv[1])
    lessor.registry.add_repository("github.com/acme/shop")
except LessorError as error:
    print(type(error).__name__, error)
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody who may not write")
@pytest.mark.parametrize("how", ["file", "folder", "absent"])
def test_what_may_not_be_written_is_unavailable(used: StoreUnderTest, how: str) -> None:
    folder = used.path.parent
    for parent in (folder, *folder.parents):
        if parent.owner() == "root" and parent != Path("/"):
            parent.chmod(parent.stat().st_mode | 0o055)
    used.path.chmod(0o444)
    folder.chmod(0o777 if how == "file" else 0o555)
    target = folder / ("new.db" if how == "absent" else "lessor.db")
    with nothing_changes(folder):
        done = subprocess.run(
            [sys.executable, "-c", UNPRIVILEGED, f"sqlite://{target}"],
            capture_output=True,
            text=True,
            check=True,
        )
    if how != "file":
        assert done.stdout.startswith("StoreUnavailableError"), done.stdout + done.stderr
    else:
        assert done.stdout.startswith(("StoreUnavailableError", "StoreError")), done.stdout
    assert "Check that" in done.stdout


def test_a_network_file_system_is_refused(tmp_path: Path) -> None:
    mounts = tmp_path / "mountinfo"
    share = tmp_path / "share ü"
    share.mkdir()
    shown = os.fsencode(share).replace(b" ", rb"\040")
    lines = b"22 1 0:21 / / rw - ext4 /dev/vda rw\n"
    for kind in sorted(NETWORK):
        mounts.write_bytes(
            lines + b"30 22 0:5 / %s rw shared:1 - %s host:/x rw\n" % (shown, kind.encode())
        )
        assert file_system(share, mounts=mounts) == kind
        with pytest.raises(StoreUnsupportedError) as refused:
            SqliteStore(str(share / "lessor.db"), mounts=mounts)
        assert refused.value.facts["file_system"] == kind
        assert "PostgreSQL" in refused.value.next_step
    assert list(share.iterdir()) == []
    (tmp_path / "beside").mkdir()
    check_place(tmp_path / "beside" / "lessor.db", mounts=mounts)


def test_a_link_to_a_network_file_system_is_seen_through(tmp_path: Path) -> None:
    share, home = tmp_path / "share", tmp_path / "home"
    share.mkdir()
    home.mkdir()
    mounts = tmp_path / "mountinfo"
    mounts.write_bytes(b"30 22 0:5 / %s rw - nfs4 host:/x rw\n" % os.fsencode(share))
    (home / "lessor.db").symlink_to(share / "lessor.db")
    with pytest.raises(StoreUnsupportedError):
        check_place(home / "lessor.db", mounts=mounts)


def test_odd_lists_of_mounts_dont_keep_a_store_from_opening(tmp_path: Path) -> None:
    mounts = tmp_path / "mountinfo"
    for text in (
        b"",
        b"nonsense\n",
        b"1 2 3 4 /\xff\xfe rw - ext4 x rw\n",
        b"a - b\n",
        b"\\777 - \n",
    ):
        mounts.write_bytes(text)
        assert file_system(tmp_path, mounts=mounts) == ""
    assert file_system(tmp_path, mounts=tmp_path / "absent") == ""
    mounts.write_bytes(
        b"1 1 0:1 / / rw - ext4 x rw\n2 1 0:2 / %s rw - nfs x rw\n" % os.fsencode(tmp_path / "sub")
    )
    assert file_system(tmp_path, mounts=mounts) == "ext4"
    assert file_system(tmp_path / "sub" / "deep", mounts=mounts) == "nfs"
    assert file_system(tmp_path / "subway", mounts=mounts) == "ext4"


FULL = textwrap.dedent(
    """
    import resource, signal, sys
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    sys.path.insert(0, sys.argv[2])
    from builders import StoreUnderTest, Yard
    from lessor.clock import ManualClock
    from lessor.errors import LessorError
    store = StoreUnderTest("sqlite", sys.argv[1], ManualClock())
    yard = Yard(store, store.connect())
    size = max(store.path.stat().st_size, store.path.with_name("lessor.db-wal").stat().st_size)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size + 200_000, resource.RLIM_INFINITY))
    acknowledged = []
    for n in range(500):
        try:
            yard.add(f"task {n}", prompt="p" * 2_000)
            acknowledged.append(n)
            if n % 3 == 0:
                yard.complete(yard.claim_one())
        except LessorError as error:
            refused = error
            break
    try:
        yard.lessor.tasks.tasks(repository=yard.repository.id, most=5)
        print("reads", flush=True)
    except LessorError as error:
        print("no reads", error)
    print(type(refused).__name__, len(acknowledged), flush=True)
    """
)


def test_a_full_disk_refuses_and_loses_nothing(tmp_path: Path) -> None:
    url = f"sqlite://{tmp_path}/lessor.db"
    done = subprocess.run(
        [sys.executable, "-c", FULL, url, str(Path(__file__).parents[1])],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout, done.stderr
    reads, outcome = done.stdout.splitlines()
    kind, acknowledged = outcome.split()
    assert (reads, kind) == ("reads", "StoreUnavailableError")
    lessor = connect(url)
    titles = {task.title for task in lessor.tasks.tasks(everywhere=True, most=1000)}
    assert {f"task {n}" for n in range(int(acknowledged))} <= titles
    assert lessor.store.check() == []
    lessor.tasks.cancel([lessor.tasks.tasks(everywhere=True, most=1)[0].id])
    lessor.close()


@contextmanager
def small_disk(small: Path, *, size: str) -> Iterator[None]:
    """A file system of its own at `small`."""
    small.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(small)],
        capture_output=True,
        check=False,
    )
    if mounted.returncode:
        pytest.skip("this machine lets nobody mount")
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", str(small)], check=True)


def test_a_store_in_a_directory_that_is_not_there_makes_nothing(tmp_path: Path) -> None:
    with pytest.raises(StoreUnavailableError, match="There is no directory"):
        connect(f"sqlite://{tmp_path}/mistyped/deep/lessor.db")
    assert not (tmp_path / "mistyped").exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting needs root")
def test_a_read_only_file_system_is_named(tmp_path: Path) -> None:
    small = tmp_path / "small"
    with small_disk(small, size="2m"):
        connect(f"sqlite://{small}/lessor.db").close()
        subprocess.run(["mount", "-o", "remount,ro", str(small)], check=True)
        for name in ("lessor.db", "new.db"):
            with pytest.raises(StoreUnavailableError, match=f"{name} is read-only: {small} takes"):
                connect(f"sqlite://{small}/{name}")


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting needs root")
def test_a_full_file_system_refuses_and_loses_nothing(tmp_path: Path) -> None:
    small = tmp_path / "small"
    with small_disk(small, size="900k"):
        _fill(small)


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting needs root")
@pytest.mark.parametrize("free_kb", [0, 4, 8, 12, 16, 40, 100, 250])
def test_a_store_that_has_no_room_to_be_made_names_the_full_file_system(
    tmp_path: Path, free_kb: int
) -> None:
    """Also where SQLite says "disk I/O error": of its shared memory it does."""
    small = tmp_path / "small"
    with small_disk(small, size="512k"):
        (small / "store").mkdir()
        fill = small / "fill"
        fill.write_bytes(b"x" * (512 - free_kb) * 1024)

        def make() -> None:
            connect(f"sqlite://{small}/store/lessor.db").registry.add_repository("shop")

        with pytest.raises(StoreUnavailableError, match="The disk is full") as refused:
            make()
        assert refused.value.facts["mount"] == str(small)
        assert f"Free some space on {small}" in refused.value.next_step
        fill.unlink()
        lessor = connect(f"sqlite://{small}/store/lessor.db")
        lessor.registry.add_repository("shop")
        assert lessor.store.check() == []
        lessor.close()


def _fill(small: Path) -> None:
    lessor = connect(f"sqlite://{small}/lessor.db")
    store = StoreUnderTest("sqlite", f"sqlite://{small}/lessor.db", lessor.store.clock)
    yard = Yard(store, lessor)
    kept = []
    refused: LessorError | None = None
    while refused is None:
        try:
            kept.append(yard.add(f"task {len(kept)}", prompt="p" * 3_000).task)
        except LessorError as error:
            refused = error
    assert refused.code == "store_unavailable"
    assert "full" in str(refused)
    assert yard.lessor.tasks.task(kept[-1]).number == len(kept)
    for file in small.glob("*.tmp"):
        file.unlink()
    subprocess.run(["mount", "-o", "remount,size=4m", str(small)], check=True)
    assert yard.claim_one().task == kept[0]
    assert yard.lessor.store.check() == []
    lessor.close()
    store.close()


def test_a_companion_that_cant_be_made_is_a_typed_error(tmp_path: Path) -> None:
    for companion in ("lessor.db.lock", "lessor.db.high-water"):
        folder = tmp_path / companion
        (folder / companion).mkdir(parents=True)
        with pytest.raises(StoreUnavailableError, match=companion.rpartition(".")[2]):
            connect(f"sqlite://{folder}/lessor.db")


def test_a_backup_is_a_store_of_its_own(used: StoreUnderTest, tmp_path: Path) -> None:
    lessor = used.connect()
    target = tmp_path / "backup.db"
    lessor.store.backup(target)
    with pytest.raises(StoreError):
        lessor.store.backup(target)
    again = connect(f"sqlite://{target}", clock=used.clock)
    assert len(again.tasks.tasks(everywhere=True, most=1000)) == 30
    assert again.store.check() == []
    again.close()


def test_a_closed_store_answers_with_a_typed_error(store: StoreUnderTest) -> None:
    lessor = store.connect()
    lessor.close()
    for use in (
        lessor.registry.repositories,
        lambda: lessor.registry.add_repository("x"),
        lessor.now_ms,
    ):
        with pytest.raises(StoreError):
            use()
    lessor.close()


def test_a_store_goes_on_after_its_file_was_copied_away(
    used: StoreUnderTest, tmp_path: Path
) -> None:
    lessor = used.connect()
    shutil.copy(used.path, tmp_path / "copy.db")
    assert len(lessor.tasks.tasks(everywhere=True, most=1000)) == 30
