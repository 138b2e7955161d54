"""A lease of a fenced repository is handed on only once it is ready at the remote."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from site_of_work import Site, git

import lessor.service.fences as fences_module
import lessor.service.intents as intents_module
from lessor.errors import (
    GitError,
    GrantOverError,
    LeaseLostError,
    NotARepositoryError,
    PushRefusedError,
    RemoteUnreachableError,
    TransitionRefusedError,
)
from lessor.git import fence as git_fence
from lessor.git.fence import FENCES, fence_ref, first_fence
from lessor.git.push import Fate, RefChange, push
from lessor.model.grant import Grant
from lessor.model.intent import Publish
from lessor.publish import fencing
from lessor.publish.claiming import claim_ready
from lessor.publish.fencing import close_ended, make_ready
from lessor.publish.recovering import recover
from lessor.publish.trial import try_remote
from lessor.service.fences import FenceState


def state(site: Site, lease: str) -> FenceState | None:
    found = site.lessor.fences.at(lease, "origin")
    return found.state if found else None


def tried(site: Site, grant: Grant) -> str:
    """What a try to make the lease's reference announced; it was cut short then."""
    oid = first_fence(
        site.clone, lease=grant.lease, once="tried", label=grant.label, at_ms=grant.granted_ms
    )
    site.lessor.fences.announce(grant.holder, remote="origin", oid=oid)
    return oid


def test_claiming_makes_the_leases_own_reference(site: Site) -> None:
    grant = site.holding("src")
    assert site.fences() == [grant.lease]
    assert state(site, grant.lease) is FenceState.OPEN
    assert grant.label in git(site.bare, "log", "-1", "--format=%B", fence_ref(grant.lease))


def test_a_retry_of_the_claim_makes_the_same_again(site: Site) -> None:
    grant = site.holding("src")
    before = site.fence(grant)
    for _ in range(2):
        make_ready(site.lessor, site.clone, grant.holder)
    assert (site.fences(), site.fence(grant)) == ([grant.lease], before)


def test_a_claim_that_was_cut_short_goes_on_at_the_retry(site: Site) -> None:
    """It died after the reference was made and before the lease was on record as ready."""
    site.yard.add(scopes=["src"])
    (grant,) = site.yard.claim()
    oid = tried(site, grant)
    git(site.clone, "push", "-q", "origin", f"{oid}:{fence_ref(grant.lease)}")
    make_ready(site.lessor, site.clone, grant.holder)
    assert state(site, grant.lease) is FenceState.OPEN
    assert site.push(grant, site.commit()).fenced


def test_each_try_to_make_a_reference_has_a_value_of_its_own(site: Site) -> None:
    site.yard.add(scopes=["src"])
    (grant,) = site.yard.claim()
    values = set()
    for _ in range(2):
        away = site.bare.rename(site.bare.with_name("away"))
        with pytest.raises(RemoteUnreachableError):
            make_ready(site.lessor, site.clone, grant.holder)
        away.rename(site.bare)
        announced = site.lessor.fences.at(grant.lease, "origin")
        assert announced
        values.add(announced.oid)
    make_ready(site.lessor, site.clone, grant.holder)
    assert len({*values, site.fence(grant)}) == 3


def test_a_lease_whose_reference_cant_be_made_is_given_back(site: Site) -> None:
    """As where somebody else's push has left folders that this one may not write."""
    task = site.yard.add(scopes=["src"])
    git(site.bare, "update-ref", FENCES.rstrip("/"), "main")
    with pytest.raises(GitError, match="refuses to change"):
        site.claim(task=task.task)
    assert site.lessor.tasks.task(task.task).state == "queued"


def test_a_claim_that_was_cut_short_goes_on_where_readers_see_no_reference(site: Site) -> None:
    git(site.bare, "config", "uploadpack.hideRefs", "refs/lessor")
    site.yard.add(scopes=["src"])
    (grant,) = site.yard.claim()
    git(site.clone, "push", "-q", "origin", f"{tried(site, grant)}:{fence_ref(grant.lease)}")
    make_ready(site.lessor, site.clone, grant.holder)
    assert site.push(grant, site.commit()).fenced


