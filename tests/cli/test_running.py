"""`do` and `run`, as a person sees them: scripted agents in a real repository."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import threading
from dataclasses import replace
from pathlib import Path

import pytest
from person import Person, git

from lessor.cli.invocation import Invocation
from lessor.cli.notes import LineReporter
from lessor.runner.noting import Note, NoteKind


def agent(folder: Path, text: str) -> str:
    """A program that is an agent."""
    path = folder / "agent.sh"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)


def trusting(shop: Path) -> None:
    """Leave nothing to agree to."""
    git(shop, "rm", "-q", "lessor.toml")
    git(shop, "commit", "-q", "-m", "no check")


def without_times(lines: list[str]) -> list[str]:
    return [line[8:] for line in lines if line[:2].isspace() and line[8:].strip()]


def test_do_names_its_task_once_and_tells_what_happens_in_words(
    person: Person, shop: Path, tmp_path: Path
) -> None:
    trusting(shop)
    works = agent(tmp_path, "echo five > services/tax/new.py; echo 'The rate is in.'")
    said = person.ok("do", "Tax: a new rate", "--", works)
    assert said.lines[0] == "#1 Tax: a new rate  agent"
    assert without_times(said.lines)[1:] == [
        "claimed, its paths grow",
        "agent started",
        "agent finished: The rate is in.",
        "took services/tax",
        f"unverified {git(shop, 'rev-parse', 'ai/1-tax-a-new-rate')[:12]}",
    ]
    *_, ending, steps = said.lines
    assert re.fullmatch("unverified  ai/1-tax-a-new-rate  \\+1 \u22120 in 1 file  \\d+ s", ending)
    assert steps == "next  lessor diff 1     lessor land 1     lessor show 1"


def test_a_run_whose_worktree_takes_long_says_what_it_waits_for(
    person: Person, shop: Path, tmp_path: Path
) -> None:
    trusting(shop)
    go_on = tmp_path / "go-on"
    slow = tmp_path / "bin" / "git"
    slow.parent.mkdir()
    slow.write_text(
        "#!/bin/sh\n"
        f'case " $* " in *" worktree add "*) until test -e {go_on}; do sleep 0.1; done;; esac\n'
        f'exec {shutil.which("git")} "$@"\n'
    )
    slow.chmod(0o755)
    running = subprocess.Popen(
        person.command("do", "Tax: a new rate", "--", agent(tmp_path, "echo five > README")),
        cwd=shop,
        env=person.environment() | {"PATH": f"{slow.parent}:{os.environ['PATH']}"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert running.stderr is not None
    watchdog = threading.Timer(60, go_on.touch)
    watchdog.start()
    told = running.stderr.readline()
    watchdog.cancel()
    go_on.touch()
    running.communicate(timeout=60)
    assert told == "  note  git worktree takes long; it may go on for 14 m 55 s.\n"
    assert running.returncode == 0


def test_what_a_person_has_to_act_on_is_told_in_full(
    person: Person, shop: Path, tmp_path: Path
) -> None:
    trusting(shop)
    person.ok("hold", "services/tax")
    works = agent(tmp_path, "echo five > services/tax/new.py")
    said = person.run("do", "Tax: a new rate", "--", works)
    assert said.code == 8
    told = " ".join(without_times(said.lines))
    step = 'When #1 is done: lessor answer 2 "go on".'
    assert f"needs you: After 3 rounds: services/tax/new.py belongs to #1 (dana). {step}" in told
    assert "check failed" not in told
    assert "needs you" in said.lines


def test_a_run_tells_what_its_tasks_came_to_when_it_ends(
    person: Person, shop: Path, tmp_path: Path
) -> None:
    trusting(shop)
    person.add("First", "--scope", "docs")
    person.add("Second", "--scope", "services/tax")
    person.add("Third", "--scope", "web", "--max-attempts", "1")
    person.add("Fourth", "--scope", "lib")
    land = shlex.join(person.command("land", "1", "--repo", shop))
    cancel = shlex.join(person.command("cancel", "4", "--repo", shop))
    works = agent(
        tmp_path,
        f"""case "$2" in
        *First*) mkdir -p docs && echo one > docs/new.md ;;
        *Second*) {land} >&2 && echo two > services/tax/new.py ;;
        *Fourth*) {cancel} >&2; sleep 60 ;;
        *) exit 3 ;;
        esac""",
    )
    said = person.run("run", "--", works, "agent", "{prompt}")
    assert "1 unverified · 1 landed · 1 quarantined · 1 cancelled" in said.lines
    assert person.ok().lines[0].endswith(" · 1 quarantined · 1 to land")


def test_a_task_that_could_not_begin_is_no_success(
    person: Person, shop: Path, tmp_path: Path
) -> None:
    trusting(shop)
    person.ok("hold", "services/tax")
    works = agent(tmp_path, "echo five > services/tax/new.py")
    said = person.run("do", "Tax: a new rate", "--scope", "services/tax", "--", works)
    assert said.code == 75
    assert said.lines[-2].startswith("queued: waits for #1")


def test_what_is_found_of_another_task_is_told_by_its_number(
    capsys: pytest.CaptureFixture[str],
) -> None:
    reporter = LineReporter(Invocation(), workers=1, alone=True, own="task_2")
    for number in (1, 2):
        reporter.note(
            Note(
                kind=NoteKind.SALVAGED,
                number=number,
                title="Left behind",
                text="2 files saved",
                task=f"task_{number}",
            )
        )
    told = [line.split()[1:] for line in capsys.readouterr().out.splitlines()]
    assert told == [["#1", "Left", "behind", "2", "files", "saved"], ["2", "files", "saved"]]


def test_a_run_tells_a_wish_to_the_end_where_the_command_is(
    capsys: pytest.CaptureFixture[str],
) -> None:
    reporter = LineReporter(Invocation(), workers=3, alone=False)
    wish = f'After 3 rounds: {"a/long/path " * 6}was taken. Then: lessor answer 1 "go on".'
    reporter.note(
        Note(kind=NoteKind.ASKED, number=1, title="One", text=wish, task="t", agent="a-1")
    )
    told = " ".join(capsys.readouterr().out.split())
    assert told.endswith('Then: lessor answer 1 "go on".')


@pytest.mark.parametrize("agent", ["scripted-2", "a-kind-with-a-long-name-2"])
def test_of_several_agents_a_run_says_which_one_it_was(
    capsys: pytest.CaptureFixture[str], agent: str
) -> None:
    reporter = LineReporter(Invocation(), workers=3, alone=False)
    note = Note(kind=NoteKind.STARTED, number=1, title="One", text="", task="t", agent=agent)
    reporter.note(note)
    (line,) = capsys.readouterr().out.splitlines()
    assert line.split()[-3].endswith("-2")
    assert len(line) <= 80


@pytest.mark.parametrize(("agent", "told"), [("", []), ("indexer", ["indexer"])])
def test_what_no_agent_of_the_run_did_is_told_without_a_number_of_one(
    capsys: pytest.CaptureFixture[str], agent: str, told: list[str]
) -> None:
    """As what was saved of an earlier run's task, or what landed meanwhile."""
    reporter = LineReporter(Invocation(), workers=3, alone=False)
    text = "2 files saved"
    reporter.note(
        Note(kind=NoteKind.SALVAGED, number=1, title="One", text=text, task="t", agent=agent)
    )
    said = capsys.readouterr().out.split()
    assert said[1:] == ["#1", "One", *told, *text.split()]


