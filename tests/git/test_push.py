"""Pushing by compare-and-swap: git's own ways around it are closed."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

import lessor.git.push as push_module
from lessor.errors import GitError, RemoteUnreachableError
from lessor.git.fence import close_fence
from lessor.git.push import Fate, Pushed, RefChange, push, remote_tips, tips_below

FENCE = "refs/lessor/fence/lease_a"
WORK = "refs/heads/work"


@pytest.fixture
def bare(tmp_path: Path, main: Path, git) -> Path:
    """A bare repository that is main's origin, with main's branch in it."""
    place = tmp_path / "origin.git"
    git(tmp_path, "init", "-q", "--bare", "-b", "main", str(place))
    git(main, "remote", "add", "origin", str(place))
    git(main, "push", "-q", "origin", "main")
    return place


@pytest.fixture
def commits(main: Path, git) -> list[str]:
    """Five commits in a row; the first is main's."""
    found = [git(main, "rev-parse", "main")]
    for n in range(4):
        tree = git(main, "rev-parse", "main^{tree}")
        found.append(git(main, "commit-tree", "-p", found[-1], "-m", f"{n}", tree))
    return found


def change(ref: str, expected: str | None, new: str | None) -> RefChange:
    return RefChange(ref=ref, expected=expected, new=new)


def tip(git, bare: Path, ref: str) -> str:
    return git(bare, "for-each-ref", "--format=%(objectname)", ref)


def both(
    main: Path, fence: tuple[str | None, str | None], work: tuple[str | None, str | None], **how
) -> list[Fate]:
    pushed = push(main, "origin", [change(FENCE, *fence), change(WORK, *work)], **how)
    return [pushed.fate(FENCE), pushed.fate(WORK)]


def test_references_are_made_moved_and_deleted_from_what_they_have_to_be(
    main: Path, bare: Path, commits, git
) -> None:
    a, b, *_ = commits
    assert both(main, (None, a), (None, a)) == [Fate.MOVED] * 2
    assert both(main, (a, b), (a, b)) == [Fate.MOVED] * 2
    assert remote_tips(main, "origin", FENCE, WORK) == {FENCE: b, WORK: b}
    assert both(main, (b, None), (b, None)) == [Fate.MOVED] * 2
    assert tips_below(main, "origin", "refs/lessor/") == {}


@pytest.mark.parametrize("expected", ["another", "absent"])
def test_a_stale_fence_takes_the_branch_with_it(
    main: Path, bare: Path, commits, git, expected: str
) -> None:
    a, b, c, *_ = commits
    both(main, (None, a), (None, a))
    stale = {"another": c, "absent": None}[expected]
    fence, work = both(main, (stale, b), (a, b))
    assert fence is Fate.STALE
    assert work is Fate.REFUSED
    assert tip(git, bare, WORK) == a


def test_a_fence_that_is_gone_takes_the_branch_with_it(
    main: Path, bare: Path, commits, git
) -> None:
    a, b, *_ = commits
    both(main, (None, a), (None, a))
    git(bare, "update-ref", "-d", FENCE)
    assert both(main, (a, b), (a, b)) == [Fate.STALE, Fate.REFUSED]
    assert tip(git, bare, WORK) == a


def test_what_a_fetch_has_seen_is_no_expectation(main: Path, bare: Path, commits, git) -> None:
    a, b, c, *_ = commits
    both(main, (None, a), (None, a))
    git(main, "push", "-q", "origin", f"{b}:{FENCE}", f"{b}:{WORK}")
    git(
        main,
        "fetch",
        "-q",
        "origin",
        "+refs/lessor/*:refs/lessor/*",
        "+refs/heads/*:refs/remotes/origin/*",
    )
    assert both(main, (a, c), (a, c)) == [Fate.STALE] * 2
    assert tip(git, bare, WORK) == b


@pytest.mark.parametrize("by", ["pushurl", "pushInsteadOf"])
def test_the_place_that_is_pushed_to_is_the_one_that_is_asked(
    main: Path, bare: Path, commits, git, tmp_path: Path, by: str
) -> None:
    """What is fetched from elsewhere says nothing of what a push came to."""
    a, *_ = commits
    fork = tmp_path / "fork.git"
    git(tmp_path, "clone", "-q", "--bare", str(bare), str(fork))
    key = "remote.origin.pushurl" if by == "pushurl" else f"url.{fork}.pushInsteadOf"
    git(main, "config", key, str(fork if by == "pushurl" else bare))
    assert both(main, (None, a), (None, a)) == [Fate.MOVED] * 2
    assert tip(git, bare, WORK) == ""
    assert remote_tips(main, "origin", WORK) == {WORK: a}
    assert tips_below(main, "origin", "refs/lessor/") == {FENCE: a}


