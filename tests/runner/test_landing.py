"""Landing: on top of the target, checked there, and only then the target moves."""

from __future__ import annotations

import os

import pytest
from run_rig import git

import lessor.runner.landing as landing_module
from lessor.errors import BusyError, ConflictError, NotFoundError
from lessor.model.shadow import Unlanded
from lessor.model.task import Stage
from lessor.runner.cleaning import give_up
from lessor.runner.desk import Plan
from lessor.runner.landing import Came, Lander

EDIT = 'echo "by $LESSOR_NUMBER" >> "$(cat "$LESSOR_SCOPE_FILE" | head -1)"; echo done'


def result(shop, path, **more):
    """A task that appended a line to `path`, done by a run from where main is now."""
    task = shop.add(f"edit {path}", scopes=(path,), **more)
    assert shop.run(EDIT, task=task) == 0
    return task


def lander(shop, *, plan=None, branch="main", tell=None):
    return Lander(shop.desk(plan=plan), branch=branch, tell=tell or (lambda _task, _text: None))


def land(shop, *tasks, **more):
    return lander(shop, **more).land([shop.task(task) for task in tasks])


def main(shop):
    return git(shop.root, "rev-parse", "main")


def log(shop):
    return git(shop.root, "log", "--format=%s", "main").split("\n")


def test_a_result_lands_in_front_and_is_recorded_with_its_commit(shop):
    task = result(shop, "README")
    old = main(shop)
    (done,) = land(shop, task)
    assert (done.came, done.old, done.new) == (Came.LANDED, old, main(shop))
    assert shop.task(task).stage is Stage.LANDED
    (event,) = [e for e in shop.lessor.tasks.history(task) if e.kind == "landed"]
    assert (event.facts["commit"], event.facts["target"]) == (main(shop), "main")
    assert shop.lessor.landings.results(repository=shop.repository) == []


def test_the_persons_checkout_follows_by_gits_own_fast_forward(shop):
    task = result(shop, "README")
    shop.write("mine.txt", "untracked\n")
    land(shop, task)
    assert (shop.root / "README").read_text() == "shop\nby 1\n"
    assert git(shop.root, "status", "--porcelain") == "?? mine.txt"


def test_a_checkout_with_uncommitted_changes_is_not_touched(shop):
    task = result(shop, "README")
    shop.write("docs/index.md", "half a thought\n")
    git(shop.root, "add", "docs")
    shop.write("docs/index.md", "and another\n")
    before = (
        git(shop.root, "status", "--porcelain"),
        main(shop),
        (shop.root / ".git/index").read_bytes(),
    )
    with pytest.raises(ConflictError) as refused:
        land(shop, task)
    assert "docs/index.md" in refused.value.message
    assert refused.value.next_step.endswith(f"git -C {shop.root} stash")
    after = (
        git(shop.root, "status", "--porcelain"),
        main(shop),
        (shop.root / ".git/index").read_bytes(),
    )
    assert after == before


def test_a_file_of_the_persons_that_is_in_the_way_is_kept(shop):
    task = shop.add("new", scopes=("new.txt",))
    assert shop.run("echo theirs > new.txt; echo done") == 0
    shop.write("new.txt", "mine\n")
    old = main(shop)
    with pytest.raises(ConflictError):
        land(shop, task)
    assert main(shop) == old
    assert (shop.root / "new.txt").read_text() == "mine\n"
    assert shop.task(task).stage is not Stage.LANDED
    (shop.root / "new.txt").unlink()
    assert land(shop, task)[0].came is Came.LANDED


def test_a_branch_that_nobody_has_checked_out_moves_alone(shop):
    task = result(shop, "README")
    git(shop.root, "branch", "release")
    old = main(shop)
    shop.write("docs/index.md", "half a thought\n")
    (done,) = land(shop, task, branch="release")
    assert git(shop.root, "rev-parse", "release") == done.new
    assert main(shop) == old
    assert git(shop.root, "diff", "--name-only") == "docs/index.md"


def test_what_landed_meanwhile_is_underneath(shop):
    first, second = result(shop, "README"), result(shop, "src/app.py")
    shop.write("docs/new.md", "by hand\n")
    shop.commit("by hand")
    assert [one.came for one in land(shop, first, second)] == [Came.LANDED, Came.LANDED]
    assert log(shop)[:3] == ["edit src/app.py", "edit README", "by hand"]


def test_the_check_runs_on_the_result_as_it_would_land(shop):
    """Each was right alone; together they aren't."""
    check = "test $(cat one two 2>/dev/null | wc -l) -lt 2"
    plan = Plan(check=check)
    tasks = [shop.add(name, scopes=(name,)) for name in ("one", "two")]
    for task in tasks:
        assert shop.run(EDIT, task=task, plan=plan) == 0
    old = main(shop)
    first, second = land(shop, *tasks, plan=plan)
    assert (first.came, second.came) == (Came.LANDED, Came.CHECK_FAILED)
    assert first.old == old
    assert main(shop) == first.new
    assert check in second.text
    (left,) = shop.lessor.landings.results(repository=shop.repository)
    assert left.trouble == second.text


