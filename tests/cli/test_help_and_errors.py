"""The help page, formats, exit codes, and what a refusal looks like."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from person import Person, git

from lessor.cli.commands import COMMANDS, Part
from lessor.cli.main import root

EVERYDAY = ["do", "add", "run", "show", "diff", "answer", "land", "clean"]


def test_help_shows_eight_everyday_verbs_and_the_rest_in_groups(person: Person) -> None:
    lines = person.ok("--help").lines
    shown = [m[1] for line in lines if (m := re.match(r"  ([a-z]+)(?: [A-Z\"\[].*)?  +\S", line))]
    assert [name for name in shown if name in EVERYDAY] == EVERYDAY
    for part in (Part.MORE, Part.SCRIPTS, Part.OPERATORS):
        assert any(line.startswith(f"  {part}") for line in lines)
    text = " ".join(lines)
    assert all(re.search(rf"\b{re.escape(name)}\b", text) for name in COMMANDS)
    assert len(lines) <= 24
    assert all(len(line) <= 80 for line in lines)


@pytest.mark.parametrize("name", [*COMMANDS])
def test_every_command_can_be_loaded_and_explains_itself(name: str) -> None:
    with root.make_context("lessor", [name], resilient_parsing=True) as ctx:
        command = root.get_command(ctx, name)
    assert command is not None
    assert command.name == name
    assert command.help
    options = {option for parameter in command.params for option in parameter.opts}
    assert {"-o", "--repo", "--store"} <= options


def test_help_needs_no_store(person: Person) -> None:
    for args in (
        ["--help"],
        ["add", "--help"],
        ["-h"],
        ["queue", "--help"],
        ["--version"],
        ["completion", "zsh"],
    ):
        person.ok(*args)
    assert not person.state.exists()


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("import", '  - [ ] Billing: retry on 503               @check "pytest -q tests/billing"'),
        ("limit", "  lessor limit agent claude none     no limit any more"),
        ("completion", '  zsh    eval "$(lessor completion zsh)"       in ~/.zshrc'),
    ],
)
def test_examples_keep_their_lines(person: Person, name: str, line: str) -> None:
    assert line in person.ok(name, "--help").lines


def test_an_unknown_command_is_refused_with_the_nearest_name(person: Person) -> None:
    refused = person.run("shwo", "3")
    assert refused.code == 2
    assert "Did you mean `lessor show`?" in refused.err


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("resume", "lessor queue resume"),
        ("pause", "lessor queue pause"),
        ("top", "lessor -w"),
        ("take", "lessor open"),
        ("stop", "lessor block"),
    ],
)
def test_a_command_of_other_programs_is_refused_with_the_one_that_does_it(
    person: Person, typed: str, meant: str
) -> None:
    assert f"Did you mean `{meant}`?" in person.run(typed).err


def test_who_wants_to_set_something_up_is_told_that_nothing_has_to_be(person: Person) -> None:
    refused = person.run("init", "--agent", "claude")
    assert (refused.code, "Nothing has to be set up" in refused.err) == (2, True)


@pytest.mark.parametrize("typed", ["delete", "remove", "kill", "undo", "report"])
def test_a_command_that_only_looks_alike_is_not_proposed(person: Person, typed: str) -> None:
    refused = person.run(typed)
    assert (refused.code, "Did you mean" in refused.err) == (2, False)


def test_an_unknown_command_that_is_near_none_is_told_once_where_they_are(person: Person) -> None:
    refused = person.run("qqqqq")
    assert refused.err.splitlines() == [
        "lessor: There is no command 'qqqqq'.",
        "  next  See `lessor --help`.",
    ]


@pytest.mark.parametrize(
    ("group", "commands"),
    [("repo", "fence"), ("git", "install-server-hooks, uninstall-server-hooks")],
)
def test_a_group_that_is_called_alone_says_in_one_line_what_it_has(
    person: Person, group: str, commands: str
) -> None:
    refused = person.run(group)
    assert refused.code == 2
    said = " ".join(refused.err.split())
    assert (
        said
        == f"lessor: lessor {group} needs one of: {commands}. next See `lessor {group} --help`."
    )


@pytest.mark.parametrize("group", ["repo", "git", "queue", "workspace", "salvage"])
def test_the_commands_of_a_group_are_told_in_whole_sentences(person: Person, group: str) -> None:
    commands = person.ok(group, "--help").out.partition("Commands:\n")[2].splitlines()
    assert commands
    assert all(line.endswith(".") and not line.endswith("..") for line in commands)


def test_options_may_stand_before_or_after_the_command(person: Person) -> None:
    person.add("a")
    after = person.ok("list", "-o", "json", "--repo", ".").json
    assert person.ok("-o", "json", "--repo", ".", "list").json == after
    assert json.loads(person.ok("--output=jsonl", "list").out) == after[0]
    assert person.run("list", "-o", "xml").code == 2


def test_yaml_is_the_same_text_as_json(person: Person) -> None:
    person.add("ein Titel mit Ümläuten und 日本")
    as_json = person.ok("list", "-o", "json").out
    assert person.ok("list", "-o", "yaml").out == as_json
    assert "Ümläuten und 日本" in as_json


def test_every_listing_is_a_list_or_lines_of_records(person: Person) -> None:
    person.add("a")
    person.ok("acquire", "--scope", "web")
    for command in (
        *(
            ["list"],
            ["list", "--leases"],
            ["list", "--all"],
            ["ready"],
            ["history", "1"],
            ["who", "web"],
        ),
        *(["queue", "list"], ["limit"], ["doctor"], ["sweep-stale"]),
    ):
        assert isinstance(person.ok(*command, "-o", "json").json, list)
        for line in person.ok(*command, "-o", "jsonl").lines:
            assert isinstance(json.loads(line), dict)


def test_a_refusal_for_programs_is_one_json_object_on_standard_error(person: Person) -> None:
    refused = person.run("show", "99", "-o", "json")
    assert (refused.code, refused.out) == (5, "")
    assert refused.problem == {
        "code": "not_found",
        "message": "There is no #99 here.",
        "nextStep": "List the tasks: lessor list.",
        "exitCode": 5,
        "facts": {"number": 99},
    }
    usage = person.run("show", "-o", "json")
    assert (usage.code, usage.problem["code"]) == (2, "usage")


def test_a_refusal_for_people_is_a_sentence_and_the_next_step(person: Person) -> None:
    refused = person.run("show", "99")
    assert refused.err == "lessor: There is no #99 here.\n  next  List the tasks: lessor list\n"


def test_a_long_refusal_is_broken_between_words_on_a_terminal(person: Person) -> None:
    master, slave = pty.openpty()
    done = subprocess.run(
        person.command("land", "1", "--all", "--repo", "none"),
        cwd=person.cwd,
        env=person.environment() | {"COLUMNS": "42", "NO_COLOR": "1"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=slave,
        check=False,
    )
    os.close(slave)
    said = os.read(master, 10_000).decode().split("\r\n")
    os.close(master)
    assert done.returncode == 2
    assert said[:2] == ["lessor: Name the results, lessor land 1 2,", "lessor: or say --all."]


def test_an_option_without_its_value_has_a_next_step(person: Person) -> None:
    refused = person.run("clean", "--discard")
    assert (refused.code, refused.err.splitlines()[-1]) == (2, "  next  See `lessor clean --help`.")


def test_a_closed_pipe_is_quiet(person: Person) -> None:
    person.ok("import", "-", stdin="".join(f"- [ ] task {n} {'x' * 300}\n" for n in range(300)))
    listing = subprocess.Popen(
        person.command("list", "-n", "1000", "-o", "json"),
        cwd=person.cwd,
        env=person.environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    listing.stdout.read(1)
    listing.stdout.close()
    assert listing.wait(timeout=60) == 141
    assert listing.stderr.read() == b""
    listing.stderr.close()


def test_ctrl_c_exits_with_130_and_says_nothing(person: Person) -> None:
    waiting = subprocess.Popen(
        person.command("claim", "--wait", "60s"),
        cwd=person.cwd,
        env=person.environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    lock = person.state / "lessor.db.lock"
    while not (lock.exists() and list(person.state.glob("workers/[!.]*"))):  # written, and closed
        assert waiting.poll() is None
    waiting.send_signal(signal.SIGINT)
    out, err = waiting.communicate(timeout=60)
    assert (waiting.returncode, out, err.strip()) == (130, b"", b"")


def test_a_full_output_is_an_error_not_a_traceback(person: Person) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("no /dev/full here")
    person.add("a")
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            person.command("list"),
            cwd=person.cwd,
            env=person.environment(),
            stdout=full,
            stderr=subprocess.PIPE,
            check=False,
        )
    assert done.returncode == 1
    assert b"The answer couldn't be written: No space left" in done.stderr
    assert b"Traceback" not in done.stderr


def test_a_refusal_keeps_its_exit_code_where_standard_error_is_full(person: Person) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("no /dev/full here")
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            person.command("show", "99"),
            cwd=person.cwd,
            env=person.environment(),
            stdout=full,
            stderr=full,
            check=False,
        )
    assert done.returncode == 5


def test_a_note_that_cant_be_written_stops_nothing(person: Person) -> None:
    """It tells of a new store here, and of a git that takes long in the middle of a push."""
    if not Path("/dev/full").exists():
        pytest.skip("no /dev/full here")
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            person.command("list", "--store", f"sqlite:///{person.state}/new.db"),
            cwd=person.cwd,
            env=person.environment(),
            stdout=subprocess.PIPE,
            stderr=full,
            check=False,
        )
    assert (done.returncode, b"add" in done.stdout) == (0, True)


@pytest.mark.parametrize(
    ("url", "code"),
    [
        ("redis://localhost", 2),
        ("sqlite://", 2),
        ("", 2),
        ("sqlite:///proc/lessor.db", 75),
        ("postgresql://nobody@127.0.0.1:1/none?connect_timeout=1", 75),
    ],
)
def test_a_store_that_cant_be_opened_has_its_exit_code(person: Person, url: str, code: int) -> None:
    refused = person.run("list", "--store", url)
    if url == "":
        assert refused.code == 0  # an empty one is none at all
        return
    assert refused.code == code, refused


def test_a_mistyped_store_makes_no_directory_and_is_refused(person: Person, tmp_path: Path) -> None:
    for named in ({}, {"LESSOR_STORE": f"sqlite://{tmp_path}/mistyped/lessor.db"}):
        there = Person(home=person.home, cwd=person.cwd, env=named)
        option = [] if named else ["--store", f"sqlite://{tmp_path}/mistyped/lessor.db"]
        refused = there.run("list", *option)
        assert (refused.code, "There is no directory" in refused.err) == (75, True), refused
    assert not (tmp_path / "mistyped").exists()


def test_a_named_store_that_had_to_be_made_is_said_once(person: Person, tmp_path: Path) -> None:
    made = f"There was no store at {tmp_path}/new.db: a new one was made (--store)."
    first = person.ok("list", "--store", f"sqlite://{tmp_path}/new.db")
    assert made in " ".join(first.err.split())
    assert person.ok("list", "--store", f"sqlite://{tmp_path}/new.db").err == ""
    assert person.ok("list").err == ""


def test_a_store_that_is_a_directory_or_damaged_is_refused(person: Person, tmp_path: Path) -> None:
    assert person.run("list", "--store", f"sqlite://{tmp_path}").code == 1
    bad = tmp_path / "bad.db"
    bad.write_bytes(b"SQLite format 3\0" + os.urandom(4096))
    assert person.run("list", "--store", f"sqlite://{bad}").code == 1
    bad.write_text("not a database at all" * 100)
    assert person.run("list", "--store", f"sqlite://{bad}").code == 1


def test_a_state_directory_that_cant_be_is_refused(person: Person, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    for place in (tmp_path / "file", tmp_path / "file" / "below"):
        there = Person(home=person.home, cwd=person.cwd, env={"LESSOR_STATE_DIR": str(place)})
        refused = there.run("list")
        assert (refused.code, str(place) in refused.err) == (75, True)


def test_words_that_are_no_text_are_refused_by_every_command(person: Person) -> None:
    person.add("a")
    odd = os.fsdecode(b"\xff\xfe")
    for command in (
        *(["add", odd], ["add", "a", "--scope", odd], ["add", "a", "--key", odd], ["show", odd]),
        *(["retry", "1", odd], ["cancel", "1", "--reason", odd], ["who", odd], ["hold", odd]),
        *(
            ["claim", "--agent", odd],
            ["ready", "--queue", odd],
            ["import", odd],
            ["list", "--repo", odd],
        ),
    ):
        refused = person.run(*command)
        assert refused.code in {0, 2, 5, 6}, (command, refused)
        if refused.code == 0:
            assert command[0] in {"ready", "claim"}, command
    assert person.ok("show", "1", "-o", "json").json["prompt"] == ""


def test_the_store_comes_from_the_option_then_the_environment(
    person: Person, tmp_path: Path
) -> None:
    mine, theirs = tmp_path / "mine.db", tmp_path / "theirs.db"
    other = Person(home=person.home, cwd=person.cwd, env={"LESSOR_STORE": f"sqlite://{theirs}"})
    other.add("in theirs")
    other.ok("add", "in mine", "--store", f"sqlite://{mine}")
    assert [t["title"] for t in other.ok("list", "-o", "json").json] == ["in theirs"]
    assert not person.store.exists()
    store = other.ok("doctor", "-o", "json").json[0]
    assert store["sentence"].startswith(f"{theirs}, from LESSOR_STORE")


def test_a_repository_is_named_by_path_name_or_remote(person: Person, outside: Person) -> None:
    person.add("a")
    for name in (
        str(person.cwd),
        str(person.cwd / "web"),
        "shop",
        "acme/shop",
        "github.com/acme/shop",
    ):
        assert [t["title"] for t in outside.ok("list", "--repo", name, "-o", "json").json] == ["a"]
    for name in ("acme/shpo", "nowhere", "", "../..", "a;b"):
        assert outside.run("list", "--repo", name).code in {2, 5}
    assert outside.ok("add", "b", "--repo", "shop", "--scope", "web", "-o", "json").json[
        "files"
    ] == {"web": 1}


def test_two_clones_are_one_repository(person: Person, tmp_path: Path) -> None:
    clone = tmp_path / "clone"
    git(tmp_path, "clone", "-q", str(person.cwd), str(clone))
    git(clone, "remote", "set-url", "origin", "https://github.com/acme/shop")
    person.add("from one")
    assert [t["title"] for t in person.ok("list", "-o", "json", cwd=clone).json] == ["from one"]


def test_a_remote_that_is_added_later_keeps_the_tasks_together(person: Person) -> None:
    git(person.cwd, "remote", "remove", "origin")
    person.add("before")
    git(person.cwd, "remote", "add", "origin", "https://github.com/acme/shop")
    person.add("after")
    assert len(person.ok("list", "-o", "json").json) == 2


def test_an_id_of_another_store_names_nothing_here(person: Person, tmp_path: Path) -> None:
    git(person.cwd, "remote", "remove", "origin")
    person.add("in the first store")
    git(person.cwd, "remote", "add", "origin", "https://github.com/acme/shop")
    record = person.ok("add", "a", "--store", f"sqlite://{tmp_path}/other.db", "-o", "json").json
    assert record["repo"] == "github.com/acme/shop"


def test_nothing_but_the_id_is_written_into_the_repository(person: Person) -> None:
    before = git(person.cwd, "status", "--porcelain", "--ignored")
    person.ok()
    person.add("a", "--scope", "web")
    person.ok("hold", "services")
    assert git(person.cwd, "status", "--porcelain", "--ignored") == before


def test_the_state_directory_is_the_persons_alone(person: Person) -> None:
    person.add("a")
    person.ok("hold", "web")
    for path in person.state.rglob("*"):
        assert not stat.S_IMODE(path.stat().st_mode) & 0o077 or path.parent == person.state, path
    assert stat.S_IMODE(person.state.stat().st_mode) == 0o700


def test_importing_the_package_imports_no_part_of_it_that_isnt_asked_for() -> None:
    code = "import sys, lessor; print([m for m in sys.modules if m.startswith('lessor.')])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "['lessor.errors', 'lessor.connect']"
    code = "from lessor import *; import lessor; assert lessor.connect is connect; print(Task, NewTask)"
    subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)


def test_ready_imports_no_more_than_it_needs(person: Person) -> None:
    person.add("a")
    code = (
        "import sys\nfrom lessor.cli.main import run\ncode = run(['ready'])\n"
        "heavy = {'rich', 'pathspec', 'structlog', 'psutil', 'psycopg', 'typeid', 'difflib', 'tomllib'}\n"
        "sys.exit(code or ' '.join(sorted(heavy & set(sys.modules))) or 0)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=person.cwd,
        env=person.environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-"])
def test_a_closed_output_is_not_a_fault(person: Person, closed: str) -> None:
    person.add("a")
    done = subprocess.run(
        ["sh", "-c", f'exec "$@" {closed}', "sh", *person.command("list")],
        cwd=person.cwd,
        env=person.environment(),
        capture_output=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, b"")
