"""doctor, backup and restore."""

from __future__ import annotations

import os
import re
import stat
import subprocess
from pathlib import Path

import pytest
from person import Person, names


def test_doctor_finds_nothing_bad_on_a_fresh_machine(person: Person) -> None:
    found = {f["what"]: f for f in person.ok("doctor", "-o", "json").json}
    assert {
        "store",
        "schema",
        "integrity",
        "clock",
        "git",
        "subreaper",
        "state",
        "tokens",
        "disk",
    } <= set(found)
    assert all(f["grade"] in {"ok", "weaker"} for f in found.values())
    assert person.ok("doctor").lines[-1] == "next  lessor"


def test_doctor_says_how_large_the_store_is_and_what_is_free_beside_it(person: Person) -> None:
    person.add("a")
    found = {f["what"]: f for f in person.ok("doctor", "-o", "json").json}
    assert found["store"]["sentence"].startswith(f"{person.store}, from ")
    taken = r"the store takes \d+(\.\d)? [kMG]B; [\d.]+ [kMG]B free on /"
    assert re.match(taken, found["size"]["sentence"])


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting needs root")
@pytest.mark.parametrize(
    ("size", "grade", "said"),
    [("100m", "weaker", "less than the 256.0 MB"), ("8m", "bad", "will be refused soon")],
)
def test_doctor_warns_of_a_store_with_little_room(
    person: Person, tmp_path: Path, size: str, grade: str, said: str
) -> None:
    small = tmp_path / "small"
    small.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(small)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("this machine lets nobody mount")
    try:
        asked = person.run("doctor", "--store", f"sqlite://{small}/lessor.db", "-o", "json")
    finally:
        subprocess.run(["umount", "-l", str(small)], check=True)
    found = {f["what"]: f for f in asked.json}
    assert found["size"]["grade"] == grade
    assert said in found["size"]["sentence"]
    assert f"free on {small}" in found["size"]["sentence"]
    assert asked.code == (1 if grade == "bad" else 0)


def test_doctor_works_outside_a_repository(outside: Person) -> None:
    assert outside.run("doctor").code == 0


def test_doctor_says_what_is_bad_and_exits_with_1(person: Person) -> None:
    person.ok("hold", "web")
    person.state.chmod(0o755)
    (token,) = (person.state / "leases").iterdir()
    token.chmod(0o644)
    sick = person.run("doctor", "-o", "json")
    assert sick.code == 1
    bad = {f["what"]: f["sentence"] for f in sick.json if f["grade"] == "bad"}
    assert bad == {
        "state": f"others can look into {person.state}: chmod 700 {person.state}",
        "tokens": f"others can read {token.name}: chmod 600 {person.state}/leases/*",
    }


def test_doctor_tells_of_a_store_that_cant_be_opened(person: Person, tmp_path: Path) -> None:
    sick = person.run("doctor", "--store", f"sqlite://{tmp_path}", "-o", "json")
    assert sick.code == 1
    assert sick.json[0]["grade"] == "bad"


def test_a_backup_is_a_new_file_for_the_person_alone(person: Person, tmp_path: Path) -> None:
    person.add("a")
    target = tmp_path / "copy.db"
    made = person.ok("backup", target, "-o", "json").json
    assert made["bytes"] == target.stat().st_size > 0
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    content = target.read_bytes()
    told = person.ok("backup", tmp_path / "other.db").lines
    assert "kB, readable by you alone" in told[0]
    assert told[-1] == "next  lessor"  # to restore would undo what happens from now on
    refused = person.run("backup", target)
    assert (refused.code, "never overwrites" in refused.err) == (6, True)
    assert target.read_bytes() == content
    assert person.run("backup", tmp_path / "no" / "such" / "folder.db").code == 75


def test_a_restored_store_hands_nothing_out_twice(person: Person, tmp_path: Path) -> None:
    person.add("a", "--scope", "web")
    person.add("b", "--scope", "services")
    before = person.claim("--task", "1")
    person.ok("backup", tmp_path / "copy.db")
    person.add("c")
    lost = person.claim("--task", "2")
    done = person.ok("restore", tmp_path / "copy.db", "-o", "json").json
    assert (done["tasks"], done["continued"]) == (2, True)
    assert Path(done["kept"]).is_file()
    assert stat.S_IMODE(Path(done["kept"]).stat().st_mode) == 0o600

    for lease in (before, lost):  # every grant of before is over
        assert person.run("renew", lease["leaseId"]).code in {5, 7}
    again = person.claim("--task", "2")
    assert again["epoch"] > lost["epoch"] + 900
    assert (again["term"], again["fence"]) > (lost["term"], lost["fence"])
    assert again["leaseId"] not in {before["leaseId"], lost["leaseId"]}
    fresh = person.add("d")
    assert fresh["number"] > 3  # the lost store had given 3 away
    assert names(person.ok("list", "-o", "json").json) == ["d", "b", "a"]


def test_a_restore_where_no_store_was_says_so_and_names_it_by_its_path(
    person: Person, tmp_path: Path
) -> None:
    person.add("a")
    person.ok("backup", tmp_path / "a copy.db")
    new = tmp_path / "new.db"
    said = person.ok("restore", tmp_path / "a copy.db", "--store", f"sqlite:///{new}")
    assert said.lines[0] == f"restored  1 task into {new}"
    assert said.lines[1] == "   there was no store: the gap in the numbers is a wide one"
    assert "new tasks' numbers begin behind a gap" in said.lines[2]
    assert person.run("restore", tmp_path / "a copy.db", "--store", "redis://x").code == 2


