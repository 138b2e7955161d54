"""What a run begins from: the branch, what isn't part of it, and whether its check passes there."""

from __future__ import annotations

import re

import pytest
from run_rig import ADD, git
from supervisor_rig import until

from lessor.errors import BaseRedError, DeniedError, GitError, InvalidError
from lessor.git.repository import find_repository
from lessor.runner.desk import Plan
from lessor.runner.noting import NoteKind


def base_notes(shop):
    return " | ".join(shop.notes.texts(NoteKind.BASE))


def test_work_begins_from_the_branch_that_the_person_is_on(shop):
    git(shop.root, "checkout", "-qb", "feature")
    shop.write("feature.txt", "x\n")
    tip = shop.commit("feature")
    task = shop.add()
    assert shop.run() == 0
    assert shop.shown(task, "feature.txt") == "x"
    assert f"feature@{tip[:7]}" in base_notes(shop)


def test_a_run_stays_with_its_branch_when_the_person_leaves_it(shop):
    git(shop.root, "branch", "other")
    tasks = [shop.add("first"), shop.add("second")]
    go, ready = shop.directory / "go", shop.directory / "ready"
    started = shop.start(f"touch {ready}; while [ ! -e {go} ]; do sleep 0.05; done; {ADD}")
    until(ready.exists, "the first agent works")
    tip = shop.commit_empty("main goes on")
    git(shop.root, "checkout", "-q", "other")
    go.touch()
    assert started.result() == 0
    assert git(shop.root, "merge-base", tip, shop.branch(tasks[1])) == tip


def test_a_base_that_was_asked_for_is_taken(shop):
    git(shop.root, "tag", "v1")
    shop.write("later.txt", "x\n")
    shop.commit("later")
    task = shop.add()
    assert shop.run(base="v1") == 0
    assert "later.txt" not in git(shop.root, "ls-tree", "--name-only", shop.branch(task))
    assert "v1@" in base_notes(shop)


def test_a_bare_repository_is_worked_on_like_any_other(shop):
    bare = shop.directory / "bare.git"
    git(shop.directory, "clone", "-q", "--bare", str(shop.root), str(bare))
    task = shop.add()
    plan = Plan(check="test -e README", bring=(".env",))
    assert shop.run(plan=plan, cwd=bare, repo=find_repository(bare)) == 0
    assert git(bare, "show", f"{shop.branch(task)}:1.txt") == "work"


def test_from_a_linked_worktree_its_own_branch_is_the_base(shop):
    linked = shop.directory / "linked"
    git(shop.root, "worktree", "add", "-q", "-b", "feature", str(linked))
    (linked / "feature.txt").write_text("x\n")
    git(linked, "add", "-A")
    git(linked, "commit", "-q", "-m", "feature")
    (linked / ".env").write_text("KEY=linked\n")
    task = shop.add()
    plan = Plan(bring=(".env",))
    assert shop.run("cp .env copy.txt; cp feature.txt more.txt", plan=plan, cwd=linked) == 0
    assert shop.shown(task, "copy.txt") == "KEY=linked"


@pytest.mark.parametrize("base", ["no-such-branch", "--all", "HEAD\nmain"])
def test_a_base_that_names_nothing_is_refused_before_anything_is_claimed(shop, base):
    task = shop.add()
    with pytest.raises(GitError):
        shop.run(base=base)
    assert shop.task(task).epoch == 0


def test_the_run_says_what_isnt_part_of_it(shop):
    shop.write("src/app.py", "changed\n")
    shop.write("new file.txt", "x\n")
    shop.add()
    shop.run()
    assert "2 uncommitted files aren't part of it (new file.txt, src/app.py)" in base_notes(shop)


def test_the_run_says_how_far_behind_its_remote_it_is(shop):
    remote = shop.directory / "remote.git"
    git(shop.root, "init", "-q", "--bare", str(remote))
    git(shop.root, "remote", "add", "origin", str(remote))
    shop.commit_empty("two")
    git(shop.root, "push", "-q", "-u", "origin", "main")
    git(shop.root, "reset", "-q", "--hard", "HEAD~1")
    shop.add()
    shop.run()
    assert "1 commit behind its remote" in base_notes(shop)


