"""`lessor land`, as a person sees it."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from person import Person, git

Finished = Callable[..., str]


@pytest.fixture(autouse=True)
def _nothing_to_agree_to(shop: Path) -> None:
    git(shop, "rm", "-q", "lessor.toml")
    git(shop, "commit", "-q", "-m", "no check")


def test_a_result_lands_and_is_gone_from_the_page(
    person: Person, shop: Path, finished: Finished
) -> None:
    number = finished("Tax: a new rate", {"services/tax/new.py": "five\n"})
    old = git(shop, "rev-parse", "--short=7", "main")
    said = person.ok("land", number)
    new = git(shop, "rev-parse", "--short=7", "main")
    assert said.lines[0] == "#1 Tax: a new rate"
    assert f"landed  main {old} -> {new}" in said.out
    assert (shop / "services/tax/new.py").read_text() == "five\n"
    assert "to land" not in person.ok().out
    assert "  landed   on main" in person.ok("show", number).out


def test_who_tells_of_a_result_until_it_has_landed(person: Person, finished: Finished) -> None:
    number = finished("Tax: a new rate", {"services/tax/new.py": "five\n"}, scopes=["services/tax"])
    lines = person.ok("who", "services").lines
    assert lines[0] == "  result    #1 Tax: a new rate  dana  epoch 1"
    assert lines[2] == "  ends      when it has landed"
    (told,) = person.ok("who", "services", "-o", "json").json
    assert (told["kind"], told["scope"]["paths"]) == ("shadow", ["services/tax"])
    assert person.ok("who", "web").out == "nobody holds web\n"
    person.ok("land", number)
    assert person.ok("who", "services").out == "nobody holds services\n"


def test_what_doesnt_fit_beside_a_landing_stands_below_it(
    person: Person, shop: Path, finished: Finished
) -> None:
    check = "test -s services/tax/new.py && test -s services/tax/rate.py"
    (shop / "lessor.toml").write_text(f'check = "{check}"\n')
    git(shop, "add", "lessor.toml")
    git(shop, "commit", "-qm", "a check of some length")
    person.ok("trust", person.run("trust", "-o", "json").problem["facts"]["digest"])
    number = finished("Tax", {"services/tax/new.py": "five\n"}, stage="unverified")
    lines = person.ok("land", number).lines
    assert re.fullmatch(r"#1  landed  main \w{7} -> \w{7}", lines[-4])
    assert lines[-3].startswith(f"    1 commit, `{check}`")
    assert all(len(line) <= 80 for line in lines[-4:])


def test_a_conflict_ends_with_8_and_stays_on_the_page(
    person: Person, shop: Path, finished: Finished
) -> None:
    finished("One", {"README": "one\n"})
    finished("Two", {"README": "two\n"})
    said = person.run("land", "--all")
    assert said.code == 8
    assert "#2  conflicts with main@" in said.out
    assert "in README" in said.out
    assert said.lines[-1].startswith("next  git")
    page = person.ok().out
    assert "needs you" in page
    assert "conflicts with main@" in page
    assert "landing conflicts with main@" in " ".join(person.ok("show", "2").out.split())
    assert "it can't land: conflicts with main@" in " ".join(person.ok("why", "2").out.split())
    assert "land:" not in person.ok("why", "1").out


def test_the_page_proposes_to_land_what_can_land_first(person: Person, shop: Path) -> None:
    """The newest stands on the one before, and would have to wait for it."""
    for word in ("One", "Two"):
        person.ok("do", word, "--scope", "README", "--", "sh", "-c", f"echo {word} >> README")
    proposed = person.ok().lines[-1]
    assert proposed == "next  lessor diff 1     lessor land 1"
    person.ok("land", "1")
    assert person.ok().lines[-1] == "next  lessor diff 2     lessor land 2"


def test_what_another_needed_first_lands_first(person: Person, shop: Path) -> None:
    """The page proposes it, and `--all` does it, whichever has the smaller number."""
    (shop / "TASKS.md").write_text(
        "- [ ] Second @after 2 @scope web\n- [ ] First @scope docs\n- [ ] Third @after 1 @scope lib\n"
    )
    person.ok("import", "TASKS.md")
    works = 'case "$0" in *First*) d=docs ;; *Second*) d=web ;; *) d=lib ;; esac; mkdir -p $d; echo 1 > $d/new'
    person.ok("run", "-n", "1", "--", "sh", "-c", works, "{prompt}")
    page = person.ok()
    order = [int(n) for n in re.findall(r"^(?:to land)? +#(\d)", page.out, re.MULTILINE)]
    assert order == [2, 1, 3]
    assert page.lines[-1] == "next  lessor diff 2     lessor land 2"
    done = person.ok("land", "--all", "-o", "json").json
    assert [(one["number"], one["outcome"]) for one in done] == [(n, "landed") for n in order]


def test_the_page_counts_all_results_and_names_the_first(
    person: Person, finished: Finished
) -> None:
    for n in range(14):
        finished(f"Result {n}", {f"made/{n}": "one\n"})
    lines = person.ok().lines
    assert lines[0].endswith(" · 14 to land")
    assert [line for line in lines if line.startswith("to land    #1 ")]
    assert "           and 2 more: lessor list" in lines


def test_on_no_branch_it_is_proposed_to_name_one(
    person: Person, shop: Path, finished: Finished
) -> None:
    number = finished("One", {"README": "one\n"})
    git(shop, "checkout", "-q", "--detach")
    assert person.ok().lines[-1].endswith(f"     lessor land {number} --onto BRANCH")
    refused = person.run("land", number)
    step = refused.err.splitlines()[-1].partition("lessor ")[2]
    assert (refused.code, step) == (6, f"land {number} --onto BRANCH")
    person.ok(*step.replace("BRANCH", "main").split())


def test_programs_get_what_came_of_each(person: Person, finished: Finished) -> None:
    number = finished("One", {"README": "one\n"})
    (landed,) = person.ok("land", number, "-o", "json").json
    assert (landed["number"], landed["outcome"], landed["target"]) == (1, "landed", "main")
    assert landed["from"] != landed["to"]
    (again,) = person.ok("land", number, "-o", "json").json
    assert again["outcome"] == "there already"


def test_nothing_is_landed_unasked(person: Person) -> None:
    assert person.run("land").code == 2
    assert person.run("land", "1", "--all").code == 2


def test_with_nothing_to_land_it_says_so(person: Person) -> None:
    person.add("later")
    assert person.ok("land", "--all").lines[0] == "nothing to land"


def test_a_dirty_checkout_is_refused_with_the_one_command_that_helps(
    person: Person, shop: Path, finished: Finished
) -> None:
    number = finished("One", {"services/tax/new.py": "five\n"})
    (shop / "README").write_text("half a thought\n")
    said = person.run("land", number)
    assert said.code == 6
    assert "uncommitted changes (README)" in said.err
    assert f"git -C {shop} stash" in " ".join(said.err.split())
    assert (shop / "README").read_text() == "half a thought\n"


def test_the_repositorys_file_says_what_is_done_with_unlanded_results(
    person: Person, shop: Path, tmp_path: Path
) -> None:
    (shop / "lessor.toml").write_text('unlanded = "wait"\n')
    git(shop, "add", ".")
    git(shop, "commit", "-q", "-m", "wait")
    agent = tmp_path / "agent.sh"
    agent.write_text("#!/bin/sh\necho $LESSOR_NUMBER >> README\n")
    agent.chmod(0o755)
    person.add("one", "--scope", "README")
    person.add("two", "--scope", "README")
    person.ok("run", "--", str(agent))
    assert "waits for the result of #1" in person.ok("why", "2").out
    person.ok("land", "1")
    person.ok("run", "--", str(agent))
    person.ok("land", "2")
    assert (shop / "README").read_text() == "shop\n1\n2\n"


def test_a_pull_request_is_refused_with_the_command_that_makes_it_possible(
    person: Person, shop: Path, finished: Finished
) -> None:
    number = finished("One", {"README": "one\n"})
    origin = shop.with_name("origin.git")
    git(shop, "init", "-q", "--bare", str(origin))
    git(shop, "remote", "set-url", "--push", "origin", str(origin))
    refused = person.run("land", number, "--pr")
    step = refused.err.splitlines()[-1].partition("git ")[2].partition(" && ")[0]
    assert (refused.code, step) == (2, "push -u origin ai/1-one")
    git(shop, *step.split())
    assert git(origin, "log", "-1", "--format=%s", "ai/1-one") == "One"