def test_a_verified_commit_that_lands_as_it_is_isnt_checked_twice(shop):
    ran = shop.directory / "ran"
    plan = Plan(check=f"echo x >> {ran}")
    task = shop.add("one", scopes=("README",))
    assert shop.run(EDIT, plan=plan) == 0
    before = ran.read_text()
    (done,) = land(shop, task, plan=plan)
    assert (done.came, done.new) == (Came.LANDED, shop.task(task).commit)
    assert ran.read_text() == before


def test_the_check_is_the_targets_and_never_the_results(shop):
    asked = []

    def plan_at(commit):
        asked.append(commit)
        return Plan()

    task = result(shop, "README")
    tip = main(shop)
    desk = shop.desk(plan_at=plan_at)
    Lander(desk, branch="main", tell=lambda _task, _text: None).land([shop.task(task)])
    assert asked == [tip]


def conflicting(shop):
    shop.lessor.registry.set_unlanded(shop.repository, Unlanded.IGNORE)
    return [result(shop, "src/app.py") for _ in range(2)]


def test_a_conflict_in_a_file_whose_name_is_no_text_holds_up_no_other(shop):
    name = os.fsdecode(b"caf\xe9\x1b[2J")
    shop.write(name, "one\n")
    shop.commit("a name from another time")
    shop.lessor.registry.set_unlanded(shop.repository, Unlanded.IGNORE)
    first = shop.add("old", scopes=(".",))
    edit = 'for name in caf*; do echo two > "$name"; done; git commit -qam two'
    assert shop.run(edit, task=first) == 0
    shop.write(name, "three\n")
    shop.commit("three")
    other = result(shop, "README")
    one, two = land(shop, first, other)
    assert (one.came, two.came) == (Came.CONFLICTS, Came.LANDED)
    assert one.conflicts == (name,)
    assert one.text.isprintable()
    assert shop.lessor.landings.results(task=first)[0].trouble == one.text


def test_a_conflict_goes_back_with_its_paths_and_nothing_is_half_landed(shop):
    first, second = conflicting(shop)
    third = result(shop, "docs/index.md")
    done = land(shop, first, second, third)
    assert [one.came for one in done] == [Came.LANDED, Came.CONFLICTS, Came.LANDED]
    assert done[1].conflicts == ("src/app.py",)
    assert done[1].step.endswith(
        "git rebase main claude/2-edit-src-app-py && lessor land 2 --onto main"
    )
    assert log(shop) == ["edit docs/index.md", "edit src/app.py", "begin"]
    assert "src/app.py" in shop.lessor.landings.results(task=second)[0].trouble
    assert shop.task(second).stage is not Stage.LANDED
    assert git(shop.root, "status", "--porcelain") == ""


def test_what_a_person_mended_on_the_branch_lands(shop):
    first, second = conflicting(shop)
    land(shop, first)
    place = shop.directory / "mending"
    git(shop.root, "worktree", "add", "-q", str(place), shop.task(second).branch)
    git(place, "rebase", "main", check=False)
    (place / "src/app.py").write_text("one\ntwo\nthree\nby 1\nby 2\n")
    git(place, "add", "-A")
    git(place, "-c", "core.editor=true", "rebase", "--continue")
    (done,) = land(shop, second)
    assert done.came is Came.LANDED
    assert (shop.root / "src/app.py").read_text().endswith("by 1\nby 2\n")


def test_what_was_mended_where_one_stands_is_not_landed_on_itself(shop):
    """`git rebase main BRANCH` leaves a person on that branch, and it has its own commits."""
    first, second = conflicting(shop)
    land(shop, first)
    branch = shop.task(second).branch
    git(shop.root, "rebase", "main", branch, check=False)
    (shop.root / "src/app.py").write_text("one\ntwo\nthree\nby 1\nby 2\n")
    git(shop.root, "add", "-A")
    git(shop.root, "-c", "core.editor=true", "rebase", "--continue")
    with pytest.raises(ConflictError) as refused:
        land(shop, second, branch=branch)
    assert "lessor land 2 --onto" in refused.value.next_step
    assert shop.task(second).stage is not Stage.LANDED
    (done,) = land(shop, second)
    assert done.came is Came.LANDED
    assert git(shop.root, "show", "main:src/app.py").endswith("by 1\nby 2")