def test_what_came_too_late_to_be_on_record_is_closed_where_readers_see_no_reference(
    site: Site,
) -> None:
    git(site.bare, "config", "uploadpack.hideRefs", "refs/lessor")
    site.yard.add(scopes=["src"])
    (grant,) = site.yard.claim()
    late = tried(site, grant)
    site.lessor.fences.announce(grant.holder, remote="origin", oid="d" * 40)
    git(site.clone, "push", "-q", "origin", f"{late}:{fence_ref(grant.lease)}")
    site.lapse()
    current = site.holding("docs")
    assert site.fences() == [current.lease]


def test_what_an_unanswered_try_brings_back_no_push_expects(site: Site) -> None:
    """It makes the reference of a lease that is over, and a push that is as late comes after it."""
    site.yard.add(scopes=["src"])
    (grant,) = site.yard.claim()
    oid = tried(site, grant)
    make_ready(site.lessor, site.clone, grant.holder)
    late = site.commit("late")
    site.hook(site.bare, "pre-receive", "exit 1")  # it is under way, and isn't there yet
    with pytest.raises(PushRefusedError):
        site.push(grant, late)
    site.hook(site.bare, "pre-receive", "exit 0")
    (intent,) = site.lessor.intents.of_task(grant.task)
    site.lessor.leases.release(grant.holder, reason="gone")
    assert close_ended(site.lessor, site.clone, site.yard.repository.id)
    git(site.clone, "push", "-q", "origin", f"{oid}:{fence_ref(grant.lease)}")
    arrived = push(
        site.clone,
        "origin",
        [
            RefChange(ref=site.ref(grant), expected=None, new=late),
            RefChange(
                ref=fence_ref(grant.lease),
                expected=intent.publish.fence,
                new=intent.publish.next_fence,
            ),
        ],
    )
    assert arrived.fate(fence_ref(grant.lease)) is Fate.STALE
    assert site.tip(grant) == ""


def test_what_an_unanswered_try_brings_back_before_it_is_closed_stays_in_nobodys_way(
    site: Site,
) -> None:
    site.yard.add(scopes=["src"])
    (grant,) = site.yard.claim()
    oid = tried(site, grant)
    make_ready(site.lessor, site.clone, grant.holder)
    site.push(grant, site.commit())
    site.lessor.leases.release(grant.holder, reason="done")
    git(site.clone, "push", "-q", "-f", "origin", f"{oid}:{fence_ref(grant.lease)}")
    current = site.holding("docs")
    assert site.fences() == [current.lease]