def test_restoring_the_same_backup_twice_still_goes_forward(person: Person, tmp_path: Path) -> None:
    person.add("a", "--scope", "web")
    person.ok("backup", tmp_path / "copy.db")
    seen = []
    for _ in range(2):
        person.ok("restore", tmp_path / "copy.db")
        grant = person.claim("--task", "1")
        seen.append((grant["term"], grant["fence"], grant["epoch"], grant["leaseId"]))
    assert seen[0][:2] < seen[1][:2]
    assert seen[0][2] < seen[1][2]
    assert seen[0][3] < seen[1][3]


def test_a_damaged_store_is_replaced_behind_a_gap_and_kept(person: Person, tmp_path: Path) -> None:
    person.add("a", "--scope", "web")
    person.ok("backup", tmp_path / "copy.db")
    lost = [person.claim("--task", "1")]
    junk = b"this is no database any more " * 500
    person.store.write_bytes(junk)
    for companion in ("-wal", "-shm"):
        person.store.with_name(person.store.name + companion).unlink(missing_ok=True)
    assert person.run("list").code == 1
    done = person.ok("restore", tmp_path / "copy.db", "-o", "json").json
    assert done["continued"] is False
    assert Path(done["kept"]).read_bytes() == junk
    grant = person.claim("--task", "1")
    assert (grant["term"], grant["fence"]) > (lost[0]["term"], lost[0]["fence"])
    assert grant["leaseId"] > lost[0]["leaseId"]
    assert person.add("b")["number"] > 1_000
    assert person.run("doctor").code == 0


def test_a_store_that_is_gone_is_made_from_the_backup(person: Person, tmp_path: Path) -> None:
    person.add("a")
    person.ok("backup", tmp_path / "copy.db")
    for path in person.state.glob("lessor.db*"):
        path.unlink()
    done = person.ok("restore", tmp_path / "copy.db", "-o", "json").json
    assert (done["kept"], done["tasks"]) == (None, 1)
    assert stat.S_IMODE(person.store.stat().st_mode) == 0o600


def test_restore_is_refused_while_somebody_has_the_store_open(
    person: Person, tmp_path: Path
) -> None:
    person.add("a")
    person.ok("backup", tmp_path / "copy.db")
    person.add("b")
    lessor = person.open()
    refused = person.run("restore", tmp_path / "copy.db")
    lessor.close()
    assert (refused.code, "has" in refused.err) == (75, True)
    assert len(person.ok("list", "-o", "json").json) == 2
    assert not list(person.state.glob("*.replaced-*"))
    assert not list(person.state.glob(".*restore*"))


def test_restore_refuses_what_is_no_backup_and_leaves_the_store(
    person: Person, tmp_path: Path
) -> None:
    person.add("a")
    before = person.ok("list", "-o", "json").json
    text = tmp_path / "notes.txt"
    text.write_text("hello")
    other = tmp_path / "other.db"
    _sqlite(other, "create table t (x)")
    damaged = tmp_path / "damaged.db"
    person.ok("backup", damaged)
    content = bytearray(damaged.read_bytes())
    content[8192:12288] = os.urandom(4096)
    damaged.write_bytes(bytes(content))
    for source in (text, other, damaged, tmp_path / "missing", tmp_path, person.store):
        refused = person.run("restore", source)
        assert refused.code in {1, 2}, (source, refused)
    assert person.ok("list", "-o", "json").json == before
    assert not list(person.state.glob(".*restore*"))
    assert person.run("restore").code == 2
    assert person.run("restore", text, "--new-term").code == 2


def test_a_new_term_ends_every_grant(person: Person) -> None:
    person.add("a", "--scope", "web")
    grant = person.claim()
    person.ok("restore", "--new-term")
    assert person.run("renew", grant["leaseId"]).code == 7
    assert person.claim()["term"] == grant["term"] + 1


@pytest.mark.parametrize("verb", ["backup", "restore"])
def test_postgresql_is_left_to_its_own_tools(person: Person, verb: str) -> None:
    url = "postgresql://dana:secret@db.example/lessor"
    said = person.run(verb, "file", "--store", url)
    assert said.code == 1
    assert ("pg_dump" if verb == "backup" else "pg_restore") in said.err
    assert "secret" not in said.err


def test_completion_knows_commands_and_options(person: Person) -> None:
    for shell in ("bash", "zsh", "fish"):
        assert "_LESSOR_COMPLETE" in person.ok("completion", shell).out
    asked = {"_LESSOR_COMPLETE": "bash_complete", "COMP_WORDS": "lessor sw", "COMP_CWORD": "1"}
    asking = Person(home=person.home, cwd=person.cwd, env=asked)
    assert asking.ok().out == "plain,sweep-stale\n"
    assert person.run("completion", "csh").code == 2
    assert person.run("completion").err.splitlines()[0].endswith("Choose from: bash, zsh, fish")


def _sqlite(path: Path, statement: str) -> None:
    code = (
        "import sys, sqlite3; c = sqlite3.connect(sys.argv[1]); c.execute(sys.argv[2]); c.commit()"
    )
    subprocess.run(["python3", "-c", code, str(path), statement], check=True)