@pytest.mark.parametrize("detached", [False, True])
def test_a_run_where_somebody_looks_at_a_result_does_not_take_it_for_landed(shop, detached):
    task = result(shop, "src/app.py")
    git(shop.root, "checkout", "-q", *(["--detach"] if detached else []), shop.task(task).branch)
    shop.run(EDIT)
    assert shop.task(task).stage is not Stage.LANDED
    assert [one.task for one in shop.lessor.landings.results(task=task)] == [task]


@pytest.mark.parametrize("deleted", [False, True])
def test_a_branch_that_lost_its_result_is_not_taken_for_one_that_landed(shop, deleted):
    """Moved to where main is, it has nothing more to land; the result itself is in no target."""
    task = result(shop, "README")
    shop.write("docs/new.md", "by hand\n")
    shop.commit("by hand")
    branch = shop.task(task).branch
    git(shop.root, "branch", "-f", branch, "main")
    (done,) = land(shop, task)
    assert done.came is Came.WAITS
    assert shop.task(task).commit[:7] in done.text
    assert done.step == f"git branch -f {branch} {shop.task(task).commit[:12]} && lessor land 1"
    assert shop.task(task).stage is not Stage.LANDED
    assert main(shop) == git(shop.root, "rev-parse", "main")
    git(
        shop.root,
        "branch",
        "-D" if deleted else "-f",
        branch,
        *() if deleted else (shop.task(task).commit,),
    )
    assert land(shop, task)[0].came is Came.LANDED


def test_a_branch_that_lost_its_result_lands_as_nothing_where_the_target_has_it(shop):
    task = result(shop, "README")
    shop.write("docs/new.md", "by hand\n")
    shop.commit("by hand")
    git(shop.root, "cherry-pick", shop.task(task).commit)
    git(shop.root, "branch", "-f", shop.task(task).branch, "main")
    assert land(shop, task)[0].came is Came.THERE
    assert shop.task(task).stage is Stage.LANDED


def test_results_land_in_the_order_in_which_they_stand(shop):
    first, second = result(shop, "src/app.py"), result(shop, "src/app.py")
    assert shop.task(second).base == shop.task(first).commit
    (alone,) = land(shop, second)
    assert (alone.came, alone.step) == (Came.WAITS, "lessor land 1 2")
    assert [one.came for one in land(shop, second, first)] == [Came.LANDED, Came.LANDED]
    assert (shop.root / "src/app.py").read_text().endswith("by 1\nby 2\n")


def test_what_stood_on_a_rewritten_result_lands_with_its_own_commits_alone(shop):
    """What it stood on came onto main as another commit, so its own is moved there."""
    first, second = result(shop, "src/app.py"), result(shop, "src/app.py")
    shop.write("docs/new.md", "by hand\n")
    shop.commit("by hand")
    land(shop, first)
    assert shop.task(first).commit not in git(shop.root, "rev-list", "main")
    (done,) = land(shop, second)
    assert done.came is Came.LANDED
    assert log(shop) == ["edit src/app.py", "edit src/app.py", "by hand", "begin"]


def test_what_stood_on_a_discarded_result_comes_to_the_target_without_it(shop):
    first = result(shop, "src/app.py")
    second = shop.add("beside it", scopes=("src",))
    assert shop.run("echo new > src/new.py; echo done", task=second) == 0
    shop.lessor.landings.discarded(first)
    (done,) = land(shop, second)
    assert done.came is Came.LANDED
    assert (shop.root / "src/new.py").exists()
    assert "by 1" not in (shop.root / "src/app.py").read_text()


def test_what_needs_a_discarded_result_goes_back_to_a_person(shop):
    first, second = result(shop, "src/app.py"), result(shop, "src/app.py")
    shop.lessor.landings.discarded(first)
    assert [one.came for one in land(shop, second)] == [Came.CONFLICTS]


def test_what_somebody_merged_by_hand_is_recorded_as_landed(shop):
    task = result(shop, "README")
    git(shop.root, "merge", "-q", "--squash", shop.task(task).branch)
    git(shop.root, "commit", "-q", "-m", "squashed")
    (done,) = land(shop, task)
    assert (done.came, main(shop)[:7] in done.text) == (Came.THERE, True)
    assert shop.task(task).stage is Stage.LANDED


def test_the_next_run_lifts_the_shadows_of_what_is_on_its_base(shop):
    task = result(shop, "src/app.py")
    git(shop.root, "merge", "-q", "--no-ff", "-m", "merged", shop.task(task).branch)
    later = result(shop, "src/app.py")
    assert shop.task(task).stage is Stage.LANDED
    assert shop.task(later).base == main(shop)


