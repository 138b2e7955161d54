"""A worktree that holds what may not be read: said of its task, and the run goes on."""

from __future__ import annotations

import os
import shutil
import subprocess

import pytest
from run_rig import ADD, git

from lessor.runner.noting import NoteKind

LEAVES = {
    "an ignored directory": "mkdir -p build/x; echo mine > build/x/y; chmod 444 build/x",
    "a closed ignored directory": "mkdir -p build/x; echo mine > build/x/y; chmod 0 build/x",
    "a closed tag of a cache": "mkdir -p build; echo mine > build/y; touch build/CACHEDIR.TAG; chmod 0 build/CACHEDIR.TAG",
    "an untracked directory": "mkdir -p src/x; echo mine > src/x/y; chmod 444 src/x",
    "a closed untracked directory": "mkdir -p src/x; echo mine > src/x/y; chmod 0 src/x",
    "a closed tag of untracked files": "mkdir -p x; echo mine > x/y; touch x/CACHEDIR.TAG; chmod 0 x/CACHEDIR.TAG",
    "a directory of tracked files": "echo mine >> src/app.py; chmod 444 src",
    "a closed directory of tracked files": "echo mine >> src/app.py; chmod 0 src",
    "a file": "echo mine > mine; chmod 0 mine",
    "a tracked file": "echo mine >> src/app.py; chmod 0 src/app.py",
    "the worktree": "echo mine > mine; chmod 444 .",
    "the closed worktree": "echo mine > mine; chmod 0 .",
}


def unprivileged() -> tuple[str, ...]:
    """A command that runs another one without root's right to read everything."""
    if os.geteuid() != 0:
        return ()
    if shutil.which("setpriv") is None:
        pytest.skip("root reads everything")
    return ("setpriv", "--bounding-set=-dac_override,-dac_read_search", "--inh-caps=-all")


TOLD = (
    "an untracked directory",
    "a closed untracked directory",
    "a closed directory of tracked files",
)


@pytest.mark.parametrize("end", ["", "; exit 1"], ids=["done", "failed"])
@pytest.mark.parametrize("leaves", LEAVES.values(), ids=LEAVES)
def test_what_an_agent_leaves_unreadable_ends_no_run(shop, leaves, end):
    bad = shop.add("bad", max_attempts=1, priority=9)
    good = shop.add("good", max_attempts=1)
    agent = f'if [ "$LESSOR_NUMBER" = 1 ]; then {leaves}{end}; else echo work > good.txt; fi'
    run = shop.spawn(agent, before=unprivileged())
    assert run.result() in {1, 8}, run.output.read_text()
    assert shop.task(good).state == "succeeded"
    kept = shop.worktree(bad)
    subprocess.run(["chmod", "-R", "u+rwX", kept], check=True)
    assert "mine" in "".join(path.read_text() for path in kept.rglob("*") if path.is_file())


@pytest.mark.parametrize("leaves", [LEAVES[name] for name in TOLD], ids=TOLD)
def test_an_agent_is_told_of_what_it_left_unreadable(shop, leaves):
    """Else its result would lack that, and pass."""
    task = shop.add("bad", max_attempts=1)
    agent = f'if [ "$LESSOR_ROUND" = 1 ]; then {leaves}; else chmod -R u+rwX .; fi'
    run = shop.spawn(agent, before=unprivileged())
    assert run.result() == 0, run.output.read_text()
    (told,) = [note["text"] for note in run.notes() if note["kind"] == NoteKind.SENT_BACK]
    assert "src" in told
    assert git(shop.root, "grep", "-h", "mine", shop.branch(task)) == "mine"


@pytest.mark.parametrize("leaves", [*LEAVES.values()][:3], ids=[*LEAVES][:3])
def test_what_setup_leaves_unreadable_ends_no_run(shop, leaves):
    """As of a container that it started: the worktree stays, as nobody knows what is in it."""
    task = shop.add(max_attempts=1)
    run = shop.spawn(ADD, before=unprivileged(), plan={"setup": leaves})
    assert run.result() == 0, run.output.read_text()
    assert shop.worktree(task).is_dir() is ("TAG" not in leaves)


def test_a_setup_whose_new_files_cant_be_read_is_refused(shop):
    task = shop.add(max_attempts=1)
    setup = "mkdir data; touch data/x; chmod 0 data"
    run = shop.spawn(ADD, before=unprivileged(), plan={"setup": setup})
    assert run.result() == 1, run.output.read_text()
    assert "would take for an agent's work: data" in shop.task(task).last_error
