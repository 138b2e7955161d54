"""The completion gate: scopes grow over what nobody has, and everything else goes back."""

from __future__ import annotations

import pytest
from run_rig import ADD, git
from supervisor_rig import until

from lessor.ids import new_request_id, new_token
from lessor.model.grant import ClaimRequest, Result
from lessor.model.worker import NewWorker
from lessor.runner.desk import Plan
from lessor.runner.noting import NoteKind


def held(shop, *scopes: str, title: str = "other"):
    """Another worker's live grant over `scopes`."""
    task = shop.add(title, scopes=scopes, priority=1000)
    worker = shop.lessor.registry.add_worker(NewWorker(agent="codex-1"))
    (grant,) = shop.lessor.leases.claim(
        ClaimRequest(
            worker=worker.id,
            request_id=new_request_id(),
            secret=new_token(),
            repository=shop.repository,
            task=task,
        )
    )
    return grant


def write(path: str) -> str:
    return f'mkdir -p "$(dirname "{path}")"; echo work >> "{path}"'


def test_a_scope_grows_over_the_directory_of_a_path_that_nobody_has(shop):
    task = shop.add()
    assert shop.run(write("src/tax/new.py")) == 0
    assert shop.task(task).scopes == ("src/tax",)
    assert shop.notes.texts(NoteKind.WIDENED) == ["took src/tax"]


def test_all_that_a_result_takes_is_told_together(shop):
    held(shop, "src/tax/rate.py")
    shop.add()
    paths = ("a/x", "b/x", "c/x", "docs/new.md", "src/tax/new.py")
    assert shop.run("; ".join(write(path) for path in paths)) == 0
    assert shop.notes.texts(NoteKind.WIDENED) == ["took a, b, c and 2 more"]


def test_a_scope_grows_over_the_package_where_there_is_one(shop):
    shop.write("services/billing/pyproject.toml", "[project]\n")
    shop.commit("a package")
    task = shop.add()
    shop.run(write("services/billing/deep/down/client.py"))
    assert shop.task(task).scopes == ("services/billing",)


def test_what_lies_in_the_scope_already_takes_nothing(shop):
    task = shop.add(scopes=("src",))
    shop.run(write("src/tax/new.py"))
    assert shop.task(task).scopes == ("src",)
    assert not shop.notes.of(NoteKind.WIDENED)


def test_a_path_that_another_lease_holds_goes_back_with_commit_and_holder(shop):
    held(shop, "src/tax")
    task = shop.add()
    agent = f'cp "$LESSOR_BRIEF" "$0.brief-$LESSOR_ROUND"; {write("src/tax/new.py")}; git add -A; git commit -qnm x'
    assert shop.run(agent, rounds=2) == 8
    assert shop.task(task).state == "needs_person"
    brief = (shop.directory / "agent.sh.brief-2").read_text()
    commit = next(line for line in brief.splitlines() if "src/tax/new.py (commit " in line)
    assert "belongs to #1 (codex-1)" in commit
    assert shop.task(task).scopes == ()


def test_a_held_path_is_told_with_its_holder_and_what_helps(shop):
    """It is no failed check: nothing was checked."""
    held(shop, "src/tax")
    task = shop.add()
    number = shop.task(task).number
    agent = f"{write('src/tax/new.py')}; {write('src/tax/old.py')}"
    assert shop.run(agent, rounds=2) == 8
    holder = "src/tax/new.py, src/tax/old.py belong to #1 (codex-1)"
    assert shop.notes.texts(NoteKind.HELD) == [f"{holder}; told the agent, try 2 of 2"]
    assert not shop.notes.of(NoteKind.CHECK_FAILED)
    step = f'When #1 is done: lessor answer {number} "go on".'
    assert shop.task(task).said == f"After 2 rounds: {holder}. {step}"


def test_each_holder_of_held_paths_is_told(shop):
    held(shop, "src/tax")
    held(shop, "docs", title="another")
    task = shop.add()
    assert shop.run(f"{write('src/tax/new.py')}; {write('docs/new.md')}", rounds=1) == 8
    said = shop.task(task).said
    assert "docs/new.md belongs to #2 (codex-1); src/tax/new.py belongs to #1 (codex-1)" in said
    assert "When #1 and #2 are done" in said


