"""Lessor's hooks in a repository that is pushed to: put in beside what is there, and taken out whole."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping
from importlib import resources
from pathlib import Path

from lessor.errors import GitError
from lessor.git.repository import Repository

NAMES = ("pre-receive", "reference-transaction")
FOLDER = "lessor"
PUSHES = "pushes"
_BEFORE = ".before-lessor"
_OURS = b"# Lessor asks about every push"
_OPTIONS = "receive.advertisePushOptions"


def install_server_hooks(
    repo: Repository, *, client: Path, base: str, python: str, beside: Mapping[str, str]
) -> Path:
    """Put the hooks in, before whatever hooks are there; said again, they are renewed.

    Args:
        client: the program that asks.
        base: the interpreter that runs it.
        python: the interpreter that the keeper is started with.
        beside: files with what the keeper needs to know, by name; written with mode 0600.

    Returns:
        The directory in the repository that those files lie in.

    Raises:
        GitError: git looks for hooks outside of the repository, where others would get them too; or
            somebody else's hook has taken the place of ours, and the one before ours waits beside it.
        OSError: a file can't be written.
    """
    hooks = _hooks(repo)
    _refuse_two(hooks)
    folder = repo.common_dir / FOLDER
    (folder / PUSHES).mkdir(parents=True, exist_ok=True, mode=0o700)
    folder.chmod(0o700)
    for name, content in beside.items():
        _write(folder / name, content.encode(), mode=0o600)
    text = resources.files("lessor.git").joinpath("server_hook.sh").read_text(encoding="utf-8")
    filled = {"@CLIENT@": str(client), "@BASE@": base, "@PYTHON@": python}
    for mark, value in filled.items():
        text = text.replace(mark, shlex.quote(value))
    hooks.mkdir(exist_ok=True)
    for name in NAMES:
        place = hooks / name
        if _is_theirs(place):
            place.replace(_before(place))
        _write(place, text.replace("@NAME@", name).encode(), mode=0o755)
    repo.git(["config", "--local", _OPTIONS, "true"])
    return folder


def uninstall_server_hooks(repo: Repository) -> bool:
    """Take the hooks out and put back those that were there; False where there were none of ours."""
    hooks = _hooks(repo)
    found = False
    for name in NAMES:
        place = hooks / name
        if place.exists() and not _is_theirs(place):
            found = True
            place.unlink()
        if _before(place).exists() and not place.exists():
            _before(place).replace(place)
    return found


def has_server_hooks(repo: Repository) -> bool:
    """Whether Lessor's hooks are in."""
    hooks = _hooks(repo)
    return all((hooks / name).exists() and not _is_theirs(hooks / name) for name in NAMES)


def _hooks(repo: Repository) -> Path:
    # Not through `Repository.git`, which looks for no hooks at all.
    asked = ["config", "--type=path", "--get", "core.hooksPath"]
    for scope in ("--local", "--global", "--system"):
        found = repo.git([asked[0], scope, *asked[1:]], check=False)
        if found.code == 0:
            place = Path(os.path.normpath(repo.common_dir / found.text))
            if place.is_relative_to(repo.common_dir):
                return place
            raise GitError(
                f"Git looks for this repository's hooks in {place}, which others may use, too.",
                next_step=f"Give it hooks of its own: git -C {repo.common_dir} config core.hooksPath hooks.",
                hooks=str(place),
            )
    return repo.common_dir / "hooks"


def _refuse_two(hooks: Path) -> None:
    for name in NAMES:
        place, before = hooks / name, _before(hooks / name)
        if _is_theirs(place) and before.exists():
            raise GitError(
                f"{place} isn't Lessor's any more, and the hook that was there before Lessor's is "
                f"{before}: only one of them can be kept.",
                next_step=f"Put into one what you need of both, and remove the other: {before}.",
                hook=str(place),
            )


def _is_theirs(place: Path) -> bool:
    return place.exists() and _OURS not in place.read_bytes()


def _before(place: Path) -> Path:
    return place.with_name(place.name + _BEFORE)


def _write(place: Path, content: bytes, *, mode: int) -> None:
    """Write a file whole or not at all: a push may be running its hook right now."""
    draft = place.with_name(f".{place.name}.new")
    draft.write_bytes(content)
    draft.chmod(mode)
    draft.replace(place)
