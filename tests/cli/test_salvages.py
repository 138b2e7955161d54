"""What was saved of worktrees: listed, shown, given back whole, dropped only by name."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest
from person import Person, git

AGENT = (
    'echo note > notes.txt; printf KEY=2 > .env; chmod 600 .env; rm README; echo "stuck"; exit 1'
)


@pytest.fixture
def failed(person: Person) -> str:
    """The number of a task whose agent failed and left work behind."""
    number = str(person.add("Retry on 503", "--max-attempts", "1")["number"])
    digest = person.run("trust", "-o", "json").problem["facts"]["digest"]
    person.ok("trust", digest)
    assert person.run("run", "--", "/bin/sh", "-c", AGENT).code == 1
    return number


def saved_ref(person: Person, name: str = "1") -> str:
    return person.ok("salvage", "show", name, "-o", "json").json["ref"]


def test_what_was_saved_is_listed_with_its_name(person: Person, failed: str) -> None:
    said = person.ok("salvage")
    assert said.lines[0].startswith("1/1/1  Retry on 503  3 files, archive")
    assert said.lines[-1] == "next  lessor salvage show 1/1/1"
    (record,) = person.ok("salvage", "list", failed, "-o", "json").json
    assert (record["name"], record["number"], record["epoch"], record["n"]) == ("1/1/1", 1, 1, 1)
    assert (record["files"], record["here"]) == (3, True)


def test_nothing_saved_is_said(person: Person) -> None:
    said = person.ok("salvage", "list")
    assert said.lines == ["this store knows of nothing saved here", "next  lessor"]
    assert person.ok("salvage", "list", "-o", "json").json == []


def test_show_names_every_file_and_where_it_lies(person: Person, failed: str) -> None:
    said = person.ok("salvage", "show", "1")
    assert "           changed   notes.txt" in said.lines
    assert "           deleted   README" in said.lines
    assert "  holds    archived  .env" in said.lines
    assert said.lines[-1] == "next  lessor salvage restore 1/1/1"
    record = person.ok("salvage", "show", "1/1/1", "-o", "json").json
    assert [file["path"] for file in record["changed"]] == ["notes.txt"]
    assert record["deleted"] == ["README"]
    assert record["archived"] == [{"path": "files/.env", "bytes": 5}]
    assert git(person.cwd, "rev-parse", record["ref"]) == record["commit"]


def test_restore_gives_back_bytes_and_modes_in_a_fresh_directory(
    person: Person, failed: str
) -> None:
    record = person.ok("salvage", "restore", "1", "-o", "json").json
    into = Path(record["directory"])
    assert into.is_relative_to(person.state)
    assert (into / "notes.txt").read_text() == "note\n"
    assert (into / ".env").read_text() == "KEY=2"
    assert stat.S_IMODE((into / ".env").stat().st_mode) == 0o600
    assert (into / "services/tax/rate.py").read_text() == "three\n"
    assert not (into / "README").exists()
    again = person.ok("salvage", "restore", "1", "-o", "json").json
    assert again["directory"] != record["directory"]


def test_restore_into_a_named_directory_never_writes_over_work(
    person: Person, failed: str, tmp_path: Path
) -> None:
    place = tmp_path / "with blank" / "mine"
    said = person.ok("salvage", "restore", "1", place)
    assert said.lines[0] == f"restored  2 saved files into {place}"
    assert said.lines[-1] == f"next  cd '{place}'"
    (place / "notes.txt").write_text("my own")
    refused = person.run("salvage", "restore", "1", place)
    assert refused.code == 1
    assert "isn't empty" in refused.err
    assert (place / "notes.txt").read_text() == "my own"
    assert git(person.cwd, "status", "--porcelain") == ""


def test_drop_without_a_terminal_names_what_would_go_and_deletes_nothing(
    person: Person, failed: str
) -> None:
    ref = saved_ref(person)
    refused = person.run("salvage", "drop", "1")
    assert refused.code == 4
    assert "changed   notes.txt" in refused.err
    assert refused.err.splitlines()[-1] == "  next  If it is right: lessor salvage drop 1/1/1 --yes"
    assert git(person.cwd, "rev-parse", "--verify", ref)
    assert len(list((person.state / "salvage").iterdir())) == 1


def test_drop_deletes_reference_and_archive_and_keeps_who_and_why(
    person: Person, failed: str
) -> None:
    ref = saved_ref(person)
    person.ok("salvage", "drop", "1/1/1", "--yes", "--reason", "seen")
    assert git(person.cwd, "for-each-ref", ref) == ""
    assert list((person.state / "salvage").iterdir()) == []
    assert person.ok("salvage", "-o", "json").json == []
    assert person.ok("show", "1", "-o", "json").json["salvaged"] == []
    event = person.ok("history", "1", "-o", "json").json[-1]
    assert (event["kind"], event["facts"]["actor"], event["facts"]["reason"]) == (
        "dropped",
        "dana",
        "seen",
    )
    assert person.run("salvage", "drop", "1", "--yes").code == 5


@pytest.mark.parametrize(("answer", "code"), [("y", 0), ("n", 4), ("", 4)])
def test_drop_asks_on_a_terminal(person: Person, failed: str, answer: str, code: int) -> None:
    assert person.answers("salvage", "drop", "1", asked=b"notes.txt", answer=answer) == code
    assert len(person.ok("salvage", "-o", "json").json) == (0 if code == 0 else 1)


def test_a_drop_that_was_cut_short_is_finished_by_the_next(person: Person, failed: str) -> None:
    """Reference and archive went, and then the power did."""
    git(person.cwd, "update-ref", "-d", saved_ref(person))
    for archive in (person.state / "salvage").iterdir():
        archive.unlink()
    assert "There is no reference" in person.run("salvage", "show", "1").err
    person.ok("salvage", "drop", "1", "--yes")
    assert person.ok("salvage", "-o", "json").json == []


def test_what_another_salvage_needs_stays(person: Person, failed: str) -> None:
    """The same archive, beside another commit, is noted twice."""
    person.ok("retry", "1", "once more")
    assert person.run("run", "--", "/bin/sh", "-c", "echo more >> notes.txt; exit 1").code == 1
    first, second = sorted(s["name"] for s in person.ok("salvage", "-o", "json").json)
    refused = person.run("salvage", "restore", "1")
    assert refused.code == 2
    assert f"{first}, {second}" in refused.err
    archives = {
        person.ok("salvage", "show", name, "-o", "json").json["archive"] for name in (first, second)
    }
    person.ok("salvage", "drop", first, "--yes")
    record = person.ok("salvage", "show", second, "-o", "json").json
    assert record["archive"] in archives
    person.ok("salvage", "restore", second)


@pytest.mark.parametrize("name", ["x/y/z", "1/1/1/1", "../1", "", "-"])
def test_what_is_no_name_is_refused(person: Person, failed: str, name: str) -> None:
    assert person.run("salvage", "show", "--", name).code == 2


@pytest.mark.parametrize("name", ["9", "1/2", "1/1/2"])
def test_what_was_not_saved_is_said(person: Person, failed: str, name: str) -> None:
    assert person.run("salvage", "show", name).code == 5


def test_an_archive_outside_of_the_state_directory_is_never_deleted(
    person: Person, failed: str, tmp_path: Path
) -> None:
    precious = tmp_path / "precious.tar"
    precious.write_text("precious")
    lessor = person.open()
    (noted,) = lessor.salvages.of_repository(lessor.registry.repositories()[0].id)
    (workspace,) = lessor.workspaces.of_task(noted.task)
    lessor.salvages.note(workspace, ref=None, archive=str(precious), files=1)
    lessor.close()
    refused = person.run("salvage", "drop", "1/1/2", "--yes")
    assert refused.code == 1
    assert "so it isn't deleted" in refused.err
    assert precious.read_text() == "precious"


def test_what_was_saved_after_the_backup_that_is_restored_can_still_be_found(
    person: Person, tmp_path: Path
) -> None:
    """The store forgets the task; git and the archives don't."""
    person.ok("backup", str(tmp_path / "old"))
    person.add("Retry on 503", "--max-attempts", "1")
    person.ok("trust", person.run("trust", "-o", "json").problem["facts"]["digest"])
    assert person.run("run", "--", "/bin/sh", "-c", AGENT).code == 1
    person.ok("restore", str(tmp_path / "old"))

    said = person.ok("salvage", "list")
    assert said.lines[0] == "saved here, of tasks that this store doesn't know:"
    of_ref, of_archive = person.ok("salvage", "list", "-o", "json").json
    assert (of_ref["number"], of_ref["here"], of_ref["files"]) == (None, True, 2)
    assert of_archive["ref"] is None
    shown = person.ok("salvage", "show", of_ref["name"])
    assert "           changed   notes.txt" in shown.lines
    for name, file in ((of_ref["name"], "notes.txt"), (of_archive["name"], ".env")):
        record = person.ok("salvage", "restore", name, "-o", "json").json
        assert (Path(record["directory"]) / file).is_file()
    person.ok("salvage", "drop", of_ref["taskId"], "--yes")
    assert person.ok("salvage", "list", "-o", "json").json == []
    assert not git(person.cwd, "for-each-ref", "refs/lessor/salvage")