def test_an_agent_that_takes_a_held_path_out_as_it_was_told_succeeds(shop):
    held(shop, "src/tax")
    task = shop.add()
    agent = (
        f'if [ "$LESSOR_ROUND" = 1 ]; then {write("src/tax/new.py")}; {write("docs/new.md")}; '
        "git add -A; git commit -qnm both; else git reset -q --soft $LESSOR_BASE; "
        "git restore --source=$LESSOR_BASE --staged --worktree -- src/tax/new.py; fi"
    )
    assert shop.run(agent) == 0
    assert shop.shown(task, "docs/new.md") == "work"
    assert "src/tax/new.py" not in git(shop.root, "ls-tree", "-r", "--name-only", shop.branch(task))


FOLLOW = 'eval "$(sed -n \'s/^Take them out, and keep the rest: //p\' "$LESSOR_BRIEF")"'
"""Does what the gate told the agent to do."""

# What the hooks of the worktree didn't see: they are asked before, and this gate after all is done.
COMMIT = "git add -A; git commit -q --no-verify -m"
UNDONE = f"{write('src/tax/rate.py')}; {COMMIT} one; git revert --no-edit HEAD"
MERGE = "git checkout -qb side $LESSOR_BASE; git commit -q --allow-empty -m side; git checkout -q -"
VIOLATIONS = {
    "edit": write("src/tax/rate.py"),
    "new file": write("src/tax/new.py"),
    "undone": UNDONE,
    "deletion": "git rm -q src/tax/rate.py",
    "rename away": "git mv src/tax/rate.py docs/rate.py",
    "rename into": "git mv docs/index.md src/tax/index.md",
    "mode": "chmod +x src/tax/rate.py",
    "link": "ln -sf /etc/passwd src/tax/rate.py",
    "new link": "ln -s ../../README src/tax/link",
    "directory to file": "git rm -rq src/tax; echo file > src/tax",
    "gitlink": 'git update-index --add --cacheinfo "160000,$LESSOR_BASE,src/tax/module"; '
    "git commit -q --no-verify -m module",
    "hidden in a merge": f"{MERGE}; git merge -q --no-commit --no-ff side; "
    f"{write('src/tax/rate.py')}; {COMMIT} merged",
    "merge of three": f"{MERGE}; git checkout -qb third side; {write('src/tax/new.py')}; "
    f'{COMMIT} third; git checkout -q "$LESSOR_BRANCH"; git commit -q --allow-empty -m mine; '
    "git checkout -qb fourth side; git commit -q --allow-empty -m fourth; "
    'git checkout -q "$LESSOR_BRANCH"; git merge -q --no-edit third fourth',
}


@pytest.mark.parametrize("kind", VIOLATIONS)
def test_every_kind_of_violation_names_its_commit_and_the_command_that_takes_it_out(shop, kind):
    held(shop, "src/tax")
    task = shop.add()
    copy = 'cp "$LESSOR_BRIEF" "$0.brief"'
    agent = (
        f'if [ "$LESSOR_ROUND" = 1 ]; then {write("docs/new.md")}; git add -A; git commit -qm docs; '
        f"{VIOLATIONS[kind]}; else {copy}; {FOLLOW}; fi"
    )
    assert shop.run(agent, rounds=2) == 0, shop.task(task).said
    told = (shop.directory / "agent.sh.brief").read_text()
    (line, *_) = [line for line in told.splitlines() if line.startswith("- src/tax")]
    commit = line.partition("(commit ")[2][:12]
    assert git(shop.root, "cat-file", "-t", commit) == "commit"
    # A gitlink without its directory is a deletion by the time that leftovers are committed.
    assert ("undone since" in line) is (kind in {"undone", "gitlink"})
    assert "lessor widen 2 src/tax" in told
    assert shop.shown(task, "docs/new.md") == "work"
    changed = git(shop.root, "diff", "--name-only", "main", shop.branch(task)).split()
    assert not [path for path in changed if path.startswith("src/tax")]
    every = git(shop.root, "log", "--format=", "--name-only", f"main..{shop.branch(task)}").split()
    assert not [path for path in every if path.startswith("src/tax")]


