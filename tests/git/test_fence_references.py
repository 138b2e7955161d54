"""Fence references: made once, closed by compare-and-swap, whatever the remote hides or forbids."""

from __future__ import annotations

from pathlib import Path

import pytest

from lessor.errors import GitError, RemoteUnreachableError
from lessor.git.fence import (
    FENCES,
    _commit,
    _mark,
    ask_fence,
    close_fence,
    close_fences,
    fence_ref,
    fence_tip,
    fences_there,
    first_fence,
    next_fence,
    open_anew,
    open_fence,
)
from lessor.model.label import Label, format_label

LABEL = format_label(Label(owner="claude-1", branch="ai/1-x", env="none", task="1", epoch=1))
REF = fence_ref("lease_a")


@pytest.fixture
def bare(tmp_path: Path, main: Path, git) -> Path:
    place = tmp_path / "origin.git"
    git(tmp_path, "init", "-q", "--bare", "-b", "main", str(place))
    git(main, "remote", "add", "origin", str(place))
    return place


def first(main: Path, lease: str = "lease_a", once: str = "1") -> str:
    return first_fence(main, lease=lease, once=once, label=LABEL, at_ms=1_800_000_000_000)


def following(main: Path, after: str, why: str = "push") -> str:
    return next_fence(main, after=after, why=why, label=LABEL, at_ms=0)


def refs(git, bare: Path) -> str:
    return git(bare, "for-each-ref", "--format=%(refname) %(objectname)", "refs/lessor")


def test_a_fence_begins_with_another_commit_at_every_try(main: Path, git) -> None:
    assert first(main) != first(main, once="2")
    assert first(main) != first(main, "lease_b")
    assert "epoch=1" in git(main, "log", "-1", "--format=%(trailers:key=Lessor-Label)", first(main))
    assert git(main, "ls-tree", first(main)) == ""


def test_a_fence_moves_to_its_child(main: Path, git) -> None:
    moved = following(main, first(main))
    assert git(main, "rev-parse", f"{moved}^") == first(main)
    assert following(main, first(main), "once more") != moved
    assert git(main, "cat-file", "-t", following(main, "1" * 40)) == "commit"


def test_a_fence_is_made_again_without_a_change(main: Path, bare: Path, git) -> None:
    for _ in range(2):
        assert open_fence(main, "origin", REF, first(main), closing={})
        assert refs(git, bare) == f"{REF} {first(main)}"


def test_a_fence_that_was_made_already_is_told_and_made_anew(main: Path, bare: Path, git) -> None:
    other, ended = first(main, once="2"), fence_ref("lease_b")
    open_fence(main, "origin", REF, other, closing={})
    open_fence(main, "origin", ended, first(main, "lease_b"), closing={})
    closing = {ended: [first(main, "lease_b")]}
    assert not open_fence(main, "origin", REF, first(main), closing=closing)
    assert refs(git, bare) == f"{REF} {other}"
    assert not open_anew(main, "origin", REF, first(main), mine=lambda: False)
    assert refs(git, bare) == f"{REF} {other}"
    assert open_anew(main, "origin", REF, first(main), mine=lambda: True)
    assert refs(git, bare) == f"{REF} {first(main)}"


def test_names_of_leases_never_stand_in_each_others_way(main: Path, bare: Path, git) -> None:
    for lease in ("lease_a", "lease_ab", "lease_abc"):
        open_fence(main, "origin", fence_ref(lease), first(main, lease), closing={})
    assert len(refs(git, bare).splitlines()) == 3


def test_what_ended_is_closed_in_the_push_that_opens(main: Path, bare: Path, git) -> None:
    others = {fence_ref(f"lease_{n}"): [first(main, f"lease_{n}")] for n in range(3)}
    for ref, (value,) in others.items():
        open_fence(main, "origin", ref, value, closing={})
    open_fence(main, "origin", REF, first(main), closing=others)
    assert refs(git, bare) == f"{REF} {first(main)}"


def test_a_fence_that_was_never_made_is_proved_to_be_none(main: Path, bare: Path, git) -> None:
    assert close_fence(main, "origin", REF, [first(main)]) is None
    assert refs(git, bare) == ""
    close_fences(main, "origin", {REF: [first(main)]})
    open_fence(main, "origin", REF, first(main), closing={fence_ref("lease_b"): [first(main)]})
    assert refs(git, bare) == f"{REF} {first(main)}"


def test_closing_says_at_which_value_it_was(main: Path, bare: Path, git) -> None:
    open_fence(main, "origin", REF, first(main), closing={})
    found, moved = ask_fence(main, "origin", REF, [first(main)])
    assert found == first(main)
    assert moved is not None
    assert close_fence(main, "origin", REF, [following(main, moved), moved]) == moved


def test_a_question_is_answered_the_same_however_often_it_is_asked(
    main: Path, bare: Path, git
) -> None:
    moved = following(main, first(main))
    assert ask_fence(main, "origin", REF, [first(main), moved]) == (None, None)
    open_fence(main, "origin", REF, moved, closing={})
    answer = ask_fence(main, "origin", REF, [first(main), moved])
    assert answer[0] == moved
    assert ask_fence(main, "origin", REF, [first(main), moved]) == answer
    assert refs(git, bare) == f"{REF} {answer[1]}"


