"""`lessor open`: into a task's worktree."""

from __future__ import annotations

import os
import pty
import select
import subprocess
from pathlib import Path

import pytest
from person import Person, git

AGENT = 'echo "which one?" > "$LESSOR_OUTBOX/question"; echo begun > begun.txt'


@pytest.fixture
def asked(person: Person, shop: Path) -> str:
    """The number of a task that asked something, with a worktree that holds work."""
    git(shop, "rm", "-q", "lessor.toml")
    git(shop, "commit", "-q", "-m", "no check")
    person.run("do", "Ask", "--", "sh", "-c", AGENT)
    return "1"


def test_show_proposes_it_where_there_is_one(person: Person, asked: str) -> None:
    assert person.ok("show", asked).lines[-1].endswith(f"     lessor open {asked}")


def test_off_a_terminal_it_prints_where_the_worktree_is(person: Person, asked: str) -> None:
    said = person.ok("open", asked)
    assert (Path(said.lines[0]) / "begun.txt").read_text() == "begun\n"
    assert len(said.lines) == 1
    assert person.ok("open", asked, "-o", "json").json["path"] == said.lines[0]


def test_a_command_runs_there_and_its_exit_code_is_the_answer(person: Person, asked: str) -> None:
    said = person.run("open", asked, "--", "sh", "-c", "cat begun.txt; exit 9")
    assert (said.code, said.out) == (9, "begun\n")
    assert "git commit --no-verify" in said.err


def test_what_runs_there_ends_at_a_closed_pipe_as_everywhere_else(
    person: Person, asked: str
) -> None:
    """Python ignores the signal, and who ignores one hands that on."""
    said = person.run("open", asked, "--", "sh", "-c", "yes | head -n 1")
    assert said.out == "y\n"
    assert "yes:" not in said.err


def test_on_a_terminal_it_is_a_shell_there(person: Person, asked: str) -> None:
    master, slave = pty.openpty()
    shell = subprocess.Popen(
        person.command("open", asked),
        cwd=person.cwd,
        env=person.environment() | {"SHELL": "/bin/sh", "PS1": "in> ", "TERM": "dumb"},
        stdin=slave,
        stdout=slave,
        stderr=slave,
        start_new_session=True,
    )
    os.close(slave)
    os.write(master, b"cat begun.txt; exit 7\n")
    seen = b""
    while select.select([master], [], [], 60)[0]:
        try:
            seen += os.read(master, 65_536)
        except OSError:  # the shell's end closed the terminal
            break
    assert shell.wait(timeout=60) == 7
    assert b"exit leads back" in seen
    assert b"begun\r\n" in seen


@pytest.mark.parametrize("name", ["no-such-program", ""])
def test_a_program_that_isnt_there_is_refused(person: Person, asked: str, name: str) -> None:
    refused = person.run("open", asked, "--", name)
    assert (refused.code, f"There is no program {name!r}" in refused.err) == (5, True)


def test_a_worktree_that_is_gone_is_refused_with_the_command_that_shows_its_branch(
    person: Person, shop: Path
) -> None:
    git(shop, "rm", "-q", "lessor.toml")
    git(shop, "commit", "-q", "-m", "no check")
    person.ok("do", "Work", "--", "sh", "-c", "echo five > five.txt")
    refused = person.run("open", "1")
    assert refused.code == 5
    step = refused.err.splitlines()[-1].partition(": ")[2]
    subprocess.run(["sh", "-c", step], cwd=shop, check=True, capture_output=True)
    assert (shop.with_name("shop-1") / "five.txt").read_text() == "five\n"


def test_a_task_that_never_began_has_none(person: Person) -> None:
    person.add("a")
    refused = person.run("open", "1")
    assert (refused.code, refused.err.splitlines()[-1].endswith("lessor show 1")) == (5, True)