def test_what_drops_the_other_side_of_a_merge_is_a_violation(shop):
    """`-s ours` undoes what main has, in a file that the task may not touch."""
    task = shop.add()
    held(shop, "src/tax")
    go, ready = shop.directory / "go", shop.directory / "ready"
    agent = (
        f'if [ "$LESSOR_ROUND" = 1 ]; then touch {ready}; while [ ! -e {go} ]; do sleep 0.05; done; '
        f"{write('docs/new.md')}; git add -A; git commit -qm docs; "
        f'git merge -q --no-edit -s ours main; else cp "$LESSOR_BRIEF" "$0.brief"; {FOLLOW}; fi'
    )
    started = shop.start(agent, rounds=2)
    until(ready.exists, "the agent works")
    shop.write("src/tax/rate.py", "rate = 7\n")
    shop.commit("rate: lower it")
    go.touch()
    assert started.result() == 0
    assert "- src/tax/rate.py (commit " in (shop.directory / "agent.sh.brief").read_text()
    assert shop.shown(task, "src/tax/rate.py") == "rate = 7"
    assert git(shop.root, "diff", "--name-only", "main", shop.branch(task)) == "docs/new.md"


def test_a_path_that_was_changed_and_undone_is_taken_where_nobody_has_it(shop):
    """The commits travel with the result, and the remote judges each of them."""
    task = shop.add()
    assert shop.run(f"{UNDONE}; {write('docs/new.md')}") == 0
    assert set(shop.task(task).scopes) == {"docs", "src/tax"}


def test_one_file_is_taken_where_its_directory_is_partly_held(shop):
    held(shop, "src/tax/rate.py")
    task = shop.add()
    assert shop.run(write("src/tax/new.py")) == 0
    assert shop.task(task).scopes == ("src/tax/new.py",)


def test_a_path_that_a_later_grant_took_since_the_base_is_refused(shop):
    """The other is done and gone, but this work began before it and doesn't have its changes."""
    task = shop.add()
    go, ready = shop.directory / "go", shop.directory / "ready"
    agent = f"touch {ready}; while [ ! -e {go} ]; do sleep 0.05; done; {write('src/tax/new.py')}"
    started = shop.start(agent, rounds=1)
    until(ready.exists, "the agent works")
    other = held(shop, "src/tax")
    shop.lessor.leases.complete_one(other.holder, Result())
    go.touch()
    assert started.result() == 8
    said = shop.task(task).said
    assert "src/tax/new.py was taken meanwhile by #2 (codex-1)" in said
    assert "bring in what #2 changed" in said


def test_a_strict_task_is_confined(shop):
    task = shop.add(scopes=("docs",), strict=True)
    agent = f'cp "$LESSOR_BRIEF" "$0.brief"; {write("docs/new.md")}; {write("src/new.py")}'
    assert shop.run(agent, rounds=1) == 8
    assert "src/new.py" in shop.task(task).said
    assert "docs/new.md" not in shop.task(task).said
    assert shop.task(task).scopes == ("docs",)
    assert "confined" in (shop.directory / "agent.sh.brief").read_text()


@pytest.mark.parametrize(
    ("work", "paths"),
    [
        ("git rm -q src/tax/rate.py", ("src/tax",)),
        ("git mv docs/index.md src/tax/index.md", ("docs", "src/tax")),
        ("chmod +x src/tax/rate.py", ("src/tax",)),
        ("ln -s ../README docs/link", ("docs",)),
        ("ln -sf /etc/passwd src/tax/rate.py", ("src/tax",)),
        ("git rm -rq docs; echo file > docs", ("docs",)),
        ("printf x > 'docs/line\nbreak'", ("docs",)),
        ("printf x > 'docs/a*b?c'", ("docs",)),
        ("printf x > 'glob:x'", ("path:glob:x",)),
        ("printf x > \"$(printf 'docs/\\377')\"", ("docs",)),
        ("mkdir -p 'src/[id]'; printf x > 'src/[id]/page.tsx'", ("src/[id]",)),
        ("printf x > 'docs/C:\\x'", ("docs",)),
    ],
    ids=[
        *("deletion", "rename", "mode", "link", "file to link", "directory to file"),
        *("line break", "wildcards", "prefix", "not UTF-8", "brackets", "backslash"),
    ],
)
def test_every_kind_of_change_takes_the_paths_that_it_touches(shop, work, paths):
    task = shop.add()
    assert shop.run(work) == 0
    assert shop.task(task).scopes == paths


