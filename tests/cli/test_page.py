"""The page, show, diff and logs: what a person sees."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import signal
import subprocess
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import apsw
import pytest
from person import Person, git
from rich.cells import cell_len

from lessor.cli.phrases import next_lines
from lessor.cli.text import fit, painted
from lessor.clock import SystemClock
from lessor.runner.lease_file import read_holder
from lessor.runner.proctable import process_row

MINUS = "\u2212"


def test_the_first_page_shows_what_was_found_and_the_next_command(person: Person) -> None:
    said = person.ok()
    assert said.lines[0].startswith("shop · main@")
    assert said.lines[0].endswith(" · nothing queued yet")
    assert any(
        line.startswith("  check    true") and "(lessor.toml)" in line for line in said.lines
    )
    assert "claude not found" in said.out
    assert said.lines[-1].startswith('next  lessor add "')
    assert said.err == ""


def test_the_first_page_names_the_ignored_files_that_come_along(person: Person) -> None:
    (person.cwd / ".env").write_text("SECRET=1\n")
    said = person.ok().out
    assert "brings   .env" in said
    assert "SECRET" not in said


def test_the_first_page_shows_the_repositorys_own_agent_and_lets_it_work(person: Person) -> None:
    manifest = 'agent = "mine"\nagents = { mine = ["my-agent", "{brief}"] }\n'
    (person.cwd / "lessor.toml").write_text(manifest)
    said = person.ok()
    assert "claude not found" in said.out
    assert "lessor.toml here isn't committed as it is" in said.out
    git(person.cwd, "commit", "-qam", "an agent of our own")
    said = person.ok()
    assert "  agents   mine (lessor.toml)" in said.lines
    assert "committed" not in said.out
    assert said.lines[-1].startswith('next  lessor do "')


def test_the_first_page_proposes_a_list_that_is_there(person: Person) -> None:
    (person.cwd / "TASKS.md").write_text("- [ ] a\n")
    assert person.ok().lines[-1].endswith("lessor import TASKS.md")


def test_an_agent_on_path_is_shown_with_its_version(person: Person, tmp_path: Path) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    asked = tmp_path / "asked"
    claude = programs / "claude"
    claude.write_text(f'#!/bin/sh\necho x >> {asked}\necho "2.1.332 (Claude Code)"\n')
    claude.chmod(0o755)
    there = Person(
        home=person.home, cwd=person.cwd, env={"PATH": f"{programs}:{os.environ['PATH']}"}
    )
    assert "claude 2.1.332 ✓" in there.ok().out
    assert "claude 2.1.332 ✓" in there.ok().out
    assert asked.read_text() == "x\n"  # asked once, as long as the program stays the same
    claude.write_text('#!/bin/sh\necho "2.2.0"\n')
    assert "claude 2.2.0 ✓" in there.ok().out


def test_the_page_says_what_runs_waits_needs_a_person_and_is_to_land(
    person: Person, finished
) -> None:
    landed = finished("Round totals", {"services/tax/rate.py": "even\n"})
    person.add("Retry on 503", "--scope", "services/billing")
    person.claim("--agent", "claude-2")
    person.add("Rename charge", "--after", "2")
    person.add("Debounce the box")
    lines = person.ok().lines
    assert lines[0].endswith(" · 1 running · 1 ready · 1 waits · 1 to land")
    body = {line.split()[0]: line for line in lines[2:] if line and not line.startswith(" ")}
    assert "#2 Retry on 503  claude-2  services/billing  0:" in body["running"]
    assert body["waits"].endswith("#3 Rename charge  for #2 (running)")
    assert "#4 Debounce the box  grows" in body["ready"]
    assert f"#{landed} Round totals  +1 {MINUS}1 in 1 file  verified" in body["to"]
    assert lines[-1].startswith(f"next  lessor diff {landed}")


def test_a_title_has_the_room_that_its_reason_leaves(person: Person) -> None:
    long = "Rename the charge to payment in the billing client"
    person.add("First")
    person.add(long, "--after", "1")
    told = [line for line in person.ok().lines if line.startswith("waits")]
    assert told == [f"waits      #2 {fit(long, 49)}  for #1 (queued)"]


def test_a_scripts_result_isnt_said_to_have_met_no_check(person: Person, finished) -> None:
    number = finished("Round totals", {"services/tax/rate.py": "even\n"}, stage="unverified")
    assert "checked  no check is on record" in person.ok("show", number).out


def test_a_result_that_blocks_too_long_is_told_with_the_command_that_ends_it(
    person: Person, shop: Path
) -> None:
    git(shop, "rm", "-q", "lessor.toml")
    git(shop, "commit", "-q", "-m", "no check")
    for path in ("README", "web/new.ts"):
        person.add(path, "--scope", path)
        person.ok("run", "--", "/bin/sh", "-c", f"echo more >> {path}; echo done")
    person.add("Both", "--scope", "README", "--scope", "web")
    assert person.run("claim", "--agent", "x").code == 3
    assert "needs you" not in person.ok().out
    with closing(person.open()) as lessor:
        lessor.registry.set_queue("default", wait_max_ms=1)
    lines = person.ok().lines
    (told,) = [line for line in lines if line.startswith("needs you")]
    assert "#1 README  waits to land; #3 waits for it since " in told
    assert told.endswith("lessor land 1")
    assert lines[-1].startswith("next  lessor land 1")
    assert "README" not in person.ok("--repo", "none").out
    (one,) = person.ok("-o", "json").json["blocking"]
    assert (one["first"], one["waiting"]) == (3, 1)
    assert "overdue" in person.ok("why", "3").out
    person.ok("land", "1")
    assert "needs you" not in person.ok().out


def test_the_page_says_who_blocked_a_task_and_how_a_paused_queue_goes_on(person: Person) -> None:
    person.add("one")
    person.ok("block", "1", "--reason", "wait for legal")
    person.add("two")
    person.ok("queue", "pause", "default")
    page = person.ok()
    assert "blocked by dana: wait for legal" in page.out
    assert page.lines[-1] == "next  lessor queue resume default"


def test_a_result_that_the_branch_contains_has_landed(person: Person, finished) -> None:
    number = finished("Round totals", {"services/tax/rate.py": "even\n"})
    branch = person.ok("show", number, "-o", "json").json["branch"]
    git(person.cwd, "merge", "-q", branch)
    page = person.ok("-o", "json").json
    assert page["toLand"] == []


def test_the_page_fits_80_columns(person: Person) -> None:
    person.add(
        "A title that is so long that it takes more than the whole line " * 3, "--scope", "web"
    )
    person.add("日本語のとても長いタイトル" * 6)
    person.claim("--agent", "an-agent-with-a-rather-long-name-1")
    person.add("after", "--after", "1")
    for command in (
        [],
        ["list"],
        ["ready"],
        ["show", "1"],
        ["why", "3"],
        ["who", "web"],
        ["history", "1"],
    ):
        for line in person.ok(*command).lines:
            assert cell_len(line) <= 80, line


@pytest.mark.parametrize("wide", [40, 50])
def test_the_page_and_show_fit_a_narrow_terminal(
    person: Person, shop: Path, finished, wide: int
) -> None:
    narrow = replace(person, env={"COLUMNS": str(wide)})
    finished("Billing: round the totals half-even", {"services/billing/new.py": "one\n"})
    person.ok("hold", "web", "--for", "2h")
    person.add("Search: debounce the box and more of it", "--scope", "web/search")
    lines = narrow.ok().lines
    assert [line for line in lines if cell_len(line) > wide] == []
    # The reason has as much room as the title: it is no column of single letters.
    assert any("for #2" in line for line in lines)


def test_help_fits_a_narrow_terminal(person: Person) -> None:
    narrow = replace(person, env={"COLUMNS": "50"})
    assert [line for line in narrow.ok("--help").lines if cell_len(line) > 50] == []


def test_a_long_section_counts_what_it_leaves_out_and_cuts_nothing_in_two(
    person: Person, shop: Path
) -> None:
    """Seven questions of two lines each: six have room, and it is one that hasn't."""
    git(shop, "rm", "-q", "lessor.toml")
    git(shop, "commit", "-q", "-m", "no check")
    question = "Which version of the software development kit should the example use, and why?"
    for n in range(7):
        person.add(f"Ask {n}", "--scope", f"docs/{n}")
    agent = f"echo '{question}'"
    assert person.run("run", "-n", "2", "--", "/bin/sh", "-c", agent).code == 8
    lines = person.ok().lines
    start = next(n for n, line in enumerate(lines) if line.startswith("needs you"))
    body = lines[start : lines.index("", start)]
    shown = [line for line in body if "Ask" in line]
    assert len(shown) == 6
    assert body[-1].split() == ["and", "1", "more:", "lessor", "list"]
    assert " ".join(body[-2].split()).endswith('and why?"')


