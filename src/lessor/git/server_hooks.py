"""Lessor's hooks in a repository that is pushed to: put in beside what is there, and taken out whole."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping
from contextlib import suppress
from importlib import resources
from pathlib import Path

from lessor.errors import GitError
from lessor.git.repository import Repository

NAMES = ("pre-receive", "reference-transaction")
FOLDER = "lessor"
PUSHES = "pushes"
BEFORE = ".before-lessor"
"""What the name of the folder of hooks ends with in which those lie that were there before."""
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
    filled = {
        "@CLIENT@": str(client),
        "@BASE@": base,
        "@PYTHON@": python,
        "@GATE@": os.path.relpath(folder, hooks),
        "@BEFORE@": os.path.relpath(_before(hooks / NAMES[0]).parent, hooks),
    }
    for mark, value in filled.items():
        text = text.replace(mark, shlex.quote(value))
    hooks.mkdir(exist_ok=True)
    for name in NAMES:
        place = hooks / name
        if _is_theirs(place):
            _keep(place)
        _link_siblings(hooks)
        _write(place, text.replace("@NAME@", name).encode(), mode=0o755)
    repo.git(["config", "--local", _OPTIONS, "true"])
    return folder


def uninstall_server_hooks(repo: Repository) -> bool:
    """Take the hooks out and put back those that were there; False where there were none of ours."""
    hooks = _hooks(repo)
    found = False
    for name in NAMES:
        place, before = hooks / name, _before(hooks / name)
        ours = place.exists() and not _is_theirs(place)
        found = found or ours
        if os.path.lexists(before) and (ours or not os.path.lexists(place)):
            before.replace(place)  # in one step: no push finds none
        elif ours:
            place.unlink()
        elif _is_kept(place):
            before.unlink()
    _unlink_siblings(hooks)
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
            place = repo.common_dir / found.text
            step = f"git -C {repo.common_dir} config core.hooksPath hooks."
            return _own_folder(repo, Path(os.path.normpath(place)), step)
    place = repo.common_dir / "hooks"
    return _own_folder(repo, place, f"put a directory in the place of the link {place}.")


def _own_folder(repo: Repository, place: Path, step: str) -> Path:
    """The folder of hooks itself, also where a link leads to it; refused outside of the repository."""
    found, around = place.resolve(), repo.common_dir.resolve()
    if found.is_relative_to(around) and found != around:
        return found
    raise GitError(
        f"Git looks for this repository's hooks in {found}, which others may use, too.",
        next_step=f"Give it hooks of its own: {step}",
        hooks=str(found),
    )


def _refuse_two(hooks: Path) -> None:
    for name in NAMES:
        place, before = hooks / name, _before(hooks / name)
        if _is_theirs(place) and os.path.lexists(before) and not _is_kept(place):
            raise GitError(
                f"{place} isn't Lessor's any more, and the hook that was there before Lessor's is "
                f"{before}: only one of them can be kept.",
                next_step=f"Put into one what you need of both, and remove the other: {before}.",
                hook=str(place),
            )


def _is_theirs(place: Path) -> bool:
    return place.exists() and _OURS not in place.read_bytes()


def _before(place: Path) -> Path:
    """Where a hook is kept that ours took the place of: under its own name, in a folder beside its own.

    A hook may go by its name (one program for all hooks, Gitea's `<name>.d`), and by what lies
    around it.
    """
    return place.parent.with_name(place.parent.name + BEFORE) / place.name


def _keep(place: Path) -> None:
    """Keep somebody's hook, which stays where it is until ours takes its place in one step."""
    before = _before(place)
    before.parent.mkdir(exist_ok=True)
    if _is_kept(place):
        return
    try:
        os.link(place, before, follow_symlinks=False)
    except OSError:  # a file system without hard links
        place.replace(before)


def _is_kept(place: Path) -> bool:
    before = _before(place)
    there = os.path.lexists(before) and os.path.lexists(place)
    return there and os.path.samestat(before.lstat(), place.lstat())


def _link_siblings(hooks: Path) -> None:
    """Let a hook that is kept find beside it what it found before."""
    folder = _before(hooks / NAMES[0]).parent
    if not folder.is_dir():
        return
    for sibling in hooks.iterdir():
        hidden = sibling.name.startswith(".") or sibling.suffix == ".sample"
        if not hidden and sibling.name not in NAMES:
            link = folder / sibling.name
            if not os.path.lexists(link):
                link.symlink_to(Path("..", hooks.name, sibling.name))


def _unlink_siblings(hooks: Path) -> None:
    folder = _before(hooks / NAMES[0]).parent
    if folder.is_dir():
        for link in folder.iterdir():
            if link.is_symlink() and link.readlink() == Path("..", hooks.name, link.name):
                link.unlink()
        with suppress(OSError):  # what somebody put there stays
            folder.rmdir()


def _write(place: Path, content: bytes, *, mode: int) -> None:
    """Write a file whole or not at all: a push may be running its hook right now."""
    draft = place.with_name(f".{place.name}.new")
    draft.write_bytes(content)
    draft.chmod(mode)
    draft.replace(place)
