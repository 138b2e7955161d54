"""The gate's hooks: what the person has runs as before, and nothing of theirs is written."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from git_rig import nobody

from lessor.git.command import require_git
from lessor.git.commit import commit_leftovers
from lessor.git.hooks import hooks_folder, install_hooks
from lessor.git.inspection import inspect_worktree
from lessor.git.repository import Repository, find_repository
from lessor.git.worktree import add_worktree, remove_worktree

Git = Callable[..., str]

# Stands in for the gate: says what it was asked, and refuses where a file tells it to.
GATE = """\
import pathlib, sys
here = pathlib.Path(sys.argv[-1])
with open({log!r}, "a") as log:
    log.write(" ".join(sys.argv[1:-1]).replace(str(here), "HERE") + chr(10))
sys.exit(1 if sys.argv[1] in ("paths", "lease") and pathlib.Path({no!r}).exists() else 0)
"""


class Yard:
    """A worktree with hooks whose gate writes down what it is asked."""

    def __init__(self, repo: Repository, worktree: Path, tmp: Path, git: Git) -> None:
        self.repo, self.worktree, self.tmp, self._git = repo, worktree, tmp, git
        self.ran = tmp / "ran"
        self.asked = tmp / "asked"
        self.no = tmp / "no"
        gate = tmp / "gate.py"
        gate.write_text(GATE.format(log=str(self.asked), no=str(self.no)))
        self.gate = [sys.executable, "-S", str(gate)]

    def install(self) -> None:
        install_hooks(self.repo, self.worktree, gate=self.gate, beside={"lease.json": "{}"})

    def hook(self, folder: Path, name: str, text: str = "", *, mode: int = 0o755) -> Path:
        """A hook of the person's that writes down how it was called."""
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / name
        path.write_text(f'#!/bin/sh\necho "{name} $# $0" >> {self.ran}\n{text}\n')
        path.chmod(mode)
        return path

    def commit(self, *args: str, check: bool = True) -> str:
        (self.worktree / "new").write_text(os.urandom(4).hex())
        self._git(self.worktree, "add", "-A")
        return self._git(self.worktree, "commit", "-q", "-m", "work", *args, check=check)

    def names(self) -> list[str]:
        if not self.ran.exists():
            return []
        return [line.partition(" ")[0] for line in self.ran.read_text().splitlines()]

    def gates(self) -> list[str]:
        return [line.split(" ")[0] for line in self.asked.read_text().splitlines()]

    def worktree_hook(self, name: str) -> Path:
        return hooks_folder(self.worktree) / name

    def head(self) -> str:
        return self._git(self.worktree, "rev-parse", "HEAD")


@pytest.fixture
def yard(repo: Repository, worktree: Path, tmp_path: Path, git: Git) -> Yard:
    return Yard(repo, worktree, tmp_path, git)


def everything(top: Path) -> dict[str, tuple[int, bytes]]:
    """Configuration and hook folders, byte by byte."""
    found = [*(top / ".git" / "hooks").rglob("*"), *top.glob(".husky/**/*")]
    found += [top / ".git" / "config", top / ".git" / "config.worktree", top / "lefthook.yml"]
    return {str(p): (p.stat().st_mode, p.read_bytes()) for p in found if p.is_file()}


FLOW = ["pre-commit", "prepare-commit-msg", "commit-msg", "post-commit"]


def plain(yard: Yard, main: Path, git: Git) -> Path:
    return main / ".git" / "hooks"


def husky(yard: Yard, main: Path, git: Git) -> Path:
    git(main, "config", "core.hooksPath", ".husky")
    return yard.worktree / ".husky"  # relative: in each worktree its own


def elsewhere(yard: Yard, main: Path, git: Git) -> Path:
    git(main, "config", "core.hooksPath", str(yard.tmp / "team hooks"))
    return yard.tmp / "team hooks"


def at_home(yard: Yard, main: Path, git: Git) -> Path:
    git(main, "config", "core.hooksPath", "~/hooks")
    return Path.home() / "hooks"