def test_titles_stand_below_each_other_on_the_page(person: Person) -> None:
    for n in range(1, 11):
        person.add(f"task {n}", *(("--in", "2h") if n > 8 else ()))
    starts = {line.index("task") for line in person.ok().lines if "task " in line}
    assert len(starts) == 1


def test_next_commands_that_are_too_long_for_a_line_stand_below_each_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    steps = ["lessor show 1", "lessor diff 1", f"git merge ai/1-{'x' * 40}"]
    assert [painted(line, colour=False) for line in next_lines(steps)] == [
        "next  lessor show 1     lessor diff 1",
        f"      git merge ai/1-{'x' * 40}",
    ]


def test_outside_a_repository_it_says_so_in_a_sentence(outside: Person) -> None:
    said = outside.run()
    assert said.code == 5
    assert "isn't inside a git repository" in said.err
    assert said.err.splitlines()[-1] == "  next  Go into one, or name it: lessor --repo PATH"


def test_a_repository_without_a_commit_has_a_page(person: Person, tmp_path: Path) -> None:
    fresh = tmp_path / "fresh"
    fresh.mkdir()
    git(fresh, "init", "-q", "-b", "main")
    said = person.ok(cwd=fresh)
    assert said.lines[0] == "fresh · main, no commit yet · nothing queued yet"
    person.ok("add", "first", cwd=fresh)
    assert "#1 first" in person.ok(cwd=fresh).out