def test_a_red_base_is_refused_with_the_checks_last_lines_and_nothing_is_claimed(shop):
    task = shop.add()
    with pytest.raises(BaseRedError) as refused:
        shop.run(plan=Plan(check="echo 1 of 214 failed; exit 3"))
    assert "1 of 214 failed" in str(refused.value)
    assert "exited with 3" in str(refused.value)
    assert "--anyway" in refused.value.next_step
    assert shop.task(task).epoch == 0
    assert not shop.started_notes()


def test_a_red_base_is_no_matter_when_the_person_says_so(shop):
    task = shop.add()
    assert shop.run(plan=Plan(check="test -e 1.txt"), anyway=True) == 0
    assert shop.task(task).stage == "verified"


def test_a_green_base_is_checked_once(shop):
    count = shop.directory / "count"
    check = f"git rev-parse HEAD >> {count}"
    for title in ("first", "second"):
        shop.add(title)
        shop.run(plan=Plan(check=check), workers=2)
    main = git(shop.root, "rev-parse", "main")
    assert count.read_text().splitlines().count(main) == 1
    assert re.search(rf"check passed in (?:\d+ s|under 1 s): {re.escape(check)}", base_notes(shop))


def test_a_red_base_is_checked_again_by_the_next_run(shop):
    """What it lacked may have been a package of this machine."""
    task = shop.add()
    flag = shop.directory / "installed"
    plan = Plan(check=f"test -e {flag}")
    with pytest.raises(BaseRedError):
        shop.run(plan=plan)
    flag.touch()
    assert shop.run(plan=plan) == 0
    assert shop.task(task).stage == "verified"


def test_another_command_or_another_commit_is_checked_anew(shop):
    shop.add("first")
    shop.run(plan=Plan(check="true"))
    shop.add("second")
    with pytest.raises(BaseRedError):
        shop.run(plan=Plan(check="false"))
    shop.commit_empty("another")
    shop.run(plan=Plan(check="true"))
    kept = list((shop.state / "baselines" / shop.repository).glob("*.json"))
    assert len(kept) == 3


def test_a_task_with_a_check_of_its_own_isnt_covered(shop):
    task = shop.add(check="test -e 1.txt")
    assert shop.run(plan=Plan(check="false")) == 0
    assert shop.task(task).stage == "verified"


def test_a_run_without_anything_to_do_checks_nothing(shop):
    assert shop.run(plan=Plan(check="false")) == 0


def test_a_base_that_turned_red_ends_the_run_and_spends_no_attempt(shop):
    first, second = shop.add("first"), shop.add("second")
    go, ready = shop.directory / "go", shop.directory / "ready"
    plan = Plan(check="test ! -e broken")
    started = shop.start(
        f"touch {ready}; while [ ! -e {go} ]; do sleep 0.05; done; {ADD}", plan=plan
    )
    until(ready.exists, "the first agent works")
    shop.write("broken", "x\n")
    shop.commit("break main")
    go.touch()
    with pytest.raises(BaseRedError):
        started.result()
    assert shop.task(first).state == "succeeded"
    assert (shop.task(second).state, shop.task(second).charged) == ("queued", 0)
    assert shop.ends(second) == ["released"]


def test_a_configuration_that_nobody_agreed_to_ends_the_run(shop):
    """It appeared on the branch while the run was under way."""
    shop.add("first")
    second = shop.add("second")
    begin = git(shop.root, "rev-parse", "main")
    go, ready = shop.directory / "go", shop.directory / "ready"

    def plan_at(commit):
        if commit != begin:
            raise DeniedError("Not agreed to.")
        return Plan()

    started = shop.start(
        f"touch {ready}; while [ ! -e {go} ]; do sleep 0.05; done; {ADD}", plan_at=plan_at
    )
    until(ready.exists, "the first agent works")
    shop.commit_empty("another configuration")
    go.touch()
    with pytest.raises(DeniedError):
        started.result()
    assert (shop.task(second).state, shop.task(second).charged) == ("queued", 0)


@pytest.mark.parametrize("wrong", [{"workers": 0}, {"rounds": 0}])
def test_options_that_make_no_sense_are_refused(shop, wrong):
    with pytest.raises(InvalidError):
        shop.desk(**wrong)


def test_a_run_without_a_command_is_refused(shop):
    with pytest.raises(InvalidError):
        shop.desk(())