def of_this_worktree(yard: Yard, main: Path, git: Git) -> Path:
    git(main, "config", "extensions.worktreeConfig", "true")
    git(yard.worktree, "config", "--worktree", "core.hooksPath", str(yard.tmp / "own"))
    return yard.tmp / "own"


@pytest.mark.parametrize("place", [plain, husky, elsewhere, at_home, of_this_worktree])
def test_the_persons_hooks_run_as_before(
    yard: Yard, main: Path, git: Git, place: Callable[..., Path]
):
    folder = place(yard, main, git)
    for name in FLOW:
        yard.hook(folder, name)
    yard.commit()
    without = yard.ran.read_text()
    assert yard.names() == FLOW
    yard.ran.unlink()
    yard.install()
    yard.install()  # the next epoch does it again
    yard.commit()
    assert yard.ran.read_text() == without
    assert yard.gates() == ["paths", "label", "unlabel", "label"]


@pytest.mark.parametrize("name", ["team\nhooks", "team\n", "\n"])
def test_hooks_whose_folder_reads_as_two_lines_are_never_left_out(
    yard: Yard, main: Path, git: Git, name: str
):
    folder = yard.tmp / name
    git(main, "config", "core.hooksPath", str(folder))
    yard.hook(folder, "pre-commit")
    yard.hook(folder, "reference-transaction")
    yard.install()
    before = yard.head()
    with pytest.raises(AssertionError, match="holds a line end"):
        yard.commit()
    assert yard.head() == before
    assert yard.worktree_hook("reference-transaction").exists()


def test_without_hooks_of_the_person_only_the_gate_is_asked(yard: Yard):
    yard.install()
    yard.commit()
    assert yard.gates() == ["paths", "label"]


def test_what_the_gate_refuses_is_not_committed_and_no_hook_of_the_person_runs(
    yard: Yard, main: Path, git: Git
):
    yard.hook(main / ".git" / "hooks", "pre-commit")
    yard.install()
    yard.no.touch()
    before = yard.head()
    yard.commit(check=False)
    assert yard.head() == before
    assert yard.names() == []
    yard.commit("--no-verify")
    assert yard.head() != before


@pytest.mark.parametrize("name", ["pre-commit", "prepare-commit-msg", "commit-msg"])
def test_a_hook_of_the_person_that_fails_stops_the_commit(yard: Yard, main: Path, name: str):
    yard.hook(main / ".git" / "hooks", name, "exit 3")
    yard.install()
    before = yard.head()
    yard.commit(check=False)
    assert yard.names() == [name]
    assert yard.head() == before


def test_arguments_input_environment_and_exit_code_reach_the_hook_as_git_gave_them(
    yard: Yard, main: Path, git: Git, tmp_path: Path
):
    hooks = main / ".git" / "hooks"
    text = f'(echo "$@"; cat; env | grep ^GIT_ | sort; pwd) > {yard.tmp}/seen-$N; exit 7'
    origin = tmp_path / "origin.git"
    git(main, "init", "-q", "--bare", str(origin))
    yard.hook(hooks, "pre-push", text.replace("$N", "${SEEN}"))
    seen: list[str] = []
    for turn in ("without", "with"):
        done = subprocess.run(
            ["git", "push", "-q", str(origin), "HEAD:refs/heads/x"],
            cwd=yard.worktree,
            env={**os.environ, "SEEN": turn},
            capture_output=True,
            check=False,
        )
        assert done.returncode == 1, done.stderr
        seen.append((yard.tmp / f"seen-{turn}").read_text())
        yard.install()
    assert "refs/heads/x" in seen[0]
    assert seen[0] == seen[1]
    yard.hook(hooks, "commit-msg", f"env | grep ^GIT_ | sort > {yard.tmp}/env; exit 7")
    exit_code = subprocess.run(
        [str(yard.worktree_hook("commit-msg")), str(yard.no)], cwd=yard.worktree, check=False
    ).returncode
    assert exit_code == 7


