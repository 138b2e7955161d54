"""Lessor's hooks beside a person's own: put in, renewed, taken out."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from gated import Gated, git

from lessor.errors import GitError
from lessor.git.repository import find_repository
from lessor.git.server_hooks import (
    FOLDER,
    NAMES,
    has_server_hooks,
    install_server_hooks,
    uninstall_server_hooks,
)
from lessor.hook import client

THEIRS = {
    "pre-receive": 'cat >> {seen}; test ! -e refuse || {{ echo "theirs says no" >&2; exit 3; }}',
    "reference-transaction": 'echo "$1" >> {seen}; cat >> {seen}',
}


@pytest.fixture
def hooked(gated: Gated, tmp_path: Path) -> Gated:
    """Hooks of a person's own were there first."""
    uninstall_server_hooks(find_repository(gated.bare))
    for name, text in THEIRS.items():
        gated.hook(name, text.format(seen=tmp_path / name))
    gated.install()
    return gated


def hooks(gated: Gated) -> dict[str, bytes]:
    found = sorted(gated.bare.glob("hooks*/*"))
    return {
        p.relative_to(gated.bare).as_posix(): p.read_bytes()
        for p in found
        if p.is_file() and p.suffix != ".sample"
    }


def test_hooks_are_renewed_and_taken_out_without_a_trace(gated: Gated) -> None:
    repo = find_repository(gated.bare)
    before = hooks(gated)
    assert set(before) == {f"hooks/{name}" for name in NAMES}
    gated.install()
    assert hooks(gated) == before
    assert has_server_hooks(repo)
    assert uninstall_server_hooks(repo)
    assert hooks(gated) == {}
    assert not has_server_hooks(repo)
    assert not uninstall_server_hooks(repo)
    gated.holding("services/billing")
    assert "new branch" in gated.plainly("HEAD")


def test_hooks_that_were_there_go_on_running(hooked: Gated, tmp_path: Path) -> None:
    grant = hooked.holding("services/billing")
    head = hooked.commit("services/billing/a", text="two\n")
    assert "is leased" in hooked.plainly("HEAD")
    assert hooked.push(grant).moved
    zero = "0" * 40
    line = f"{zero} {head} refs/heads/{grant.branch}\n"
    assert (tmp_path / "pre-receive").read_text() == line * 2
    said = (tmp_path / "reference-transaction").read_text()
    said = said.replace(f"preparing\n{line}", "")  # a state that git has from 2.54 on
    assert said == f"prepared\n{line}committed\n{line}"


def test_what_they_refuse_stays_refused(hooked: Gated) -> None:
    (hooked.bare / "refuse").touch()
    said = hooked.plainly("HEAD:refs/heads/mine")
    assert "theirs says no" in said
    assert "lessor:" not in said
    assert hooked.tip("mine") == ""


def test_a_hook_that_goes_by_its_name_and_by_what_lies_around_it_still_refuses(
    gated: Gated,
) -> None:
    """Gitea's hooks are one text that runs what lies in a folder of the hook's name."""
    repo = find_repository(gated.bare)
    uninstall_server_hooks(repo)
    gated.hook("dispatch", 'exec "$(dirname "$0")/$(basename "$0").d/protect"')
    gated.hook("pre-receive.d/protect", 'echo "theirs says no" >&2; exit 1')
    (gated.bare / "hooks" / "pre-receive").symlink_to("dispatch")
    before = hooks(gated)
    gated.install()
    assert "theirs says no" in gated.plainly("HEAD:refs/heads/mine")
    assert gated.tip("mine") == ""
    uninstall_server_hooks(repo)
    assert hooks(gated) == before
    assert (gated.bare / "hooks" / "pre-receive").is_symlink()
    assert not list(gated.bare.glob("hooks.*"))


def test_what_an_installation_that_was_cut_short_left_is_healed(hooked: Gated) -> None:
    """A hook is kept first, and stays where it is until ours takes its place."""
    repo = find_repository(hooked.bare)
    before = hooks(hooked)
    uninstall_server_hooks(repo)
    theirs = hooks(hooked)
    kept = hooked.bare / "hooks.before-lessor" / "pre-receive"
    for heal, expected in ((hooked.install, before), (uninstall_server_hooks, theirs)):
        uninstall_server_hooks(repo)
        kept.parent.mkdir()
        os.link(hooked.bare / "hooks" / "pre-receive", kept)
        heal(*([] if heal == hooked.install else [repo]))
        assert hooks(hooked) == expected


def test_a_folder_of_hooks_that_a_link_shares_is_left_alone(gated: Gated, tmp_path: Path) -> None:
    uninstall_server_hooks(find_repository(gated.bare))
    shared, place = tmp_path / "shared", gated.bare / "hooks"
    place.rename(shared)
    place.symlink_to(shared)
    before = sorted(shared.iterdir())
    with pytest.raises(GitError, match="which others may use, too"):
        gated.install()
    assert sorted(shared.iterdir()) == before


def test_a_folder_of_hooks_deep_in_the_repository_is_served(gated: Gated) -> None:
    uninstall_server_hooks(find_repository(gated.bare))
    git(gated.bare, "config", "core.hooksPath", "custom/hooks")
    (gated.bare / "custom").mkdir()
    gated.install()
    gated.holding("services/billing")
    gated.commit("services/billing/a", text="two\n")
    assert "is leased" in gated.plainly("HEAD")


