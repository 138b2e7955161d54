"""Hooks of one worktree: Lessor's gate, and after it whatever hook git would have run without it.

They lie in the worktree's own git directory, which `git worktree remove` takes away, and a setting
of that worktree alone names them. The person's folder of hooks is read and never written: husky,
lefthook and pre-commit each think that it is theirs.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path

from lessor.git.configuration import configure_worktree
from lessor.git.layout import Layout, layout_of, linked_layout
from lessor.git.registry import find_linked
from lessor.git.repository import Repository

FOLDER = "lessor-hooks"

_SETTING = "core.hooksPath"
_CHAINED = "lessor.hooksPath"
_FOLDERS = r"^(core|lessor)\.hookspath$"

ALWAYS = (
    *("pre-commit", "pre-merge-commit", "prepare-commit-msg", "commit-msg", "post-commit"),
    *("applypatch-msg", "pre-applypatch", "post-applypatch", "pre-rebase", "post-rewrite"),
    *("post-checkout", "post-merge", "pre-push", "pre-auto-gc", "sendemail-validate"),
)
WHERE_THERE = (
    # Git runs the first two several times in one command, and is another git where it finds
    # push-to-checkout; so these are only passed on where the person has one.
    *("reference-transaction", "post-index-change", "push-to-checkout", "pre-receive", "update"),
    *("proc-receive", "post-receive", "post-update"),
    *("p4-changelist", "p4-prepare-changelist", "p4-post-changelist", "p4-pre-submit"),
)


def hooks_folder(worktree: Path) -> Path:
    """Where the hooks of the linked worktree at `worktree` lie, or would.

    Raises:
        WorktreeError: git knows no worktree there.
    """
    return layout_of(worktree).git_dir / FOLDER


def install_hooks(
    repo: Repository, path: Path, *, gate: Sequence[str], beside: Mapping[str, str]
) -> None:
    """Put the gate before every commit in the linked worktree at `path`; said again, it is renewed.

    Args:
        repo: its repository, whose shared configuration gets `extensions.worktreeConfig` at most.
        path: the worktree.
        gate: the program that is asked, and its first arguments; the hooks' folder is the last.
        beside: files with what it needs to know, by name; kept beside the hooks with mode 0600.

    Raises:
        WorktreeError: There is no such linked worktree.
        GitError: The setting can't be written.
        OSError: The files can't be.
    """
    layout = linked_layout(find_linked(repo, path).path)
    folder = layout.git_dir / FOLDER
    folder.mkdir(exist_ok=True, mode=0o700)
    for name, content in beside.items():
        _write(folder / name, content, mode=0o600)
    text = resources.files("lessor.git").joinpath("hook.sh").read_text(encoding="utf-8")
    script = text.replace("@GATE@", shlex.join(gate))
    own = _own_setting(layout)
    for name in [*ALWAYS, *_rare(layout)]:
        _write(folder / name, script, mode=0o700)
    settings = {_SETTING: str(folder)}
    if own not in {"", str(folder)}:
        settings = {_CHAINED: own, **settings}
    configure_worktree(repo, layout.path, settings)


def _own_setting(layout: Layout) -> str:
    """The folder that this worktree alone was set to, by whoever else."""
    own = str(layout.git_dir / "config.worktree")
    asked = ["config", "--file", own, "--get", _SETTING]
    return layout.git(asked, check=False).text


def _rare(layout: Layout) -> list[str]:
    folder = _their_folder(layout)
    return [name for name in WHERE_THERE if (folder / name).is_file()]


def _their_folder(layout: Layout) -> Path:
    """The folder of hooks that git would use here without Lessor's setting."""
    asked = ["config", "-z", "--show-scope", "--type=path", "--get-regexp", _FOLDERS]
    folder = ""
    ours = str(layout.git_dir / FOLDER)
    said = layout.git(asked, check=False).records
    for scope, setting in zip(said[::2], said[1::2], strict=True):
        # `git` here is told to run no hooks, which is a setting of scope "command".
        if scope != "command":
            value = setting.partition("\n")[2]
            folder = folder if value == ours else value
    return layout.path / folder if folder else layout.common_dir / "hooks"


def _write(path: Path, text: str, *, mode: int) -> None:
    """Write a file whole or not at all: a commit may be running its hook right now."""
    draft = path.with_name(f".{path.name}.new")
    draft.write_text(text, encoding="utf-8")
    draft.chmod(mode)
    draft.replace(path)
