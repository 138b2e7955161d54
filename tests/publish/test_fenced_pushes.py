"""A push lands while its lease lives, and never after another has it."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from site_of_work import Site, git

from lessor.errors import (
    ConflictError,
    GitError,
    InvalidError,
    LeaseLostError,
    LessorError,
    OutcomeUnknownError,
    PushRefusedError,
)
from lessor.git.fence import ask_fence, fence_ref
from lessor.model.grant import Grant
from lessor.model.intent import UNDER_WAY_MS, Outcome
from lessor.publish.trial import try_remote


class Paused:
    """A push that waits, in a thread of its own, once it knows what the remote has."""

    def __init__(self, site: Site, grant: Grant, commit: str, folder: Path) -> None:
        self._fifo, self._began = folder / "go", folder / "began"
        os.mkfifo(self._fifo)
        git(site.bare, "config", "receive.advertisePushOptions", "true")
        wait = f"timeout 60 cat {self._fifo} > /dev/null"
        site.hook(site.clone, "pre-push", f"echo > {self._began}; {wait}")
        self.refusal: LessorError | None = None
        self._push: Callable[[], object] = lambda: site.push(grant, commit, hooks=True)
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        while not self._began.exists():
            self._thread.join(0.01)

    def resume(self) -> None:
        self._fifo.write_text("go\n")
        self._thread.join()

    def _run(self) -> None:
        try:
            self._push()
        except LessorError as refused:
            self.refusal = refused


def dying(state: str, first: str = "true") -> str:
    """A reference-transaction hook that kills the remote's process at a push of a branch, once."""
    return (
        f'test "$1" = {state} && grep -q refs/heads/ && test ! -e once || exit 0\n'
        f"touch once; {first}; kill -9 $PPID"
    )


def outcomes(site: Site, grant: Grant) -> list[Outcome | None]:
    return [intent.outcome for intent in site.lessor.intents.of_task(grant.task)]


def test_a_push_moves_branch_and_fence_together(site: Site) -> None:
    grant = site.holding("src")
    before, commit = site.fence(grant), site.commit()
    done = site.push(grant, commit)
    assert (done.moved, done.fenced, site.tip(grant)) == (True, True, commit)
    assert git(site.bare, "rev-parse", f"{site.fence(grant)}^") == before
    assert outcomes(site, grant) == [Outcome.DONE]


def test_push_after_push_goes_through_and_the_fence_moves_each_time(site: Site) -> None:
    git(site.bare, "config", "receive.denyNonFastForwards", "true")
    grant, tip, seen = site.holding("src"), None, set()
    for n in range(3):
        tip = site.commit(str(n), on=tip)
        site.push(grant, tip)
        seen.add(site.fence(grant))
    assert site.tip(grant) == tip
    assert len(seen) == 3


def test_what_the_remote_has_already_isnt_sent(site: Site) -> None:
    grant, commit = site.holding("src"), site.commit()
    site.push(grant, commit)
    assert not site.push(grant, commit).moved
    assert outcomes(site, grant) == [Outcome.DONE]


def test_a_holder_whose_lease_is_over_sends_nothing(site: Site) -> None:
    grant, commit = site.holding("src"), site.commit()
    site.lapse()
    with pytest.raises(LeaseLostError):
        site.push(grant, commit)
    assert (site.tip(grant), outcomes(site, grant)) == ("", [])


def test_a_push_that_was_paused_while_another_got_the_task_is_refused(
    site: Site, tmp_path: Path
) -> None:
    late = site.holding("src")
    paused = Paused(site, late, site.commit("late"), tmp_path)
    site.lapse()
    (current,) = site.claim(worker=site.yard.other.id)
    newer = site.commit("newer")
    site.push(current, newer)
    paused.resume()
    assert isinstance(paused.refusal, LeaseLostError)
    assert site.tip(late) == newer
    assert outcomes(site, late) == [Outcome.FAILED, Outcome.DONE]


def test_a_push_that_was_paused_while_its_lease_was_cancelled_is_refused(
    site: Site, tmp_path: Path
) -> None:
    from lessor.publish.fencing import close_ended  # noqa: PLC0415

    late = site.holding("src")
    paused = Paused(site, late, site.commit("late"), tmp_path)
    site.lessor.tasks.cancel([late.task])
    close_ended(site.lessor, site.clone, site.yard.repository.id)
    paused.resume()
    assert isinstance(paused.refusal, LeaseLostError)
    assert site.tip(late) == ""


def test_a_claim_behind_a_paused_push_takes_nothing_over_before_the_remote_was_asked(
    site: Site, tmp_path: Path
) -> None:
    late = site.holding("src")
    other = site.yard.add("overlaps", scopes=["src/app"])
    paused = Paused(site, late, site.commit("late"), tmp_path)
    site.lapse()
    assert site.yard.claim() == []  # the store alone can't tell
    (granted,) = site.claim(task=other.task)
    assert granted.task == other.task
    paused.resume()
    assert isinstance(paused.refusal, LeaseLostError)
    assert site.tip(late) == ""