def test_the_page_for_programs_has_ids(person: Person) -> None:
    person.add("a")
    page = person.ok("-o", "json").json
    assert page["ready"][0]["taskId"].startswith("task_")
    assert page["next"] == ["lessor run"]
    assert page["repo"] == "github.com/acme/shop"


def test_watching_needs_a_terminal(person: Person) -> None:
    assert person.run("-w").code == 2


def test_the_live_page_follows_and_ends_with_ctrl_c(person: Person) -> None:
    person.add("before")
    master, slave = pty.openpty()
    watching = subprocess.Popen(
        person.command("-w"),
        cwd=person.cwd,
        env=person.environment() | {"TERM": "xterm-256color"},
        stdin=slave,
        stdout=slave,
        stderr=slave,
        start_new_session=True,
    )
    os.close(slave)
    try:
        _read_until(master, b"before")
        _read_until(master, b"Ctrl-C ends it")
        person.add("afterwards")
        _read_until(master, b"afterwards")
        os.killpg(watching.pid, signal.SIGINT)
        assert watching.wait(timeout=60) == 0
    finally:
        watching.kill()
        watching.wait()
        os.close(master)


def test_show_tells_a_task_on_one_screen(person: Person, finished) -> None:
    number = finished(
        "Round totals half-even",
        {"services/tax/rate.py": "even\n", "services/tax/new.py": "n\nm\n"},
    )
    said = person.ok("show", number)
    text = " ".join(said.out.split())
    assert said.lines[0].startswith(f"#{number} Round totals half-even")
    assert " verified " in said.lines[0]
    assert 'said "did it"' in text
    assert f"changed services/tax/new.py +2 {MINUS}0 services/tax/rate.py +1 {MINUS}1" in text
    assert "checked the project's check: passed" in text
    assert "leases epoch 1 dana" in text
    assert text.endswith(
        f'next lessor diff {number} lessor land {number} lessor retry {number} "…"'
    )
    assert len(said.lines) <= 24


def test_show_says_why_each_lease_ended(person: Person) -> None:
    person.add("a")
    grant = person.claim("--agent", "codex-1")
    person.ok("release", grant["leaseId"])
    grant = person.claim("--agent", "codex-2")
    person.ok("force-release", "1", "--reason", "stuck", "--checked", "ps")
    person.claim("--agent", "codex-3")
    text = " ".join(person.ok("show", "1").out.split())
    assert "given back" in text
    assert "taken by a person" in text
    assert "epoch 3 codex-3" in text
    assert [
        (lease["owner"]["agentId"], lease["status"])
        for lease in person.ok("show", "1", "-o", "json").json["leases"]
    ] == [("codex-1", "released"), ("codex-2", "forced"), ("codex-3", "active")]


def test_a_number_may_be_written_with_a_hash_or_as_an_id(person: Person) -> None:
    record = person.add("a")
    for name in ("1", "#1", record["taskId"]):
        assert person.ok("show", name, "-o", "json").json["number"] == 1
    for name, code in (("2", 5), ("#", 2), ("-1", 2), ("1.5", 2), ("task_x", 5), ("0", 5)):
        assert person.run("show", name).code == code