def test_the_target_that_moves_during_the_check_is_met_again(shop):
    task = result(shop, "README")
    git(shop.root, "branch", "release")
    moves = f"test -e {shop.directory}/once || {{ touch {shop.directory}/once; git -C {shop.root} branch -f release main; }}"
    shop.write("docs/new.md", "by hand\n")
    shop.commit("by hand")
    told = []
    (done,) = land(
        shop,
        task,
        branch="release",
        plan=Plan(check=moves),
        tell=lambda _t, text: told.append(text),
    )
    assert done.came is Came.LANDED
    assert "release has moved; once more" in told
    assert done.old == main(shop)


def test_a_target_that_never_rests_is_given_up(shop):
    task = result(shop, "README")
    git(shop.root, "branch", "release")
    moves = (
        f"cd {shop.root} && git update-ref refs/heads/release "
        '"$(git -c user.name=x -c user.email=x commit-tree -p release -m moved release^{tree})"'
    )
    with pytest.raises(BusyError):
        land(shop, task, branch="release", plan=Plan(check=moves))
    assert shop.task(task).stage is not Stage.LANDED


class CutError(Exception):
    """The process ends here."""


@pytest.mark.parametrize("at", ["replay", "put_ref", "advance", "after advance", "forget_landing"])
def test_a_crash_at_any_point_is_gone_on_from(shop, monkeypatch, at):
    task = result(shop, "README")
    shop.write("docs/new.md", "by hand\n")
    shop.commit("by hand")
    old = main(shop)
    name = at.removeprefix("after ")
    real = getattr(landing_module, name)

    def cut(*args, **more):
        if at.startswith("after"):
            real(*args, **more)
        raise CutError

    with monkeypatch.context() as patched:
        patched.setattr(landing_module, name, cut)
        with pytest.raises(CutError):
            land(shop, task)
    assert main(shop) == old or log(shop)[0] == "edit README"
    (done,) = land(shop, task)
    assert done.came in {Came.LANDED, Came.THERE}
    assert log(shop) == ["edit README", "by hand", "begin"]
    assert shop.task(task).stage is Stage.LANDED
    assert git(shop.root, "for-each-ref", "refs/lessor/landing") == ""


def test_a_rebase_that_was_killed_halfway_is_no_obstacle(shop):
    first, second = conflicting(shop)
    land(shop, first)
    place = shop.desk().worktrees_dir / "landing"
    git(place, "checkout", "-q", "--detach", shop.task(second).commit)
    git(place, "rebase", "main", check=False)
    assert land(shop, second)[0].came is Came.CONFLICTS
    third = result(shop, "docs/index.md")
    assert land(shop, third)[0].came is Came.LANDED


def test_a_branch_that_isnt_there_is_refused(shop):
    task = result(shop, "README")
    with pytest.raises(NotFoundError):
        land(shop, task, branch="nowhere")


def test_a_task_without_a_result_is_refused(shop):
    task = shop.add("not yet")
    with pytest.raises(NotFoundError):
        land(shop, task)


def unanswered(shop, path):
    """A task that asked with commits, and whose paths are held no longer."""
    agent = f'echo half >> {path}; echo "Which rate?" > "$LESSOR_OUTBOX/question"'
    task = shop.add(f"ask {path}", scopes=(path,))
    assert shop.run(agent, task=task) == 8
    shop.lessor.store._db.execute("UPDATE lease SET expires_ms = granted_ms WHERE kind = 'hold'")
    shop.lessor.leases.sweep()
    return task


def test_what_stands_on_unfinished_work_lands_after_it(shop):
    asks = unanswered(shop, "README")
    task = result(shop, "README")
    assert shop.shown(task, "README").endswith("half\nby 2")
    (done,) = land(shop, task)
    assert (done.came, done.step) == (Came.WAITS, "lessor why 1")
    assert "stands on the work of #1, which isn't finished" in done.text
    shop.lessor.tasks.cancel([asks])
    assert [one.came for one in land(shop, task)] != [Came.WAITS]


def test_unfinished_work_that_was_merged_by_hand_is_no_ground_any_more(shop):
    asks = unanswered(shop, "README")
    git(shop.root, "merge", "-q", shop.task(asks).branch)
    result(shop, "docs/index.md")
    assert shop.lessor.landings.results(unfinished=True, task=asks) == []
    assert shop.task(asks).state == "needs_person"


def test_what_a_landing_kept_of_a_result_goes_when_that_is_given_up(shop):
    """It was kept, and then the checkout was in the way: nothing else would ever drop it."""
    task = shop.add("new", scopes=("new.txt",))
    assert shop.run("echo theirs > new.txt; echo done") == 0
    shop.write("new.txt", "mine\n")
    with pytest.raises(ConflictError):
        land(shop, task)
    assert git(shop.root, "for-each-ref", "refs/lessor/landing") != ""
    assert give_up(shop.desk(), task)
    assert git(shop.root, "for-each-ref", "refs/lessor/landing") == ""