def test_somebody_elses_commits_are_never_overwritten(site: Site) -> None:
    grant = site.holding("src")
    theirs = site.commit("theirs")
    git(site.clone, "push", "-q", "origin", f"{theirs}:{site.ref(grant)}")
    with pytest.raises(ConflictError, match="doesn't lead to"):
        site.push(grant, site.commit("mine"))
    site.push(grant, site.commit("mine, on theirs", on=theirs))


def test_commits_that_arent_here_are_never_overwritten(site: Site, tmp_path: Path) -> None:
    grant = site.holding("src")
    elsewhere = tmp_path / "elsewhere"
    git(tmp_path, "clone", "-q", str(site.bare), str(elsewhere))
    git(elsewhere, "commit", "-q", "--allow-empty", "-m", "theirs")
    git(elsewhere, "push", "-q", "origin", f"HEAD:{site.ref(grant)}")
    with pytest.raises(ConflictError, match="from elsewhere"):
        site.push(grant, site.commit("mine"))


def test_a_branch_that_moves_meanwhile_is_left_as_it_is(site: Site, tmp_path: Path) -> None:
    grant = site.holding("src")
    paused = Paused(site, grant, site.commit("mine"), tmp_path)
    theirs = site.commit("theirs")
    git(site.bare, "fetch", "-q", str(site.clone), f"{theirs}:{site.ref(grant)}")
    paused.resume()
    assert isinstance(paused.refusal, PushRefusedError)
    assert (site.tip(grant), outcomes(site, grant)) == (theirs, [Outcome.FAILED])


def test_a_refused_push_tells_the_remotes_words_and_can_be_tried_again(site: Site) -> None:
    grant, commit = site.holding("src"), site.commit()
    site.hook(site.bare, "pre-receive", "echo 'not on a Friday' >&2; exit 1")
    with pytest.raises(PushRefusedError, match="not on a Friday"):
        site.push(grant, commit)
    (site.bare / "hooks" / "pre-receive").unlink()
    assert site.push(grant, commit).moved
    assert outcomes(site, grant) == [Outcome.FAILED, Outcome.DONE]


def test_another_remote_than_the_fenced_one_is_refused(site: Site) -> None:
    grant = site.holding("src")
    with pytest.raises(InvalidError, match="fenced at origin"):
        site.push(grant, site.commit(), remote=str(site.bare))
    assert site.tip(grant) == ""


def test_a_remote_of_several_places_is_refused_before_anything_is_sent(
    site: Site, tmp_path: Path
) -> None:
    """One may take what the other refuses, and neither answer would be true."""
    grant, commit = site.holding("src"), site.commit()
    git(tmp_path, "init", "-q", "--bare", str(tmp_path / "second.git"))
    for place in (site.bare, tmp_path / "second.git"):
        git(site.clone, "remote", "set-url", "--add", "--push", "origin", str(place))
    with pytest.raises(GitError, match="2 places"):
        site.push(grant, commit)
    assert site.tip(grant) == ""
    assert site.lessor.intents.of_task(grant.task) == []
    with pytest.raises(GitError, match="2 places"):
        try_remote(site.clone, "origin")


def test_where_nothing_is_fenced_a_push_is_still_the_holders(site: Site) -> None:
    site.lessor.registry.set_fence_remote(site.yard.repository.id, None)
    grant, commit = site.holding("src"), site.commit()
    assert not site.push(grant, commit).fenced
    assert site.tip(grant) == commit
    site.lapse()
    with pytest.raises(LeaseLostError):
        site.push(grant, site.commit("late", on=commit))
    assert site.tip(grant) == commit


@pytest.mark.parametrize("fenced", [True, False])
def test_a_push_that_the_remote_never_answered_is_asked_about_at_once(
    site: Site, *, fenced: bool
) -> None:
    """The remote's process dies after it has moved the references, and before it says so."""
    if not fenced:
        site.lessor.registry.set_fence_remote(site.yard.repository.id, None)
    grant, commit = site.holding("src"), site.commit()
    site.hook(site.bare, "reference-transaction", dying("committed"))
    assert site.push(grant, commit).moved
    assert (site.tip(grant), outcomes(site, grant)) == (commit, [Outcome.DONE])


def test_a_push_that_the_remote_dropped_is_known_not_to_have_landed(site: Site) -> None:
    grant, commit = site.holding("src"), site.commit()
    once = site.bare / "once"
    site.hook(site.bare, "pre-receive", f"test -e {once} || {{ touch {once}; kill -9 $PPID; }}")
    with pytest.raises(PushRefusedError):
        site.push(grant, commit)
    assert outcomes(site, grant) == [Outcome.FAILED]
    assert site.push(grant, commit).moved