@pytest.mark.parametrize("elsewhere", [False, True])
def test_a_fence_that_a_question_moved_is_closed_by_what_it_was_before(
    main: Path, bare: Path, git, tmp_path: Path, *, elsewhere: bool
) -> None:
    clone = main
    if elsewhere:  # a clone that hasn't the fence's commits asks
        clone = tmp_path / "elsewhere"
        git(tmp_path, "clone", "-q", str(bare), str(clone))
    open_fence(main, "origin", REF, first(main), closing={})
    ask_fence(clone, "origin", REF, [first(main)])
    assert close_fence(main, "origin", REF, [first(main)]) == first(main)
    assert refs(git, bare) == ""


def test_a_reference_that_cant_be_made_is_told(main: Path, bare: Path, git) -> None:
    git(main, "push", "-q", "origin", f"main:{FENCES.rstrip('/')}")
    with pytest.raises(GitError, match="refuses to change"):
        open_anew(main, "origin", REF, first(main), mine=lambda: True)
    with pytest.raises(GitError, match="refuses to change"):
        close_fence(main, "origin", REF, [first(main)])


@pytest.mark.parametrize("hidden", [False, True])
def test_a_value_that_nobody_recorded_is_closed_as_it_is_read(
    main: Path, bare: Path, git, hidden: bool
) -> None:
    if hidden:
        git(bare, "config", "uploadpack.hideRefs", "refs/lessor")
    open_fence(main, "origin", REF, first(main, once="late"), closing={})
    assert close_fence(main, "origin", REF, [first(main)]) is None
    assert refs(git, bare) == ""


def test_fences_are_seen_where_readers_see_none(main: Path, bare: Path, git) -> None:
    assert (fence_tip(main, "origin", REF), fences_there(main, "origin")) == (None, [])
    git(bare, "config", "uploadpack.hideRefs", "refs/lessor")
    git(main, "push", "-q", "origin", "main", f"main:{REF}x/no", f"main:{fence_ref('lease_b')}")
    git(main, "push", "-q", "origin", f"{first(main)}:{REF}")
    assert fence_tip(main, "origin", REF) == first(main)
    assert fence_tip(main, "origin", f"{REF}y") is None
    assert {*fences_there(main, "origin")} == {REF, f"{REF}x/no", fence_ref("lease_b")}
    mark = _mark(main)
    git(main, "push", "-q", "-f", "origin", f"{mark}:{REF}")
    assert fence_tip(main, "origin", REF) == mark
    bare.rename(bare.with_name("away"))
    for look in (lambda: fence_tip(main, "origin", REF), lambda: fences_there(main, "origin")):
        with pytest.raises(RemoteUnreachableError):
            look()


def test_a_remote_that_cant_write_is_never_said_to_have_another_value(
    main: Path, bare: Path, git
) -> None:
    """A directory stands where git writes its lock: as root, no mode keeps anybody from writing."""
    open_fence(main, "origin", REF, first(main), closing={})
    (bare / "refs/lessor").rename(bare / "refs/away")
    (bare / "refs/lessor").symlink_to("/proc/nothing")
    with pytest.raises(GitError, match=r"refuses to change .*nable to create"):
        open_fence(main, "origin", REF, following(main, first(main)), closing={})


def test_what_is_hidden_from_readers_is_closed_all_the_same(main: Path, bare: Path, git) -> None:
    git(bare, "config", "uploadpack.hideRefs", "refs/lessor")
    open_fence(main, "origin", REF, first(main), closing={})
    assert git(main, "ls-remote", "origin") == ""
    assert close_fence(main, "origin", REF, [first(main)]) == first(main)
    assert refs(git, bare) == ""


def test_a_remote_that_takes_only_fast_forwards_takes_a_fence(main: Path, bare: Path, git) -> None:
    git(bare, "config", "receive.denyNonFastForwards", "true")
    open_fence(main, "origin", REF, first(main), closing={})
    assert ask_fence(main, "origin", REF, [first(main)])[0] == first(main)


def test_a_remote_that_lets_nothing_be_deleted_is_told(main: Path, bare: Path, git) -> None:
    open_fence(main, "origin", REF, first(main), closing={})
    hook = bare / "hooks" / "update"
    hook.write_text("#!/bin/sh\ncase $3 in *[!0]*) ;; *) exit 1 ;; esac\n")
    hook.chmod(0o755)
    with pytest.raises(GitError, match="refuses to change"):
        close_fence(main, "origin", REF, [first(main)])


def test_a_remote_that_isnt_there_is_told(main: Path, tmp_path: Path) -> None:
    with pytest.raises(RemoteUnreachableError):
        close_fence(main, str(tmp_path / "none.git"), REF, [first(main)])


def test_two_that_close_a_fence_at_once_dont_stand_in_each_others_way(
    main: Path, bare: Path, git
) -> None:
    """The other's proof that there is none comes between what was read and what is compared."""
    mark = _commit(main, "there was none", label="", at_ms=0)
    git(main, "push", "-q", "origin", f"{mark}:refs/lessor/kept")
    (bare / "once").touch()
    hook = bare / "hooks" / "pre-receive"
    hook.write_text(
        "#!/bin/sh\n"
        f'[ -e once ] && rm once && env -u GIT_QUARANTINE_PATH git update-ref {REF} {mark} ""\n'
        "exit 0\n"
    )
    hook.chmod(0o755)
    assert close_fence(main, "origin", REF, []) is None
    assert not (bare / "once").exists()
    assert REF not in refs(git, bare)
