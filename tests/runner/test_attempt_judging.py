"""What counts as a result: the diff and the checks, never what the agent says or exits with."""

from __future__ import annotations

import pytest
from run_rig import ADD, git

from lessor.model.task import Effects, Stage
from lessor.runner.desk import Plan
from lessor.runner.noting import NoteKind

COMMIT = 'echo work > "$LESSOR_NUMBER.txt"; git add -A; git commit -qm "shop: add a file"'


def test_a_result_that_passes_its_check_is_verified(shop):
    task = shop.add()
    code = shop.run(plan=Plan(check="test -f README"))
    done = shop.task(task)
    assert (code, done.state, done.stage) == (0, "succeeded", Stage.VERIFIED)
    assert done.commit == git(shop.root, "rev-parse", shop.branch(task))
    assert shop.shown(task, "1.txt") == "work"


def test_without_a_check_the_word_is_unverified(shop):
    task = shop.add()
    assert shop.run() == 0
    assert shop.task(task).stage is Stage.UNVERIFIED
    assert shop.notes.of(NoteKind.UNVERIFIED)


def test_the_check_sees_the_commit_alone(shop):
    """An ignored file in the worktree would make the check pass there, and only there."""
    task = shop.add(max_attempts=1)
    agent = f"{ADD}; mkdir build; touch build/made; touch ignored.log"
    shop.run(agent, plan=Plan(check="test ! -e build/made && test ! -e ignored.log"))
    assert shop.task(task).stage is Stage.VERIFIED


def test_the_check_runs_on_that_commit_in_a_clean_checkout(shop):
    shop.add()
    seen = shop.directory / "seen"
    check = (
        f"pwd > {seen}; git rev-parse HEAD >> {seen}; git status --porcelain >> {seen}; "
        f'echo "$LESSOR_COMMIT" >> {seen}; env | grep -c "^LESSOR_STORE\\|^GIT_DIR" >> {seen}; true'
    )
    shop.run(plan=Plan(check=check), anyway=True)
    place, head, named, authority = seen.read_text().split("\n")[:4]
    assert "verify-" in place
    assert head == named
    assert authority == "0"


def test_an_agent_that_changes_the_check_is_judged_by_the_base(shop):
    shop.write("check.sh", "test ! -e bad.txt\n")
    shop.commit("a check")
    task = shop.add()
    plans: list[str] = []

    def plan_at(commit):
        plans.append(commit)
        return Plan(check=git(shop.root, "show", f"{commit}:check.sh"))

    shop.run("touch bad.txt; echo true > check.sh", plan_at=plan_at, rounds=1)
    assert shop.task(task).state == "needs_person"
    assert set(plans) == {git(shop.root, "rev-parse", "main")}


def test_an_empty_diff_is_never_success(shop):
    task = shop.add(max_attempts=2)
    code = shop.run("echo All done, everything works.", plan=Plan(check="true"))
    failed = shop.task(task)
    assert code == 1
    assert failed.state == "quarantined"
    assert "Nothing was changed" in failed.last_error


def test_commits_that_cancel_each_other_are_an_empty_diff(shop):
    task = shop.add(max_attempts=1)
    shop.run("echo x > a; git add a; git commit -qm a; git rm -q a; git commit -qm b")
    assert shop.task(task).state == "quarantined"


def test_no_change_with_a_reason_is_a_result(shop):
    task = shop.add()
    assert shop.run('echo "it rounds half-even already" > "$LESSOR_OUTBOX/no-change"') == 0
    (lease,) = shop.lessor.leases.leases(task=task)
    assert lease.result.no_change == "it rounds half-even already"
    assert shop.task(task).state == "succeeded"
    assert shop.task(task).stage is Stage.UNVERIFIED


@pytest.mark.parametrize("where", ["outbox", "last words"])
def test_a_question_waits_for_a_person_and_holds_its_paths(shop, where):
    task = shop.add(scopes=("src/tax",))
    ask = (
        'echo "Which rate?" > "$LESSOR_OUTBOX/question"'
        if where == "outbox"
        else 'echo "Which rate?"'
    )
    assert shop.run(ask) == 8
    assert shop.task(task).state == "needs_person"
    assert shop.task(task).said == "Which rate?"
    assert shop.ends(task)[0] == "asked"
    (held,) = shop.lessor.leases.who("src/tax/rate.py", repository=shop.repository)
    assert held.kind == "hold"


def test_work_done_before_a_question_is_kept_on_the_branch(shop):
    task = shop.add()
    shop.run('echo half > half.txt; echo "Which rate?" > "$LESSOR_OUTBOX/question"')
    assert shop.shown(task, "half.txt") == "half"


def test_a_read_only_task_that_changed_files_is_no_success(shop):
    task = shop.add(effects=Effects.READ_ONLY)
    assert shop.run(rounds=1) == 8
    assert shop.task(task).state == "needs_person"


def test_a_read_only_task_without_changes_succeeds(shop):
    task = shop.add(effects=Effects.READ_ONLY)
    assert shop.run("echo The rate is 19.") == 0
    assert shop.task(task).said == "The rate is 19."