def test_a_place_whose_name_reads_as_two_is_asked_nothing(
    main: Path, bare: Path, git, tmp_path: Path
) -> None:
    """Git tells places by the line, and the first half of this one is another repository."""
    git(main, "config", "remote.origin.pushurl", f"{bare}\nx")
    git(tmp_path, "init", "-q", "--bare", f"{bare}\nx")
    with pytest.raises(GitError, match="holds a line end"):
        remote_tips(main, "origin", "refs/heads/main")


@pytest.mark.parametrize(
    "setting",
    [
        ("remote.origin.push", "+refs/heads/*:refs/heads/*"),
        ("remote.origin.mirror", "true"),
        ("push.default", "matching"),
        ("push.useForceIfIncludes", "true"),
    ],
)
def test_no_configuration_switches_the_comparison_off(
    main: Path, bare: Path, commits, git, setting: tuple[str, str]
) -> None:
    a, b, c, *_ = commits
    both(main, (None, a), (None, a))
    git(main, "config", *setting)
    assert both(main, (c, b), (a, b))[0] is Fate.STALE
    assert tip(git, bare, WORK) == a
    assert both(main, (a, b), (a, b)) == [Fate.MOVED] * 2


def test_nothing_else_is_pushed_beside(main: Path, bare: Path, commits, git) -> None:
    git(main, "config", "push.followTags", "true")
    git(main, "tag", "-a", "v1", "-m", "v1", commits[0])
    git(main, "branch", "mine", commits[1])
    push(main, "origin", [change(WORK, None, commits[1])])
    assert git(bare, "for-each-ref", "--format=%(refname)") == "refs/heads/main\nrefs/heads/work"


def test_a_fence_that_goes_between_advertisement_and_update_stops_the_push(
    main: Path, bare: Path, commits, git
) -> None:
    """pre-push runs when the client has read what the remote has, and hasn't sent anything yet."""
    a, b, *_ = commits
    both(main, (None, a), (None, a))
    hook = main / ".git" / "hooks" / "pre-push"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\nenv -u GIT_DIR git -C {bare} update-ref -d {FENCE}\n")
    hook.chmod(0o755)
    assert Fate.MOVED not in both(main, (a, b), (a, b), hooks=True)
    assert tip(git, bare, WORK) == a
    assert not list(bare.rglob("*.lock"))
    git(bare, "update-ref", FENCE, a)
    assert both(main, (a, b), (a, b)) == [Fate.MOVED] * 2  # without hooks: none runs


def test_of_ten_pushes_from_one_fence_one_gets_through(
    main: Path, bare: Path, commits, git
) -> None:
    a = commits[0]
    both(main, (None, a), (None, a))
    tree = git(main, "rev-parse", "main^{tree}")
    wishes = [git(main, "commit-tree", "-p", a, "-m", f"racer {n}", tree) for n in range(10)]
    answers: dict[str, list[Fate]] = {}

    def race(wish: str) -> None:
        answers[wish] = both(main, (a, wish), (a, wish))

    racers = [threading.Thread(target=race, args=(wish,)) for wish in wishes]
    for racer in racers:
        racer.start()
    for racer in racers:
        racer.join()
    won = [wish for wish, fates in answers.items() if fates == [Fate.MOVED] * 2]
    assert len(answers) == 10
    assert [tip(git, bare, WORK), tip(git, bare, FENCE)] == won * 2
    assert not list(bare.rglob("*.lock"))


def test_a_remote_without_atomic_pushes_is_refused_before_anything_is_sent(
    main: Path, bare: Path, commits, git
) -> None:
    git(bare, "config", "receive.advertiseAtomic", "false")
    with pytest.raises(GitError, match="no atomic push"):
        both(main, (None, commits[0]), (None, commits[0]))
    assert tip(git, bare, WORK) == ""


@pytest.mark.parametrize(
    ("key", "value"), [("push.gpgSign", "true"), ("push.pushOption", "ci.skip")]
)
def test_what_the_person_s_settings_ask_of_a_remote_is_told_as_theirs(
    main: Path, bare: Path, commits, git, key: str, value: str
) -> None:
    git(main, "config", key, value)
    for option in ("", "lessor=7.sesame"):
        with pytest.raises(GitError, match="your configuration") as refused:
            push(main, "origin", [change(WORK, None, commits[1])], option=option)
        assert key in refused.value.next_step
    assert tip(git, bare, WORK) == ""