def test_while_the_remote_cant_be_asked_the_outcome_stays_unknown(site: Site) -> None:
    grant, commit = site.holding("src"), site.commit()
    away = site.bare.with_name("away")
    site.hook(site.bare, "reference-transaction", dying("committed", f"mv {site.bare} {away}"))
    with pytest.raises(OutcomeUnknownError):
        site.push(grant, commit)
    assert outcomes(site, grant) == [None]
    with pytest.raises(OutcomeUnknownError):
        site.push(grant, commit)
    site.lapse()
    other = site.yard.add("overlaps", scopes=["src"])
    assert site.yard.claim() == []
    away.rename(site.bare)
    (site.bare / "hooks" / "reference-transaction").unlink()
    assert [g.task for g in site.claim(wanted=1)] == [grant.task]
    assert outcomes(site, grant) == [Outcome.DONE]
    assert site.tip(grant) == commit
    assert site.yard.state(other.task) == "queued"


def question_cut_short(site: Site, grant: Grant, commit: str, *, landed: bool) -> None:
    """The remote gave no answer, and the holder died, or lost its lease, when it had asked what became of the push."""
    away = site.bare.with_name("away")
    dies = dying("committed" if landed else "prepared", f"mv {site.bare} {away}")
    site.hook(site.bare, "reference-transaction", dies)
    with pytest.raises(OutcomeUnknownError):
        site.push(grant, commit)
    away.rename(site.bare)
    (site.bare / "hooks" / "reference-transaction").unlink()
    for lock in site.bare.rglob("*.lock"):  # git was killed while it held them
        lock.unlink()
    (intent,) = site.lessor.intents.of_task(grant.task)
    values = [value for value in (intent.publish.fence, intent.publish.next_fence) if value]
    assert ask_fence(site.clone, "origin", fence_ref(grant.lease), values)[0] is not None


@pytest.mark.parametrize("landed", [True, False])
def test_a_holder_whose_question_was_cut_short_asks_again_and_pushes_on(
    site: Site, *, landed: bool
) -> None:
    grant, commit = site.holding("src"), site.commit()
    question_cut_short(site, grant, commit, landed=landed)
    assert site.push(grant, commit).moved is not landed
    further = site.commit("further", on=commit)
    assert site.push(grant, further).moved
    assert site.tip(grant) == further


@pytest.mark.parametrize("landed", [True, False])
def test_the_next_claim_settles_a_push_whose_holder_was_asking(site: Site, *, landed: bool) -> None:
    grant, commit = site.holding("src"), site.commit()
    question_cut_short(site, grant, commit, landed=landed)
    site.lapse()
    (current,) = site.claim()
    assert (current.task, current.epoch) == (grant.task, 2)
    assert outcomes(site, grant) == [Outcome.DONE if landed else Outcome.FAILED]
    assert site.fences() == [current.lease]


def unfenced(site: Site) -> None:
    site.lessor.registry.set_fence_remote(site.yard.repository.id, None)


def test_a_push_that_may_be_under_way_is_not_taken_for_one_that_didnt_land(
    site: Site, tmp_path: Path
) -> None:
    """Nothing there would refuse it: its task and its paths wait, and it lands."""
    unfenced(site)
    late = site.holding("src")
    commit = site.commit("late")
    other = site.yard.add("overlaps", scopes=["src/app"])
    paused = Paused(site, late, commit, tmp_path)
    site.lapse()
    assert site.claim(wanted=5) == []
    assert "may still be under way" in site.lessor.tasks.why(late.task).sentence
    assert "may still be under way" in site.lessor.tasks.why(other.task).sentence
    assert outcomes(site, late) == [None]
    paused.resume()
    assert isinstance(paused.refusal, LeaseLostError)
    assert [grant.task for grant in site.claim(wanted=1)] == [late.task]
    assert (site.tip(late), outcomes(site, late)) == (commit, [Outcome.DONE])


def test_a_push_that_has_had_its_time_counts_as_the_remote_has_it_and_that_is_said(
    site: Site, tmp_path: Path
) -> None:
    unfenced(site)
    late = site.holding("src")
    paused = Paused(site, late, site.commit("late"), tmp_path)
    site.yard.store.advance(UNDER_WAY_MS)
    (current,) = site.claim(task=late.task)
    (intent,) = site.lessor.intents.of_task(late.task)
    assert intent.outcome is Outcome.FAILED
    assert "nothing there would refuse it" in intent.response
    paused.resume()
    with pytest.raises(ConflictError):
        site.push(current, site.commit("newer"))


def test_a_holder_whose_remote_never_answered_is_told_that_nobody_knows(site: Site) -> None:
    """It may still come, as nothing would refuse it; the next push decides."""
    unfenced(site)
    grant, commit = site.holding("src"), site.commit()
    once = site.bare / "once"
    site.hook(site.bare, "pre-receive", f"test -e {once} || {{ touch {once}; kill -9 $PPID; }}")
    with pytest.raises(OutcomeUnknownError, match="would still take it"):
        site.push(grant, commit)
    assert outcomes(site, grant) == [None]
    assert site.push(grant, commit).moved
    assert outcomes(site, grant) == [Outcome.FAILED, Outcome.DONE]