@pytest.mark.parametrize(
    "work",
    [
        "git mv src/tax/rate.py docs/rate.py",
        "git mv docs/index.md src/tax/index.md",
        "printf x > \"$(printf 'src/tax/\\377')\"",
        "printf x > 'src/tax/line\nbreak'",
    ],
    ids=["rename away", "rename into", "not UTF-8", "line break"],
)
def test_every_kind_of_change_of_a_held_path_is_refused_in_words(shop, work):
    held(shop, "src/tax")
    task = shop.add()
    assert shop.run(work, rounds=1) == 8
    assert "src/tax" in shop.task(task).said
    assert "belongs to #1" in shop.task(task).said


def test_a_file_at_the_root_with_a_name_that_no_scope_has_is_judged(shop):
    """No scope but the whole repository covers it, and that is held in part."""
    held(shop, "docs")
    task = shop.add()
    assert shop.run("printf x > \"$(printf '\\377')\"", rounds=1) == 8
    assert shop.task(task).state == "needs_person"


def test_a_tree_that_no_checkout_could_hold_is_refused(shop):
    """git hash-object and mktree write what git itself never checks out."""
    task = shop.add(max_attempts=1)
    agent = (
        "blob=$(echo x | git hash-object -w --stdin); "
        "inner=$(printf '100644 blob %s\\tconfig\\n' $blob | git mktree); "
        "tree=$( (git ls-tree HEAD; printf '040000 tree %s\\t.git\\n' $inner) | git mktree); "
        'commit=$(git commit-tree $tree -p HEAD -m evil); git update-ref "refs/heads/$LESSOR_BRANCH" $commit'
    )
    assert shop.run(agent, rounds=1) in {1, 8}
    assert shop.task(task).state in {"needs_person", "quarantined"}


def test_a_repository_that_folds_case_is_judged_by_its_own_rules(shop):
    folding = shop.lessor.registry.add_repository("folding", fold_case=True)
    shop.repository = folding.id
    task = shop.add(scopes=("SRC",))
    assert shop.run(write("src/tax/new.py")) == 0
    assert not shop.notes.of(NoteKind.WIDENED)
    assert shop.task(task).scopes == ("SRC",)


def test_a_repository_that_tells_case_apart_does_so(shop):
    task = shop.add(scopes=("SRC",))
    assert shop.run(write("src/tax/new.py")) == 0
    assert shop.task(task).scopes == ("SRC", "src/tax")


def test_names_in_another_unicode_form_are_one_name(shop):
    shop.add(scopes=("caf\u00e9",))
    assert shop.run(write("cafe\u0301/menu")) == 0
    assert not shop.notes.of(NoteKind.WIDENED)


def beside_a_commit_on_main(shop, work: str) -> int:
    """What a run comes to whose agent does `work` once somebody else has changed the rate on main."""
    go, ready = shop.directory / "go", shop.directory / "ready"
    started = shop.start(f"touch {ready}; while [ ! -e {go} ]; do sleep 0.05; done; {work}")
    until(ready.exists, "the agent works")
    shop.write("src/tax/rate.py", "rate = 7\n")
    shop.commit("rate: lower it")
    go.touch()
    return started.result()


def test_commits_of_the_target_that_were_merged_in_are_not_the_agents(shop):
    held(shop, "src/tax")
    task = shop.add()
    work = f"git merge -q --no-edit main; {write('docs/new.md')}"
    assert beside_a_commit_on_main(shop, work) == 0
    assert shop.task(task).scopes == ("docs",)
    assert shop.shown(task, "src/tax/rate.py") == "rate = 7"


@pytest.mark.parametrize("ref", ["refs/remotes/origin/main", "refs/heads/main"])
def test_a_commit_of_the_agents_own_is_judged_wherever_it_puts_its_target(shop, ref):
    """As an agent does that pushes to the target by itself, or merges its branch there."""
    task = shop.add(scopes=("docs",), strict=True)
    agent = (
        f"{write('src/tax/rate.py')}; git add -A; git commit -q --no-verify -m 'rate: raise it'; "
        f"git update-ref {ref} HEAD; {write('docs/new.md')}"
    )
    assert shop.run(agent, rounds=1) == 8
    assert "src/tax/rate.py" in shop.task(task).said