def test_diff_is_a_patch_that_git_can_apply(person: Person, finished) -> None:
    number = finished("Round totals", {"services/tax/rate.py": "even\n", "new file.txt": "x\n"})
    patch = person.ok("diff", number).out
    check = subprocess.run(
        ["git", "apply", "--check", "-"], cwd=person.cwd, input=patch.encode(), check=False
    )
    assert check.returncode == 0
    stat = person.ok("diff", number, "--stat", "-o", "json").json
    assert [f["path"] for f in stat["files"]] == ["new file.txt", "services/tax/rate.py"]
    assert f"services/tax/rate.py  +1 {MINUS}1" in person.ok("diff", number, "--stat").out


def test_a_diff_on_a_terminal_ends_with_its_last_line(person: Person, finished) -> None:
    number = finished("Round totals", {"services/tax/rate.py": "even\n"})
    there = Person(home=person.home, cwd=person.cwd, env={"PAGER": "cat", "NO_COLOR": "1"})
    assert _on_terminal(there, "diff", number).endswith(b"+even\r\n")


def test_work_that_changed_nothing_is_said_to(person: Person, shop: Path) -> None:
    head = git(shop, "rev-parse", "HEAD")
    person.add("a")
    lease = person.claim()["leaseId"]
    person.ok("complete", lease, "--base", head, "--commit", head, "--no-change", "it was right")
    said = person.ok("diff", "1")
    assert (said.out, "#1 has changed nothing that is committed" in said.err) == ("", True)
    assert head[:7] not in person.ok("show", "1").lines[0]


def test_diff_of_work_that_was_never_committed_is_not_found(person: Person) -> None:
    person.add("a")
    refused = person.run("diff", "1")
    assert (refused.code, "committed nothing" in refused.err) == (5, True)


def test_diff_of_commits_that_are_elsewhere_says_so(person: Person) -> None:
    person.add("a")
    lease = person.claim()["leaseId"]
    person.ok("complete", lease, "--base", "1" * 40, "--commit", "2" * 40)
    refused = person.run("diff", "1")
    assert (refused.code, "aren't in this clone" in refused.err) == (5, True)
    person.ok("show", "1")


def test_logs_prints_what_the_agent_printed(person: Person) -> None:
    person.add("a")
    assert person.run("logs", "1").code == 5
    lease = person.claim()["leaseId"]
    missing = person.run("logs", "1")
    assert (missing.code, "no agent log" in missing.err) == (5, True)
    log = person.state / "runs" / lease / "agent.log"
    log.parent.mkdir(parents=True)
    log.write_bytes(b"raw \x1b[31mred\x1b[0m \xff\nno end")
    done = subprocess.run(
        person.command("logs", "1"),
        cwd=person.cwd,
        env=person.environment(),
        capture_output=True,
        check=True,
    )
    assert done.stdout == b"raw \x1b[31mred\x1b[0m \xff\nno end"


def test_logs_are_plain_files_alone(person: Person) -> None:
    person.add("a")
    log = person.state / "runs" / person.claim()["leaseId"] / "agent.log"
    log.parent.mkdir(parents=True)
    secret = person.home / "secret"
    secret.write_text("not an agent's words")
    log.symlink_to(secret)
    assert person.run("logs", "1").code == 5
    log.unlink()
    os.mkfifo(log)
    assert person.run("logs", "1").code == 5
    assert person.ok("show", "1", "-o", "json").json["leases"][0]["logs"] == {}


def test_following_a_log_that_isnt_there_yet_says_what_it_waits_for(person: Person) -> None:
    person.add("a")
    lease = person.claim()["leaseId"]
    following = subprocess.Popen(
        person.command("logs", "1", "-f"),
        cwd=person.cwd,
        env=person.environment(),
        stderr=subprocess.PIPE,
    )
    try:
        assert b"No agent log is on this machine yet" in following.stderr.readline()
        person.ok("release", lease)
        assert following.wait(timeout=60) == 0
    finally:
        following.kill()
        following.wait()
        following.stderr.close()