def test_an_agent_that_is_not_there_leaves_no_task_behind(person: Person, shop: Path) -> None:
    trusting(shop)
    refused = person.run("do", "Tax: a new rate", "--", "no-such-program")
    assert (refused.code, "There is no program 'no-such-program'" in refused.err) == (5, True)
    assert refused.out == ""
    assert person.ok("list", "-o", "json").json == []


def test_the_ellipsis_of_a_hint_is_never_taken_for_somebodys_words(
    person: Person, shop: Path
) -> None:
    trusting(shop)
    person.add("One")
    for copied in (
        ["add", "…"],
        ["do", "…", "--", "true"],
        ["retry", "1", "…"],
        ["answer", "1", "..."],
    ):
        refused = person.run(*copied)
        assert (refused.code, "stands for your own words" in refused.err) == (2, True), refused
    assert len(person.ok("list", "-o", "json").json) == 1


def test_the_page_and_show_tell_a_failed_check_shortly_and_where_all_of_it_is(
    person: Person, shop: Path, tmp_path: Path
) -> None:
    check = "test ! -e new.txt || { seq -f line-%g 100; echo; echo the rate is wrong; exit 3; }"
    (shop / "lessor.toml").write_text(f"check = '{check}'\nrounds = 1\n")
    git(shop, "commit", "-q", "-am", "a check")
    person.ok("trust", person.run("trust", "-o", "json").problem["facts"]["digest"])
    works = agent(tmp_path, "echo five > new.txt; seq 100; echo done")
    ran = person.run("do", "Tax: a new rate", "--", works)
    assert ran.code == 8
    assert "agent finished: done" in without_times(ran.lines)
    page = " ".join(person.ok().out.split())
    assert "exited with 3: the rate is wrong" in page
    assert "line-98" not in page
    shown = person.ok("show", "1")
    assert "  logs     lessor logs 1     lessor logs 1 --of check" in shown.lines
    assert "the rate is wrong" in shown.out
    assert len(shown.lines) < 24
    assert person.ok("logs", "1").lines[-2:] == ["100", "done"]
    logs = person.ok("show", "1", "-o", "json").json["leases"][0]["logs"]
    assert Path(logs["check"]).read_text().endswith("the rate is wrong\n")