@pytest.mark.parametrize("when", ["before it looks", "after it has looked"])
def test_two_processes_of_a_holder_dont_take_each_others_reference(
    site: Site, monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    """The other one makes the lease ready beside this one's look at the remote."""
    site.yard.add(scopes=["src"])
    (grant,) = site.yard.claim()
    git(site.clone, "push", "-q", "origin", f"{tried(site, grant)}:{fence_ref(grant.lease)}")
    look = git_fence.fence_tip

    def beside_another(*args: Any) -> str | None:
        monkeypatch.setattr(git_fence, "fence_tip", look)
        if when == "before it looks":
            make_ready(site.lessor, site.clone, grant.holder)
            return look(*args)
        found = look(*args)
        make_ready(site.lessor, site.clone, grant.holder)
        return found

    monkeypatch.setattr(git_fence, "fence_tip", beside_another)
    with pytest.raises(TransitionRefusedError, match="Another process"):
        make_ready(site.lessor, site.clone, grant.holder)
    assert state(site, grant.lease) is FenceState.OPEN
    assert site.push(grant, site.commit()).fenced


def test_the_claimer_closes_the_references_of_ended_leases(site: Site) -> None:
    first, ended = site.holding("src"), site.holding("docs")
    site.yard.complete(ended)
    assert len(site.fences()) == 2
    site.lapse()
    (second,) = site.claim()
    assert (second.task, second.epoch) == (first.task, 2)
    assert site.fences() == [second.lease]
    assert site.lessor.fences.unclosed(site.yard.repository.id) == []


def test_live_leases_keep_their_references(site: Site) -> None:
    first, second = site.holding("src"), site.holding("docs")
    assert sorted(site.fences()) == sorted([first.lease, second.lease])


def test_an_ended_lease_that_never_had_a_reference_is_in_nobodys_way(site: Site) -> None:
    site.yard.add(scopes=["src"])
    (first,) = site.yard.claim()
    site.lessor.fences.announce(first.holder, remote="origin", oid="1" * 40)
    site.lapse()
    (second,) = site.claim()
    assert site.fences() == [second.lease]
    assert state(site, first.lease) is FenceState.CLOSED


def test_a_lease_that_ends_while_it_is_made_ready_is_told_as_lost(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was among those to be closed then, and git refuses one reference named twice."""
    site.yard.add(scopes=["src"])
    (grant,) = site.yard.claim()
    announce = site.lessor.fences.announce

    def ends_then(*args: Any, **more: Any) -> object:
        fence = announce(*args, **more)
        site.yard.complete(grant)
        return fence

    monkeypatch.setattr(site.lessor.fences, "announce", ends_then)
    with pytest.raises(LeaseLostError):
        make_ready(site.lessor, site.clone, grant.holder)
    assert site.fences() == []


def test_whoever_ends_a_lease_closes_its_reference(site: Site) -> None:
    grant = site.holding("src")
    assert close_ended(site.lessor, site.clone, site.yard.repository.id)
    assert site.fences() == [grant.lease]
    site.yard.complete(grant)
    assert close_ended(site.lessor, site.clone, site.yard.repository.id)
    assert site.fences() == []


def test_what_cant_be_closed_now_the_next_claim_closes(site: Site) -> None:
    grant = site.holding("src")
    site.yard.complete(grant)
    away = site.bare.rename(site.bare.with_name("away"))
    assert not close_ended(site.lessor, site.clone, site.yard.repository.id)
    away.rename(site.bare)
    site.holding("docs")
    assert grant.lease not in site.fences()


def test_without_the_remote_there_is_no_lease(site: Site) -> None:
    site.bare.rename(site.bare.with_name("away"))
    task = site.yard.add(scopes=["src"])
    with pytest.raises(RemoteUnreachableError) as refused:
        site.claim()
    assert "--unfenced" in refused.value.next_step
    found = site.lessor.tasks.task(task.task)
    assert (found.state, found.charged) == ("queued", 0)
    assert site.lessor.leases.leases(live=True) == []


def test_unfenced_means_a_lease_all_the_same_that_isnt_ready(site: Site) -> None:
    site.lessor.registry.set_fence_remote(site.yard.repository.id, "origin", unfenced=True)
    away = site.bare.rename(site.bare.with_name("away"))
    grant = site.holding("src")
    assert state(site, grant.lease) is FenceState.OPENING
    with pytest.raises(RemoteUnreachableError):
        site.push(grant, site.commit())
    away.rename(site.bare)
    assert site.push(grant, site.commit()).fenced
    assert state(site, grant.lease) is FenceState.OPEN


def test_a_remote_that_refuses_gives_no_lease_even_unfenced(site: Site) -> None:
    site.lessor.registry.set_fence_remote(site.yard.repository.id, "origin", unfenced=True)
    site.hook(site.bare, "pre-receive", "exit 1")
    site.yard.add(scopes=["src"])
    with pytest.raises(GitError, match="refuses to change"):
        site.claim()
    assert site.lessor.leases.leases(live=True) == []


def repeated(site: Site, beside: Callable[[], object], failure: type[BaseException]) -> list[Grant]:
    """What a claim's repeat is granted, where the claim fails after what `beside` does meanwhile."""
    site.yard.add(scopes=["src"])
    request = site.yard.request()
    leases = site.lessor.leases

    def claim(_: int) -> list[Grant]:
        return leases.claim(request)

    def give_back(grant: Grant, why: str) -> None:
        leases.release(grant.holder, reason=why)

    def cut_short(*_: Any, **__: Any) -> bool:
        beside()
        raise failure("in the middle")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fencing, "open_fence", cut_short)
        with pytest.raises(failure):
            claim_ready(
                site.lessor, site.clone, site.yard.repository.id, claim, give_back=give_back
            )
    return leases.claim(request)


def test_a_claim_that_is_interrupted_gives_back_what_nobody_heard_of(site: Site) -> None:
    with pytest.raises(GrantOverError):
        repeated(site, lambda: None, KeyboardInterrupt)
    assert site.lessor.leases.leases(live=True) == []


@pytest.mark.parametrize("failure", [GitError, KeyboardInterrupt])
def test_a_claim_that_fails_leaves_the_lease_that_its_repeat_has_handed_on(
    site: Site, failure: type[BaseException]
) -> None:
    def repeat() -> None:
        (lease,) = site.lessor.leases.leases(live=True)
        ref = site.lessor.fences.at(lease.id, "origin")
        assert ref is not None
        git(site.clone, "push", "-q", "origin", f"{ref.oid}:{fence_ref(lease.id)}")
        site.yard.store.sql("UPDATE fence_ref SET state = 'open'")

    (grant,) = repeated(site, repeat, failure)
    assert site.push(grant, site.commit()).fenced


def test_a_repeat_that_fails_leaves_the_lease_that_was_handed_on_unfenced(site: Site) -> None:
    """The remote was away at the first claim; now it is back, and lets nobody make a reference."""
    site.lessor.registry.set_fence_remote(site.yard.repository.id, "origin", unfenced=True)
    task = site.yard.add(scopes=["src"])
    same = {"task": task.task, "request_id": "once", "secret": "one that is long enough"}
    away = site.bare.rename(site.bare.with_name("away"))
    (grant,) = site.claim(**same)
    away.rename(site.bare)
    git(site.bare, "update-ref", FENCES.rstrip("/"), "main")
    with pytest.raises(GitError, match="refuses to change"):
        site.claim(**same)
    assert site.lessor.leases.watch(grant.holder).live


def test_of_several_leases_none_stays_with_nobody_where_one_is_revoked_meanwhile(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A person cancels its task, and its reference is closed, while the claim makes it."""
    site.yard.add(scopes=["src"])
    site.yard.add(scopes=["docs"])
    request, leases = site.yard.request(wanted=2), site.lessor.leases
    first, _ = leases.claim(request)
    git(site.clone, "push", "-q", "origin", f"{tried(site, first)}:{fence_ref(first.lease)}")
    look = git_fence.fence_tip

    def beside_a_person(*args: Any) -> str | None:
        monkeypatch.setattr(git_fence, "fence_tip", look)
        site.lessor.tasks.cancel([first.task])
        assert close_ended(site.lessor, site.clone, site.yard.repository.id)
        return look(*args)

    monkeypatch.setattr(git_fence, "fence_tip", beside_a_person)
    with pytest.raises(LeaseLostError, match="cancelled"):
        claim_ready(
            site.lessor,
            site.clone,
            site.yard.repository.id,
            lambda _: leases.claim(request),
            give_back=lambda grant, why: leases.release(grant.holder, reason=why),
        )
    assert leases.leases(live=True) == []


def test_without_a_clone_a_fenced_repository_gives_no_lease(site: Site) -> None:
    site.yard.add(scopes=["src"])
    leases = site.lessor.leases
    with pytest.raises(NotARepositoryError):
        claim_ready(
            site.lessor,
            None,
            site.yard.repository.id,
            lambda _: site.yard.claim(),
            give_back=lambda grant, why: leases.release(grant.holder, reason=why),
        )
    assert leases.leases(live=True) == []


def test_a_repository_that_isnt_fenced_needs_no_remote(site: Site) -> None:
    site.lessor.registry.set_fence_remote(site.yard.repository.id, None)
    site.bare.rename(site.bare.with_name("away"))
    assert site.holding("src").epoch == 1


def test_a_claimer_that_comes_too_late_leaves_nothing_behind(site: Site) -> None:
    """Its lease ran out, and was closed, before it made its reference."""
    site.yard.add(scopes=["src"])
    (late,) = site.yard.claim()
    oid = tried(site, late)
    site.lapse()
    (current,) = site.claim()
    with pytest.raises(LeaseLostError):
        make_ready(site.lessor, site.clone, late.holder)
    git(site.clone, "push", "-q", "origin", f"{oid}:{fence_ref(late.lease)}")
    with pytest.raises(LeaseLostError):
        site.push(late, site.commit())
    assert site.tip(late) == ""
    assert current.lease in site.fences()


@pytest.mark.parametrize("hidden", [False, True])
def test_a_restored_store_closes_what_it_has_lost(site: Site, hidden: bool) -> None:
    if hidden:
        git(site.bare, "config", "uploadpack.hideRefs", "refs/lessor")
    lost = site.holding("src")
    other = "lease_00000000000000000000000001"
    git(site.clone, "push", "-q", "origin", f"main:{FENCES}{other}")
    store = site.yard.store
    store.sql("DELETE FROM fence_ref")
    store.sql("UPDATE repository SET term = term + 1")
    store.sql("UPDATE lease SET expires_ms = 0")
    grant = site.holding("docs")
    assert sorted(site.fences()) == sorted([grant.lease, other])
    assert lost.lease not in site.fences()


def test_a_restored_store_closes_what_has_moved_since_the_backup(site: Site) -> None:
    moved = site.holding("src")
    before = site.fence(moved)
    site.push(moved, site.commit())
    store = site.yard.store
    store.sql(f"UPDATE fence_ref SET oid = '{before}'")
    store.sql("UPDATE repository SET term = term + 1")
    store.sql("UPDATE lease SET expires_ms = 0, proof = 'rewound'")
    grant = site.holding("docs")
    assert site.fences() == [grant.lease]


def test_a_remote_is_tried_before_it_is_a_fence(site: Site) -> None:
    try_remote(site.clone, "origin")
    assert git(site.bare, "for-each-ref", "refs/lessor") == ""


@pytest.mark.parametrize(
    "setting",
    ["receive.advertiseAtomic=false", "transfer.hideRefs=refs/lessor", "core.hooksPath=refusing"],
)
def test_a_remote_that_cant_be_a_fence_is_told_and_keeps_nothing(site: Site, setting: str) -> None:
    refusing = site.bare / "refusing"
    refusing.mkdir()
    (refusing / "update").write_text("#!/bin/sh\ncase $3 in *[!0]*) ;; *) exit 1 ;; esac\n")
    (refusing / "update").chmod(0o755)
    git(site.bare, "config", *setting.split("="))
    with pytest.raises(GitError):
        try_remote(site.clone, "origin")
    git(site.bare, "config", "--unset", setting.partition("=")[0])
    left = git(site.bare, "for-each-ref", "--format=%(refname)", "refs/lessor")
    assert (left == "") is (setting != "core.hooksPath=refusing")


def test_a_remote_that_does_not_answer_is_asked_once_however_many_pushes_are_in_doubt(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each question may take a minute, and whoever claims waits for it; none keeps another one back."""
    monkeypatch.setattr(intents_module, "MOST_UNSETTLED", 2)
    for n, grant in enumerate([site.holding("a"), site.holding("b"), site.holding("c")]):
        wish = Publish(
            remote="origin",
            ref=site.ref(grant),
            old=None,
            new=site.commit(),
            fence=site.fence(grant),
            next_fence=site.commit(f"fence {n}"),
        )
        site.lessor.intents.announce(grant.holder, wish, secret=f"secret {n}")
        site.lessor.leases.release(grant.holder, reason="gone")
    asked, ssh = tmp_path / "asked", tmp_path / "ssh"
    ssh.write_text(f"#!/bin/sh\necho >> {asked}\nexit 255\n")
    ssh.chmod(0o755)
    monkeypatch.setenv("GIT_SSH_COMMAND", str(ssh))
    monkeypatch.setenv("GIT_SSH_VARIANT", "simple")
    git(site.clone, "remote", "set-url", "origin", "ssh://host.invalid/origin.git")
    assert recover(site.lessor, site.clone, site.yard.repository.id) == []
    assert len(asked.read_text().splitlines()) == 1
    git(site.clone, "remote", "set-url", "origin", str(site.bare))
    assert len(recover(site.lessor, site.clone, site.yard.repository.id)) == 3


@pytest.mark.parametrize("where", ["here", "at a remote of before"])
def test_a_lease_is_ready_only_once_all_that_ended_are_closed_however_many(
    site: Site, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    """They gather while the remote is away; what is listed at once has an end."""
    monkeypatch.setattr(fences_module, "MOST_UNCLOSED", 2)
    grants = [site.holding(scope) for scope in "abcde"]
    if where != "here":
        for grant in grants[:3]:
            site.lessor.fences.announce(grant.holder, remote="away", oid="1" * 40)
    for grant in grants:
        site.lessor.leases.release(grant.holder, reason="done")
    last = site.holding("f")
    assert site.fences() == [last.lease]
    site.lessor.leases.release(last.holder, reason="done")
    assert close_ended(site.lessor, site.clone, site.yard.repository.id)
    assert site.fences() == []