def test_a_hook_that_is_not_executable_is_skipped_and_told_of_as_git_does(
    yard: Yard, main: Path, git: Git
):
    yard.hook(main / ".git" / "hooks", "pre-commit", mode=0o644)
    asked = [
        "git",
        "-c",
        "user.name=A",
        "-c",
        "user.email=a@x",
        "commit",
        "--allow-empty",
        "-qm",
        "x",
    ]
    said = [subprocess.run(asked, cwd=yard.worktree, capture_output=True, check=True).stderr]
    yard.install()
    said.append(subprocess.run(asked, cwd=yard.worktree, capture_output=True, check=True).stderr)
    assert b"hook was ignored" in said[0]
    assert b"hook was ignored" in said[1]
    assert yard.names() == []
    git(main, "config", "advice.ignoredHook", "false")
    quiet = subprocess.run(asked, cwd=yard.worktree, capture_output=True, check=True).stderr
    assert b"ignored" not in quiet


def test_the_other_hooks_of_the_person_run_too(yard: Yard, main: Path, git: Git, tmp_path: Path):
    names = ["post-checkout", "post-merge", "pre-rebase", "post-rewrite", "pre-merge-commit"]
    for name in [*names, "pre-push", "reference-transaction", "post-index-change"]:
        yard.hook(main / ".git" / "hooks", name)
    yard.install()
    origin = tmp_path / "origin.git"
    git(main, "init", "-q", "--bare", str(origin))
    yard.commit()
    git(yard.worktree, "checkout", "-q", "-b", "side", "HEAD~1")
    git(yard.worktree, "commit", "-q", "--allow-empty", "-m", "side")
    git(yard.worktree, "merge", "-q", "--no-edit", "@{-1}")
    git(yard.worktree, "checkout", "-q", "--detach", "HEAD^1")
    git(yard.worktree, "rebase", "-q", "side^2")
    git(yard.worktree, "push", "-q", str(origin), "HEAD:refs/heads/x")
    assert set(yard.names()) == {*names, "pre-push", "reference-transaction", "post-index-change"}


def test_a_hook_that_comes_later_runs_too(yard: Yard, main: Path, git: Git):
    yard.install()
    yard.hook(main / ".git" / "hooks", "pre-commit")
    yard.commit()
    yard.hook(yard.tmp / "new place", "pre-commit")
    git(main, "config", "core.hooksPath", str(yard.tmp / "new place"))
    yard.commit()
    assert [line.split(" ", 2)[2] for line in yard.ran.read_text().splitlines()] == [
        str(main / ".git" / "hooks" / "pre-commit"),
        str(yard.tmp / "new place" / "pre-commit"),
    ]


def test_a_push_into_the_worktree_is_taken_as_without_the_gate(
    yard: Yard, main: Path, git: Git, tmp_path: Path
):
    # A hook push-to-checkout would replace what git does by itself.
    git(main, "config", "receive.denyCurrentBranch", "updateInstead")
    yard.install()
    clone = tmp_path / "clone"
    git(tmp_path, "clone", "-q", str(yard.worktree), str(clone))
    branch = git(yard.worktree, "symbolic-ref", "--short", "HEAD")
    git(clone, "checkout", "-q", branch)
    (clone / "pushed").write_text("here\n")
    git(clone, "add", "-A")
    git(clone, "commit", "-q", "-m", "pushed")
    git(clone, "push", "-q", "origin", branch)
    assert (yard.worktree / "pushed").read_text() == "here\n"


@pytest.mark.parametrize("place", [plain, husky, elsewhere])
def test_the_persons_checkout_and_other_worktrees_are_untouched(
    yard: Yard, main: Path, git: Git, tmp_path: Path, place: Callable[..., Path]
):
    place(yard, main, git)
    (main / "lefthook.yml").write_text("pre-commit:\n")
    yard.hook(main / ".git" / "hooks", "pre-commit")
    yard.hook(main / ".husky", "pre-commit")
    sibling = tmp_path / "trees" / "8-1"
    add_worktree(
        yard.repo, path=sibling, branch="ai/8-x", base="main", task="8", epoch=1, reason="task=8"
    )
    git(main, "config", "extensions.worktreeConfig", "true")
    used = [git(top, "config", "--show-scope", "--list") for top in (main, sibling)]
    before = everything(main)
    yard.install()
    yard.commit()
    assert everything(main) == before
    assert [git(top, "config", "--show-scope", "--list") for top in (main, sibling)] == used
    asked = yard.asked.read_text()
    git(sibling, "commit", "-q", "--allow-empty", "-m", "x")
    git(main, "commit", "-q", "--allow-empty", "-m", "x")
    assert yard.asked.read_text() == asked