def test_a_check_that_fails_on_the_base_stops_a_run_unless_it_is_to_go_on_anyway(
    person: Person, shop: Path, tmp_path: Path
) -> None:
    (shop / "lessor.toml").write_text("check = 'test -e five.txt'\n")
    git(shop, "commit", "-q", "-am", "a check")
    person.ok("trust", person.run("trust", "-o", "json").problem["facts"]["digest"])
    works = agent(tmp_path, "echo five > five.txt")
    refused = person.run("do", "Five", "--", works)
    assert refused.code == 1
    assert "--anyway" in refused.err
    assert "#1 stays in the queue; lessor cancel 1 takes it out." in refused.err
    person.ok("cancel", "1")
    assert person.ok("do", "Five", "--anyway", "--", works).lines[-2].startswith("verified")
    person.add("Five more")
    assert person.run("run", "--", works).code == 1
    person.ok("run", "--anyway", "--", works)


def test_a_command_that_is_given_isnt_called_after_the_agent_on_path(
    person: Person, shop: Path, tmp_path: Path
) -> None:
    trusting(shop)
    (tmp_path / "bin").mkdir()
    claude = tmp_path / "bin" / "claude"
    claude.write_text("#!/bin/sh\necho five > by-claude.txt\n")
    claude.chmod(0o755)
    with_claude = replace(person, env={"PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}"})
    works = agent(tmp_path, "echo five > five.txt")
    assert "agent" in with_claude.ok("do", "Five", "--", works).lines[0]
    assert git(shop, "branch", "--list", "ai/1-*")
    assert with_claude.ok("do", "Six").lines[0].endswith("claude")
    assert git(shop, "branch", "--list", "claude/2-*")


def test_after_a_run_the_next_commands_are_those_that_help(
    person: Person, shop: Path, tmp_path: Path
) -> None:
    trusting(shop)
    works = agent(tmp_path, 'echo five > "$LESSOR_NUMBER.txt"')
    person.add("One")
    assert person.ok("run", "--", works).lines[-1] == "next  lessor diff 1     lessor land 1"
    person.add("Two")
    person.add("Three")
    assert (
        person.ok("run", "-n", "2", "--", works).lines[-1] == "next  lessor     lessor land --all"
    )
    assert "lessor land 1" in person.ok("show", "1").lines[-1]
    person.ok("land", "1")
    assert "lessor land" not in person.ok("show", "1").lines[-1]


def test_a_result_that_nothing_checked_is_not_called_checked_when_it_has_landed(
    person: Person, shop: Path, tmp_path: Path
) -> None:
    trusting(shop)
    person.ok("do", "One", "--", agent(tmp_path, "echo five > one.txt"))
    person.ok("land", "1")
    said = " ".join(person.ok("show", "1").out.split())
    assert "checked no check was there to run" in said
    assert "passed" not in said