def test_a_failed_check_goes_back_to_the_agent_in_the_same_worktree(shop):
    task = shop.add()
    agent = (
        'if [ "$LESSOR_ROUND" = 1 ]; then echo bad > r.txt; echo keep > build.log; else '
        'cp "$LESSOR_BRIEF" "$0.brief"; cat build.log > seen.txt; echo good > r.txt; fi'
    )
    check = "! grep bad r.txt || { echo the rate is bad; exit 3; }"
    assert shop.run(agent, plan=Plan(check=check)) == 0
    assert shop.shown(task, "seen.txt") == "keep"
    assert len(shop.lessor.leases.leases(task=task)) == 1
    brief = (shop.directory / "agent.sh.brief").read_text()
    assert "exited with 3" in brief
    assert "the rate is bad" in brief
    (told,) = shop.notes.texts(NoteKind.CHECK_FAILED)
    assert "try 2 of 3" in told


def test_after_the_last_round_a_person_is_asked(shop):
    task = shop.add()
    code = shop.run(plan=Plan(check="test ! -e 1.txt"), rounds=2)
    assert code == 8
    assert shop.task(task).state == "needs_person"
    assert [note.kind for note in shop.notes.all].count(NoteKind.STARTED) == 2


def test_what_was_left_uncommitted_is_committed_with_the_label_once(shop):
    task = shop.add("add a file")
    shop.run()
    (message,) = shop.messages(task)
    (lease,) = shop.lessor.leases.leases(task=task)
    assert message.startswith("add a file")
    assert message.count("Lessor-Label:") == 1
    assert f"Lessor-Label: {lease.label}" in message


def test_an_agents_own_commits_get_the_label_and_keep_their_words(shop):
    task = shop.add()
    shop.run(f"{COMMIT}; echo more > more.txt")
    newest, oldest = shop.messages(task)
    assert oldest.startswith("shop: add a file")
    assert [text.count("Lessor-Label:") for text in (newest, oldest)] == [1, 1]


def test_a_second_round_labels_no_commit_twice(shop):
    task = shop.add()
    agent = f'if [ "$LESSOR_ROUND" = 1 ]; then {COMMIT}; else touch fixed; fi'
    shop.run(agent, plan=Plan(check="test -e fixed || test ! -e 1.txt"))
    assert [text.count("Lessor-Label:") for text in shop.messages(task)] == [1, 1]


def test_a_result_on_another_branch_goes_back(shop):
    task = shop.add()
    agent = (
        'if [ "$LESSOR_ROUND" = 1 ]; then git checkout -qb mine; echo x > x; git add x; '
        'git commit -qm x; else git checkout -q "$LESSOR_BRANCH"; git merge -q mine; fi'
    )
    assert shop.run(agent) == 0
    assert shop.shown(task, "x") == "x"
    (told,) = shop.notes.texts(NoteKind.SENT_BACK)
    assert "git checkout" in told


def test_a_merge_left_halfway_goes_back(shop):
    task = shop.add()
    agent = (
        'if [ "$LESSOR_ROUND" = 1 ]; then git checkout -qb other; echo 1 > c; git add c; git commit -qm 1;'
        'git checkout -q "$LESSOR_BRANCH"; echo 2 > c; git add c; git commit -qm 2; git merge other; true;'
        "else echo 3 > c; git add c; git commit -qm merged; fi"
    )
    assert shop.run(agent) == 0
    assert shop.shown(task, "c") == "3"


def test_what_a_check_prints_is_data(shop):
    """NUL, halves of characters and control sequences reach neither store nor brief as such."""
    task = shop.add()
    check = r"test ! -e 1.txt || { printf 'a\000b\377\033[31m'; exit 1; }"
    assert shop.run(plan=Plan(check=check), rounds=2) == 8
    assert shop.task(task).state == "needs_person"
    assert "\0" not in shop.task(task).said


def test_a_verified_worktree_is_removed_and_its_branch_stays(shop):
    task = shop.add()
    shop.run(COMMIT, plan=Plan(check="true"))
    (note,) = shop.notes.texts(NoteKind.KEPT)
    assert note == "removed"
    assert not shop.worktree(task).exists()
    assert shop.shown(task, "1.txt") == "work"


@pytest.mark.parametrize("name", ["notes.log", "\\377.log", 'quo"ted\\nline.log'])
def test_a_worktree_with_new_ignored_files_stays(shop, name):
    task = shop.add()
    setup = f"""mkdir -p build; printf x > "$(printf 'build/{name}')\""""
    agent = f"""{ADD}; printf mine > "$(printf '{name}')\""""
    shop.run(agent, plan=Plan(setup=setup))
    (left,) = shop.worktree(task).glob("*.log")
    assert left.read_text() == "mine"
    (kept,) = shop.lessor.workspaces.of_task(task)
    assert kept.state == "dirty"
    assert len(kept.snapshot) == 1