def test_a_hook_that_refuses_is_told_in_its_own_words(main: Path, bare: Path, commits, git) -> None:
    hook = bare / "hooks" / "pre-receive"
    hook.write_text("#!/bin/sh\necho 'not on a Friday' >&2\nexit 1\n")
    hook.chmod(0o755)
    pushed = push(main, "origin", [change(WORK, None, commits[1])])
    assert pushed.fate(WORK) is Fate.REFUSED
    assert any("not on a Friday" in line for line in pushed.said)


def test_why_a_remote_unpacked_nothing_is_told() -> None:
    """As of a read-only disk, where its hooks and its own git say nothing."""
    why = "error: remote unpack failed: unable to create temporary object directory"
    said = (
        why,
        "error: failed to push some refs to 'o.git'",
        "!\ta:b\t[remote rejected] (unpacker error)",
    )
    assert Pushed(fates={}, said=said).why == why
    assert Pushed(fates={}, said=said[1:]).why == "! a:b [remote rejected] (unpacker error)"


def test_a_push_that_the_remote_never_answers_is_unknown(
    main: Path, bare: Path, commits, git
) -> None:
    """The remote's process dies after it has taken what was sent."""
    hook = bare / "hooks" / "pre-receive"
    hook.write_text("#!/bin/sh\nkill -9 $PPID\n")
    hook.chmod(0o755)
    pushed = push(main, "origin", [change(WORK, None, commits[1])])
    assert pushed.fate(WORK) is Fate.UNKNOWN


def test_what_is_shown_to_hooks_is_on_no_command_line(
    main: Path, bare: Path, commits, git, tmp_path: Path
) -> None:
    git(bare, "config", "receive.advertisePushOptions", "true")
    hook = bare / "hooks" / "pre-receive"
    seen = tmp_path / "seen"
    hook.write_text(
        "#!/bin/sh\n"
        f'echo "$GIT_PUSH_OPTION_0 $LESSOR_PUSH" > {seen}\n'
        f"cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' ' ' > {seen}.args\n"
    )
    hook.chmod(0o755)
    pushed = push(main, "origin", [change(WORK, None, commits[1])], option="lessor=7.sesame")
    assert pushed.fate(WORK) is Fate.MOVED
    assert seen.read_text() == "lessor=7.sesame lessor=7.sesame\n"
    assert "receive-pack" in Path(f"{seen}.args").read_text()
    assert "sesame" not in Path(f"{seen}.args").read_text()


def test_a_remote_that_takes_no_options_gets_the_push_without(
    main: Path, bare: Path, commits, git
) -> None:
    seen = bare / "seen"
    hook = bare / "hooks" / "pre-receive"
    hook.write_text(f'#!/bin/sh\necho "$LESSOR_PUSH" > {seen}\n')
    hook.chmod(0o755)
    pushed = push(main, "origin", [change(WORK, None, commits[1])], option="lessor=7.sesame")
    assert pushed.fate(WORK) is Fate.MOVED
    assert seen.read_text() == "lessor=7.sesame\n"  # this remote's hooks are processes here


def test_a_remote_that_isnt_there_is_told_without_credentials(main: Path, bare: Path) -> None:
    gone = "https://dana:hunter2@localhost:1/acme/shop.git"
    with pytest.raises(RemoteUnreachableError) as refused:
        remote_tips(main, gone, WORK)
    assert "hunter2" not in str(refused.value)
    assert "hunter2" not in str(refused.value.facts)
    with pytest.raises(RemoteUnreachableError):
        push(main, str(bare.with_name("none.git")), [change(WORK, None, "1" * 40)])


@pytest.mark.parametrize(
    "words",
    [
        "metrics: connect to stats.example: Connection refused",
        "fatal: unable to access 'https://stats.example/'",
        "fatal: the receiving end does not support --atomic push",
        # What ends a line for others than git.
        "metrics: \u2028fatal: the receiving end does not support --atomic push",
        "metrics: \x0cfatal: the receiving end does not support --atomic push",
        "metrics: \rfatal: the receiving end does not support --atomic push",
    ],
)
def test_a_push_that_is_cut_short_is_never_called_unsent_by_a_hook_s_words(
    main: Path, bare: Path, commits, git, words: str
) -> None:
    before, moved = bare / "hooks" / "pre-receive", bare / "hooks" / "reference-transaction"
    before.write_text(f'#!/bin/sh\necho "{words}" >&2\n')
    moved.write_text('#!/bin/sh\n[ "$1" != committed ] || kill -9 $PPID\n')
    for hook in (before, moved):
        hook.chmod(0o755)
    pushed = push(main, "origin", [change(WORK, None, commits[1])])
    assert tip(git, bare, WORK) == commits[1]
    assert pushed.fate(WORK) is Fate.UNKNOWN