def test_a_task_that_has_to_wait_says_for_what_and_the_command_that_ends_it(
    person: Person, shop: Path, tmp_path: Path
) -> None:
    """Two results that don't contain each other: one has to land before the next begins."""
    trusting(shop)
    works = agent(tmp_path, "echo $LESSOR_NUMBER > $LESSOR_NUMBER.txt")
    for word in ("One", "Two"):
        lessor = person.ok("do", word, "--", works)
        assert "next  lessor diff" in lessor.out
    said = person.run("do", "Three", "--scope", ".", "--", works)
    assert said.code == 75
    told = " ".join(said.out.split())
    assert "queued: waits for the result of #1 One to land" in told
    assert said.lines[-1] == "next  lessor land 1     lessor why 3"
    again = person.ok("run", "--", works)
    assert again.lines[-2:] == ["nothing to claim: 1 task waits", "next  lessor why 3     lessor"]


@pytest.mark.parametrize("given", [("do", "fix", "true"), ("run", "-n", "2", "true")])
def test_an_agents_command_without_two_dashes_before_it_is_refused(
    person: Person, shop: Path, given: tuple[str, ...]
) -> None:
    """`lessor do fix true` would start /bin/true on a task that is called fix."""
    trusting(shop)
    refused = person.run(*given)
    assert refused.code == 2
    said = " ".join(refused.err.split())
    assert ('lessor do "fix true"' in said) is (given[0] == "do")
    assert "-- CMD ARGS" in said
    assert person.ok("list", "-o", "json").json == []


def test_a_word_that_is_nearly_the_briefs_is_refused_before_an_agent_starts(
    person: Person, shop: Path
) -> None:
    trusting(shop)
    person.add("One")
    refused = person.run("run", "--", "/bin/echo", "{breif}")
    assert (refused.code, refused.err.splitlines()[-1]) == (2, "  next  Write {brief}.")
    assert person.ok("show", "1", "-o", "json").json["state"] == "queued"


def test_an_agent_that_fails_without_a_word_ends_no_line_with_a_colon(
    person: Person, shop: Path
) -> None:
    trusting(shop)
    person.add("One", "--max-attempts", "1")
    said = person.run("run", "--", "false")
    assert [line for line in said.lines if line.endswith("failed: exited with 1")]
    assert "quarantined: exited with 1\n" in person.ok().out


def test_do_reads_its_prompt_as_add_does(person: Person, shop: Path, tmp_path: Path) -> None:
    trusting(shop)
    (shop / "ask.md").write_text("do it\nso\n")
    works = agent(tmp_path, "echo five > new.txt")
    person.ok("do", "One", "--prompt", "ask.md", "--", works)
    person.ok("do", "Two", "--prompt", "-", "--", works, stdin="from a pipe")
    told = [person.ok("show", n, "-o", "json").json["prompt"] for n in ("1", "2")]
    assert told == ["do it\nso\n", "from a pipe"]
    refused = person.run("do", "Three", "--prompt", "no-such-file", "--", works)
    assert (refused.code, "can't be read" in refused.err) == (2, True)
    assert person.run("show", "3").code == 5


def test_a_repository_without_a_commit_is_told_to_make_one(person: Person, tmp_path: Path) -> None:
    git(tmp_path, "init", "-q", "fresh")
    refused = person.run("do", "One", "--", "true", cwd=tmp_path / "fresh")
    assert "There is no commit yet in" in refused.err
    assert refused.err.splitlines()[-1] == "  next  Make the first one: git commit"


def test_run_says_whose_a_line_is_where_several_work(
    person: Person, shop: Path, tmp_path: Path
) -> None:
    trusting(shop)
    works = agent(tmp_path, 'echo five > "$LESSOR_NUMBER.txt"')
    person.add("Tax: a new rate")
    alone = person.ok("run", "--", works)
    assert any(f"{'#1 Tax: a new rate':<28}agent started" in line for line in alone.lines)
    person.add("Billing: pay")
    several = person.ok("run", "-n", "2", "--", works)
    assert any(f"{'#2 Billing: pay':<28}agent-" in line for line in several.lines)
    assert all(len(line) <= 80 for line in several.lines)