def test_the_first_time_the_shared_configuration_gets_the_extension_and_nothing_else(
    yard: Yard, main: Path, git: Git
):
    before = git(main, "config", "--local", "--list").split("\n")
    hooks = everything(main)
    yard.install()
    after = git(main, "config", "--local", "--list").split("\n")
    assert [line for line in after if line not in before] == ["extensions.worktreeconfig=true"]
    config = str(main / ".git" / "config")
    changed = everything(main)
    assert {**changed, config: None} == {**hooks, config: None}


def test_a_removed_worktree_leaves_nothing_behind(yard: Yard, main: Path, git: Git):
    git(main, "config", "extensions.worktreeConfig", "true")
    before = everything(main)
    git_dirs = sorted((main / ".git").glob("*"))
    yard.install()
    verdict = inspect_worktree(
        yard.worktree, base=git(main, "rev-parse", "main"), snapshot={}, occupants=nobody
    )
    assert verdict.may_be_removed, verdict.reasons
    remove_worktree(yard.repo, yard.worktree, verdict=verdict, occupants=nobody)
    assert not list((main / ".git" / "worktrees").glob("*"))
    assert everything(main) == before
    assert not set((main / ".git").glob("*")) - {*git_dirs}


def test_a_gate_that_is_gone_refuses_in_words_and_lets_the_person_decide(
    yard: Yard, monkeypatch: pytest.MonkeyPatch
):
    yard.gate = [str(yard.tmp / "removed" / "python")]
    yard.install()
    before = yard.head()
    (yard.worktree / "new").write_text("x")
    asked = [
        "git",
        "-c",
        "user.name=A",
        "-c",
        "user.email=a@x",
        "commit",
        "--allow-empty",
        "-qm",
        "x",
    ]
    done = subprocess.run(asked, cwd=yard.worktree, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "LESSOR_COMMIT_UNASKED=1" in done.stderr
    assert yard.head() == before
    monkeypatch.setenv("LESSOR_COMMIT_UNASKED", "1")
    subprocess.run(asked, cwd=yard.worktree, capture_output=True, check=True)
    assert yard.head() != before


def test_a_bare_repositorys_worktree_gets_its_own_hooks(main: Path, tmp_path: Path, git: Git):
    git(tmp_path, "clone", "-q", "--bare", str(main), "bare.git")
    bare = find_repository(tmp_path / "bare.git")
    path = tmp_path / "trees" / "1-1"
    add_worktree(bare, path=path, branch="ai/1-x", base="main", task="1", epoch=1, reason="task=1")
    yard = Yard(bare, path, tmp_path, git)
    yard.hook(bare.common_dir / "hooks", "pre-commit")
    yard.install()
    yard.commit()
    assert yard.names() == ["pre-commit"]
    assert yard.gates() == ["paths", "label"]


@pytest.mark.skipif(require_git() < (2, 54), reason="this git takes no hooks from configuration")
def test_hooks_that_configuration_names_run_beside_the_gate_and_never_in_lessors_own_commands(
    yard: Yard, main: Path, git: Git, tmp_path: Path
):
    for event in ("pre-commit", "post-commit", "post-checkout", "reference-transaction"):
        git(main, "config", f"hook.mine-{event}.command", f"echo {event} >> {yard.ran}; true")
        git(main, "config", f"hook.mine-{event}.event", event)
    other = tmp_path / "trees" / "8-1"
    add_worktree(
        yard.repo, path=other, branch="ai/8-x", base="main", task="8", epoch=1, reason="task=8"
    )
    (other / "new").write_text("x")
    commit_leftovers(other, message="left", label="owner=x", author=None)
    assert yard.names() == []
    yard.install()
    yard.commit()
    assert {"pre-commit", "post-commit"} <= set(yard.names())
    assert yard.gates() == ["paths", "label"]
    yard.no.touch()
    before = yard.head()
    yard.commit(check=False)
    assert yard.head() == before