def test_logs_follow_until_the_lease_ends(person: Person) -> None:
    person.add("a")
    lease = person.claim()["leaseId"]
    log = person.state / "runs" / lease / "agent.log"
    log.parent.mkdir(parents=True)
    log.write_text("first\n")
    following = subprocess.Popen(
        person.command("logs", "1", "-f"),
        cwd=person.cwd,
        env=person.environment(),
        stdout=subprocess.PIPE,
    )
    try:
        assert following.stdout.readline() == b"first\n"
        with log.open("a") as file:
            file.write("second\n")
        assert following.stdout.readline() == b"second\n"
        person.ok("release", lease)
        assert following.wait(timeout=60) == 0
    finally:
        following.kill()
        following.wait()
        following.stdout.close()


def test_a_terminal_gets_an_agents_colours_and_nothing_else(person: Person) -> None:
    person.add("a")
    lease = person.claim()["leaseId"]
    log = person.state / "runs" / lease / "agent.log"
    log.parent.mkdir(parents=True)
    log.write_bytes(b"\x1b[31mred\x1b[0m \x1b]52;c;ZXZpbA==\x07 \x1b[2J end\n")
    shown = _on_terminal(person, "logs", "1")
    assert b"\x1b[31mred\x1b[0m" in shown
    assert b"\x1b]52" not in shown
    assert b"\x1b[2J" not in shown
    assert "␛]52".encode() in shown


def test_colours_are_for_terminals_and_can_be_refused(person: Person) -> None:
    person.add("a")
    assert "\x1b" not in person.ok("list").out
    assert b"\x1b[" in _on_terminal(person, "list")
    for variable in ({"NO_COLOR": "1"}, {"TERM": "dumb"}):
        plain = Person(home=person.home, cwd=person.cwd, env=variable)
        assert b"\x1b[" not in _on_terminal(plain, "list")
    forced = Person(home=person.home, cwd=person.cwd, env={"FORCE_COLOR": "1"})
    assert "\x1b[" in forced.ok("list").out


def test_a_terminal_without_unicode_gets_plainer_signs(person: Person, finished) -> None:
    finished("Größe", {"web/new.ts": "five\n"})
    plain = replace(person, env={"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"})
    said = plain.ok("show", "1").out
    assert said.isascii()
    assert "web/new.ts  +1 -0" in said
    assert said.endswith('lessor retry 1 "..."\n')
    assert "#1 Gr\\xf6\\xdfe" in said  # what others wrote stays told in full


def test_history_lists_every_change(person: Person) -> None:
    person.add("a")
    person.ok("complete", person.claim()["leaseId"])
    entries = person.ok("history", "1", "-o", "jsonl").lines
    assert [json.loads(line)["kind"] for line in entries] == ["submitted", "claimed", "completed"]
    assert len(person.ok("history", "1", "--after", "2", "-o", "json").json) == 1


def _on_terminal(person: Person, *args: str) -> bytes:
    master, slave = pty.openpty()
    process = subprocess.Popen(
        person.command(*args),
        cwd=person.cwd,
        env={"TERM": "xterm-256color"} | person.environment(),
        stdin=slave,
        stdout=slave,
        stderr=slave,
    )
    os.close(slave)
    seen = b""
    while True:
        try:
            chunk = os.read(master, 65_536)
        except OSError:  # Linux answers so when the other side is closed
            break
        if not chunk:
            break
        seen += chunk
    assert process.wait(timeout=60) == 0
    os.close(master)
    return seen


def _read_until(master: int, wanted: bytes) -> None:
    seen = b""
    while wanted not in seen:
        ready, _, _ = select.select([master], [], [], 60)
        assert ready, seen
        seen += os.read(master, 65_536)


def asking(person: Person, question: str) -> str:
    """A task that waits for an answer; its number."""
    number = str(person.add("Which one")["number"])
    grant = person.claim("--task", number)
    lessor = person.open()
    holder = read_holder(person.state / "leases" / f"{grant['leaseId']}.json")
    lessor.leases.ask(holder, question)
    lessor.close()
    return number


def test_why_has_the_question_of_a_task_that_asks_and_how_to_answer(person: Person) -> None:
    number = asking(person, "Which rate?\n\nThere are two.")
    said = person.ok("why", number).lines
    assert said[1:] == ['  asks: "Which rate?"', f'next  lessor answer {number} "…"']


def test_why_says_how_a_finished_task_ended(person: Person, finished) -> None:
    number = finished("Round", {"a": "1\n"})
    assert re.fullmatch(
        rf"  has succeeded: verified, [0-9a-f]{{7}} on ai/{number}-round",
        person.ok("why", number).lines[1],
    )
    person.add("Never")
    person.ok("cancel", "2")
    assert person.ok("why", "2").lines[1] == "  is cancelled"