@pytest.mark.parametrize("remote", ["git://localhost:1/a", "http://localhost:1/a", "./none.git"])
def test_a_remote_that_shows_nothing_was_sent_nothing(main: Path, commits, remote: str) -> None:
    with pytest.raises(RemoteUnreachableError):
        push(main, remote, [change(WORK, None, commits[1])])


def test_places_that_do_not_agree_leave_it_unknown(
    main: Path, bare: Path, commits, git, tmp_path: Path
) -> None:
    second = tmp_path / "second.git"
    git(tmp_path, "init", "-q", "--bare", str(second))
    for place in (second, bare):
        git(main, "remote", "set-url", "--add", "--push", "origin", str(place))
    hook = second / "hooks" / "pre-receive"
    hook.write_text("#!/bin/sh\nexit 1\n")
    hook.chmod(0o755)
    pushed = push(main, "origin", [change(WORK, None, commits[1])])
    assert tip(git, bare, WORK) == commits[1]
    assert pushed.fate(WORK) is Fate.UNKNOWN


@pytest.mark.parametrize("key", ["push.recurseSubmodules", "submodule.recurse"])
def test_submodules_are_never_pushed_along(
    main: Path, submodule: str, bare: Path, git, key: str
) -> None:
    """They have remotes of their own, at which nobody's lease is compared."""
    inner = main / submodule
    git(inner, "checkout", "-q", "-b", "side")
    git(inner, "commit", "-q", "--allow-empty", "-m", "more")
    git(main, "add", submodule)
    git(main, "commit", "-q", "-m", "moves it")
    git(main, "config", key, "true" if key == "submodule.recurse" else "on-demand")
    before = git(inner, "ls-remote", "origin")
    moved = change(WORK, None, git(main, "rev-parse", "HEAD"))
    with pytest.raises(GitError, match="Submodules have commits") as told:
        push(main, "origin", [moved])
    assert "git submodule foreach git push" in str(told.value.next_step)
    assert (git(inner, "ls-remote", "origin"), remote_tips(main, "origin", WORK)) == (before, {})
    git(main, "config", key, "no")
    assert push(main, "origin", [moved]).fate(WORK) is Fate.MOVED


def test_a_protocol_that_this_machine_forbids_is_reached_by_no_push_and_no_question(
    main: Path, bare: Path, commits, git, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_ALLOW_PROTOCOL", "https:ssh")
    with pytest.raises(RemoteUnreachableError, match="not allowed"):
        remote_tips(main, "origin", WORK)
    with pytest.raises(RemoteUnreachableError, match="not allowed"):
        push(main, "origin", [change(WORK, None, commits[0])])
    assert tip(git, bare, WORK) == ""


@pytest.fixture
def locked(bare: Path) -> Path:
    """Another push's lock on the branch; that one ends once a second push has come as far."""
    lock = bare / f"{WORK}.lock"
    lock.touch()
    hook = bare / "hooks" / "pre-receive"
    hook.write_text(f"#!/bin/sh\n[ ! -e came ] || rm -f '{lock}'\n: > came\n")
    hook.chmod(0o755)
    return lock


def test_a_push_waits_for_another_one_that_keeps_the_branch_locked(
    main: Path, bare: Path, commits, git, locked: Path
) -> None:
    """It may be a late one, which is going to fail: that refuses no live holder."""
    assert both(main, (None, commits[0]), (None, commits[0])) == [Fate.MOVED] * 2
    assert tip(git, bare, WORK) == commits[0]
    assert not locked.exists()


@pytest.mark.parametrize("lock", [f"{FENCE}.lock", "packed-refs.lock"])
def test_a_lock_that_stays_is_told_as_one_and_no_fence_is_said_to_have_another_value(
    main: Path, bare: Path, commits, git, monkeypatch: pytest.MonkeyPatch, lock: str
) -> None:
    """A deletion takes the lock of packed references as well."""
    monkeypatch.setattr(push_module, "LOCK_PATIENCE_MS", 0)
    both(main, (None, commits[0]), (None, commits[0]))
    (bare / lock).touch()
    pushed = push(main, "origin", [change(FENCE, commits[0], None)])
    assert pushed.locked
    with pytest.raises(RemoteUnreachableError, match=rf"locked .*{lock}"):
        close_fence(main, "origin", FENCE, [commits[0]])
    (bare / lock).unlink()
    assert close_fence(main, "origin", FENCE, [commits[0]]) == commits[0]