def test_a_commit_that_lessor_labelled_is_judged_wherever_the_agent_puts_its_target(shop):
    """The label makes it another commit, and its reflog has no word of the agent's for that one."""
    task = shop.add(scopes=("docs",), strict=True)
    again, twice = shop.directory / "again", shop.directory / "twice"
    agent = (
        f"if [ -e {again} ]; then touch {twice}; git update-ref refs/heads/main HEAD; "
        f"{write('docs/new.md')}; else touch {again}; {write('src/tax/rate.py')}; git add -A; "
        "git -c core.hooksPath=/dev/null commit -q -m 'rate: raise it'; "
        "git -c core.hooksPath=/dev/null commit -q --allow-empty -m more; fi"
    )
    assert shop.run(agent, rounds=2) == 8
    assert twice.exists()
    assert "src/tax/rate.py" in shop.task(task).said


@pytest.mark.parametrize("base", [None, "main"])
def test_what_the_agent_fetched_of_the_target_is_not_its_own(shop, base):
    task = shop.add(scopes=("docs",), strict=True)
    shop.write("src/tax/rate.py", "rate = 7\n")
    shop.commit("rate: lower it")
    git(shop.root, "update-ref", "refs/remotes/origin/main", "HEAD")
    git(shop.root, "reset", "-q", "--hard", "HEAD~1")
    agent = f"git merge -q --no-edit origin/main; {write('docs/new.md')}"
    assert shop.run(agent, rounds=1, base=base) == 0, shop.task(task).said
    assert shop.shown(task, "src/tax/rate.py") == "rate = 7"


@pytest.mark.parametrize(
    "emptied",
    [
        'rm "$(git rev-parse --git-dir)/logs/HEAD"',
        "git reflog expire --expire=now --all",
        "git reflog delete --rewrite HEAD@{0}",
    ],
)
def test_a_commit_of_the_agents_own_is_judged_though_it_empties_the_record_of_its_moves(
    shop, emptied
):
    task = shop.add(scopes=("docs",), strict=True)
    agent = (
        f"{write('src/tax/rate.py')}; git add -A; git commit -q --no-verify -m 'rate: raise it'; "
        f"git update-ref refs/heads/main HEAD; {emptied}; {write('docs/new.md')}"
    )
    assert shop.run(agent, rounds=1) == 8
    assert "src/tax/rate.py" in shop.task(task).said


def test_commits_of_the_target_are_not_the_agents_though_it_put_its_own_there(shop):
    held(shop, "src/tax")
    task = shop.add()
    work = (
        f"{write('docs/own.md')}; git add -A; git commit -q --no-verify -m own; "
        "git merge -q --no-edit main; git update-ref refs/remotes/origin/main HEAD; "
        f"{write('docs/new.md')}"
    )
    assert beside_a_commit_on_main(shop, work) == 0
    assert shop.task(task).scopes == ("docs",)


def test_merging_the_target_alone_is_no_work(shop):
    task = shop.add(max_attempts=1)
    assert beside_a_commit_on_main(shop, "git merge -q --no-edit main") == 1
    assert "Nothing was changed" in shop.task(task).last_error


def test_ten_thousand_files_are_judged_in_few_transactions(shop):
    task = shop.add()
    many = (
        "i=0; while [ $i -lt 100 ]; do mkdir -p d$i; j=0; while [ $j -lt 100 ]; do : > d$i/$j; "
        "j=$((j+1)); done; i=$((i+1)); done; echo x > d0/0"
    )
    assert shop.run(many) == 0
    assert len(shop.task(task).scopes) == 100
    (lease,) = shop.lessor.leases.leases(task=task)
    assert lease.result.facts["files"] == 10_000
    widenings = [e for e in shop.lessor.tasks.history(task) if e.kind == "widened"]
    assert len(widenings) <= 2


def test_many_refused_paths_are_named_up_to_a_bound(shop):
    held(shop, "src/tax")
    task = shop.add()
    many = "i=0; while [ $i -lt 100 ]; do echo x > src/tax/$i; i=$((i+1)); done"
    assert shop.run(many, rounds=1) == 8
    said = shop.task(task).said
    assert "and 17 more belong to #1" in said
    assert "and 77 more weren't asked for any more" in said


def test_a_check_of_the_tasks_own_judges_its_result(shop):
    task = shop.add(check="test -e 1.txt")
    assert shop.run(ADD, plan=Plan(check="false"), rounds=1) == 0
    assert shop.task(task).stage == "verified"