def test_why_says_after_what_a_task_is_tried_again(person: Person) -> None:
    person.add("Flaky", "--max-attempts", "2")
    person.ok("fail", person.claim()["leaseId"], "--error", "no network\nat all")
    with closing(
        apsw.Connection(str(person.store))
    ) as db:  # not within the seconds that this takes
        db.execute("UPDATE task SET run_at_ms = run_at_ms + 600000")
    assert re.fullmatch(r"  tries again from \d\d:\d\d: no network", person.ok("why", "1").lines[1])
    assert "tries again from" in person.ok().out


def test_why_names_a_running_tasks_lease_once(person: Person) -> None:
    person.add("Retry on 503", "--scope", "services/billing")
    person.claim("--agent", "codex-1")
    lines = person.ok("why", "1").lines
    assert lines[1].startswith("  codex-1 works on it, epoch 1, ")
    assert lines[2] == "  paths     services/billing"
    assert lines[3].startswith("  ends      14 m ")
    # A script's agent prints elsewhere: there is no log to follow.
    assert lines[4:] == ["next  lessor show 1"]


def test_a_hold_whose_time_ran_out_is_on_the_page_no_more(person: Person) -> None:
    person.ok("hold", "web", "--for", "2h")
    person.ok("hold", "docs", "--for", "50ms")
    while {lease["status"] for lease in person.ok("list", "--leases", "-o", "json").json} == {
        "active"
    }:
        pass
    (held,) = (line for line in person.ok().lines if "lessor drop" in line)
    assert held.startswith("held       web  dana  ")
    assert [lease["number"] for lease in person.ok("-o", "json").json["held"]] == [1]


def test_why_of_held_paths_names_how_to_give_them_back(person: Person) -> None:
    person.ok("hold", "web", "--for", "2h")
    lines = person.ok("why", "1").lines
    assert lines[1].startswith("  dana holds its paths, epoch 1, ")
    assert re.fullmatch(r"  ends      (1 h 59 m|2 h) left", lines[3])
    assert lines[-1] == "next  lessor drop 1"


def test_tasks_without_a_repository_are_claimed_and_never_run(outside: Person) -> None:
    said = outside.ok("add", "one", "--repo", "none")
    assert said.lines[-1] == "next  lessor claim --repo none"
    page = outside.ok("--repo", "none").lines
    assert page[0] == "tasks without a repository · 1 ready"
    assert page[-1] == "next  lessor claim --repo none"
    refused = outside.run("run", "--repo", "none", "--", "true")
    assert (refused.code, "has no clone either" in refused.err) == (5, True)
    assert outside.ok("claim", "--repo", "none").lines[0] == "#1 one"


def test_an_agent_that_is_stopped_or_quiet_is_seen_on_the_page_in_show_and_in_why(
    person: Person,
) -> None:
    person.add("Tax: a new rate")
    lease = person.claim()["leaseId"]
    assert "stopped" not in person.ok().out
    host = next(person.state.glob("host-*")).read_text().strip()
    agent = subprocess.Popen(["/bin/sleep", "600"])
    try:
        os.kill(agent.pid, signal.SIGSTOP)
        while not (row := process_row(agent.pid)) or not row.stopped:
            pass
        identity = {"host_id": host, "pid": agent.pid, "start_ticks": row.start_ticks}
        report = person.state / "runs" / lease / "report-1.jsonl"
        report.parent.mkdir(parents=True)
        started = {"event": "started", "at_ms": 1, "pid": agent.pid, "identity": identity}
        report.write_text(json.dumps(started) + "\n")
        (running,) = [line for line in person.ok().lines if line.startswith("running")]
        assert running.endswith(", stopped")
        told = f"its process {agent.pid} is stopped (SIGSTOP): kill -CONT {agent.pid}"
        assert told in " ".join(person.ok("show", "1").out.split())
        assert told in " ".join(person.ok("why", "1").out.split())
    finally:
        agent.kill()
        agent.wait()
    now = SystemClock().wall_ms()
    quiet = {"event": "quiet_warning", "at_ms": now, "quiet_ms": 960_000, "limit_ms": 1_200_000}
    with report.open("a") as file:
        file.write(json.dumps(quiet) + "\n")
    assert re.search(r", quiet 16 m( \d+ s)?$", person.ok().out, re.MULTILINE)
    assert "no sign of progress for 16 m" in " ".join(person.ok("show", "1").out.split())