def test_they_are_put_back_as_they_were(hooked: Gated, tmp_path: Path) -> None:
    hooked.install()
    assert len(hooks(hooked)) == 2 * len(NAMES)
    assert uninstall_server_hooks(find_repository(hooked.bare))
    assert hooks(hooked) == {
        f"hooks/{name}": f"#!/bin/sh\n{text.format(seen=tmp_path / name)}\n".encode()
        for name, text in THEIRS.items()
    }
    assert os.access(hooked.bare / "hooks" / "pre-receive", os.X_OK)


def test_a_hook_that_isnt_switched_on_stays_so(gated: Gated) -> None:
    uninstall_server_hooks(find_repository(gated.bare))
    place = gated.hook("pre-receive", "exit 1")
    place.chmod(0o644)
    gated.install()
    assert "new branch" in gated.plainly("HEAD:refs/heads/mine")
    uninstall_server_hooks(find_repository(gated.bare))
    assert not os.access(place, os.X_OK)


def test_hooks_that_others_use_too_are_left_alone(gated: Gated, tmp_path: Path) -> None:
    uninstall_server_hooks(find_repository(gated.bare))
    shared = tmp_path / "shared"
    shared.mkdir()
    git(gated.bare, "config", "core.hooksPath", str(shared))
    with pytest.raises(GitError, match="which others may use, too"):
        gated.install()
    assert list(shared.iterdir()) == []
    git(gated.bare, "config", "core.hooksPath", "hooks")
    gated.install()
    grant = gated.holding("services/billing")
    gated.commit("services/billing/a", text="two\n")
    assert "is leased" in gated.plainly("HEAD")
    assert gated.push(grant).moved


def test_a_repository_that_is_moved_takes_its_hooks_along(gated: Gated) -> None:
    moved = gated.bare.with_name("a place with 'quotes' and spaces")
    gated.stop()
    gated.bare.rename(moved)
    git(gated.clone, "remote", "set-url", "origin", str(moved))
    there = Gated(yard=gated.yard, bare=moved, clone=gated.clone)
    try:
        grant = there.holding("services/billing")
        there.commit("services/billing/a", text="two\n")
        assert "is leased" in there.plainly("HEAD")
        assert there.push(grant).moved
    finally:
        there.stop()


def test_a_checkout_that_is_pushed_to_can_have_them(gated: Gated, tmp_path: Path) -> None:
    """Not bare: git runs its hooks in `.git`."""
    place = tmp_path / "checkout"
    git(tmp_path, "clone", "-q", str(gated.bare), str(place))
    git(gated.clone, "remote", "set-url", "origin", str(place))
    there = Gated(yard=gated.yard, bare=place / ".git", clone=gated.clone)
    there.install()
    try:
        grant = there.holding("services/billing")
        head = there.commit("services/billing/a", text="two\n")
        assert "is leased" in there.plainly("HEAD")
        assert there.push(grant).moved
        assert there.tip(grant.branch or "") == head
        git(place, "commit", "-q", "--allow-empty", "-m", "its own")
    finally:
        there.stop()


def test_paths_with_quotes_are_run_as_they_are(gated: Gated, tmp_path: Path) -> None:
    odd = tmp_path / "it's $(touch evil) a client.py"
    odd.write_text("raise SystemExit(0)\n")
    install_server_hooks(
        find_repository(gated.bare),
        client=odd,
        base=sys.executable,
        python=sys.executable,
        beside={},
    )
    assert "new branch" in gated.plainly("HEAD:refs/heads/mine")
    assert not (gated.bare / "evil").exists()


def test_what_git_starts_at_every_push_loads_next_to_nothing() -> None:
    """Each of these would be felt: a push runs it twice."""
    code = (
        "import sys; before = set(sys.modules)\n"
        f"exec(open({client.__file__!r}).read(), {{'__name__': 'client'}})\n"
        "print(*sorted(set(sys.modules) - before))"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", f"import os, time\n{code}"],
        capture_output=True,
        check=True,
        text=True,
    )
    assert set(done.stdout.split()) <= {"_socket", "__future__"}


def test_its_folder_is_its_owners_alone(gated: Gated) -> None:
    gated.plainly("HEAD:refs/heads/mine")
    for name in ("gate.json", "gate.lock", "gate.sock", "keeper.log"):
        assert (gated.bare / FOLDER / name).stat().st_mode & 0o077 == 0


def test_a_hook_that_took_the_place_of_ours_never_costs_the_one_that_was_there_first(
    hooked: Gated, tmp_path: Path
) -> None:
    """Somebody else's installer writes over ours; only one can go first."""
    first = f"#!/bin/sh\n{THEIRS['pre-receive'].format(seen=tmp_path / 'pre-receive')}\n".encode()
    hooked.hook("pre-receive", "exit 0")
    before = hooks(hooked)
    with pytest.raises(GitError, match="pre-receive"):
        hooked.install()
    assert hooks(hooked) == before
    assert first in before.values()
    (hooked.bare / "hooks" / "pre-receive").unlink()
    hooked.install()
    assert hooks(hooked)["hooks.before-lessor/pre-receive"] == first
