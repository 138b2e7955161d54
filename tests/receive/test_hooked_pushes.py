"""Pushes to a repository with Lessor's hooks: by holders, zombies, people, and without a store."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from gated import Gated, Paused, git

from lessor.clock import ManualClock, SystemClock
from lessor.errors import LeaseLostError, PushRefusedError
from lessor.git.repository import find_repository
from lessor.git.server_hooks import FOLDER
from lessor.hook import client
from lessor.hook.client import BEAT, SILENCE_S, SOCKET, STALE, YES, question
from lessor.publish.fencing import make_ready
from lessor.publish.recovering import recover
from lessor.receive import keeper as keeping
from lessor.receive.keeper import LOCK, SETTINGS, STORE_IDLE_MS, Keeper, serve


def keeper(gated: Gated) -> int:
    return int((gated.bare / FOLDER / LOCK).read_text())


@pytest.mark.parametrize("gated", ["sqlite", "postgres"], indirect=True)
def test_the_holder_pushes_and_nobody_else_does(gated: Gated) -> None:
    grant = gated.holding("services/billing")
    head = gated.commit("services/billing/a", text="two\n")
    said = gated.plainly("HEAD")
    assert f"{grant.branch} is leased: #{grant.number}, codex-1 holds it at epoch 1" in said
    assert gated.tip(grant.branch) == ""
    assert gated.push(grant).moved
    assert gated.tip(grant.branch) == head
    assert "is leased" in gated.plainly(f":{grant.branch}")
    assert "is leased" in gated.plainly("-f", f"main:{grant.branch}")
    assert gated.tip(grant.branch) == head


@pytest.mark.parametrize("gated", ["sqlite", "postgres"], indirect=True)
def test_a_claim_between_the_two_looks_stops_the_push(gated: Gated, tmp_path: Path) -> None:
    """pre-receive has let it through; under git's lock the lease is another's."""
    late = gated.holding("services/billing")
    gated.commit("services/billing/a", text="late\n")
    paused = Paused(gated, tmp_path, lambda: gated.push(late))
    gated.yard.lessor.leases.release(late.holder)
    assert gated.yard.claim(task=late.task) == []  # nobody knows yet what becomes of the push
    recover(gated.yard.lessor, gated.clone, gated.yard.repository.id)
    current = gated.claim(late.task)
    assert (current.branch, current.epoch) == (late.branch, 2)
    refusal = paused.resume()
    assert isinstance(refusal, LeaseLostError)
    assert gated.tip(late.branch) == ""
    assert not list((gated.bare / "refs").rglob("*.lock"))


def test_a_push_that_the_lock_refuses_is_told_why(gated: Gated, tmp_path: Path) -> None:
    late = gated.holding("services/billing")
    gated.commit("services/billing/a", text="late\n")
    paused = Paused(gated, tmp_path, lambda: gated.push(late))
    gated.yard.lessor.tasks.cancel([late.task])
    refusal = paused.resume()
    intents = gated.yard.lessor.intents.of_task(late.task)
    assert isinstance(refusal, LeaseLostError)
    assert intents[0].outcome is None  # its holder may not say so any more
    assert gated.tip(late.branch) == ""


def test_a_branch_that_is_leased_between_the_two_looks_stops_a_persons_push(
    gated: Gated, tmp_path: Path
) -> None:
    task = gated.yard.add("later", branch="fix/rounding")
    git(gated.clone, "checkout", "-q", "-b", "fix/rounding")
    gated.yard.lessor.tasks.cancel([task.task])
    paused = Paused(gated, tmp_path, lambda: gated.plainly("HEAD"))
    again = gated.yard.add("again", branch="fix/rounding")
    gated.claim(again.task)
    assert "is leased" in str(paused.resume())
    assert gated.tip("fix/rounding") == ""


def test_a_zombie_is_refused_with_what_it_carries_and_what_is_current(gated: Gated) -> None:
    late = gated.holding("services/billing")
    gated.commit("services/billing/a", text="late\n")
    seen = gated.bare / "seen"
    gated.hook("../hooks.before-lessor/pre-receive", f'echo "$GIT_PUSH_OPTION_0" > {seen}; exit 1')
    gated.refused(late)
    ticket = seen.read_text().strip()
    (gated.bare / "hooks.before-lessor" / "pre-receive").unlink()
    gated.yard.lessor.leases.release(late.holder)
    gated.claim(late.task)
    said = gated.plainly("HEAD", LESSOR_PUSH=ticket)
    assert f"it is #{late.number}'s at epoch 1, and that lease is over: it was released" in said
    assert "over: it was released" in gated.plainly("HEAD:refs/tags/v1", LESSOR_PUSH=ticket)
    assert gated.tip(late.branch) == gated.tip("refs/tags/v1") == ""


def test_what_was_announced_for_one_commit_serves_for_no_other(gated: Gated) -> None:
    grant = gated.holding("services/billing")
    gated.commit("services/billing/a", text="one\n")
    seen = gated.bare / "seen"
    gated.hook("../hooks.before-lessor/pre-receive", f'echo "$GIT_PUSH_OPTION_0" > {seen}; exit 1')
    gated.refused(grant)
    ticket = seen.read_text().strip()
    (gated.bare / "hooks.before-lessor" / "pre-receive").unlink()
    assert "settled already" in gated.plainly("HEAD", LESSOR_PUSH=ticket)
    for forged in ("lessor=1.sesame", "lessor=99." + "0" * 64, ticket[:-2] + "zz", "lessor="):
        assert "nobody announced" in gated.plainly("HEAD", LESSOR_PUSH=forged)
    assert gated.tip(grant.branch) == ""


def test_a_branch_waits_for_its_next_holder(gated: Gated) -> None:
    grant = gated.holding("services/billing")
    gated.commit("services/billing/a", text="two\n")
    gated.yard.lessor.leases.release(grant.holder)
    assert "is queued: nobody holds it now" in gated.plainly("HEAD")
    assert gated.tip(grant.branch) == ""


def test_a_result_is_published_and_gone_on_from_by_anybody_and_never_lost(gated: Gated) -> None:
    grant = gated.holding("services/billing")
    base = gated.head()
    result = gated.commit("services/billing/a", text="two\n")
    lessor = gated.yard.lessor
    lessor.leases.complete_one(grant.holder, gated.yard.result(base=base, commit=result))
    assert "new branch" in gated.plainly(f"{result}:refs/heads/{grant.branch}")
    further = gated.commit("README", text="by hand\n")
    gated.plainly(f"{further}:refs/heads/{grant.branch}")
    assert gated.tip(grant.branch) == further
    git(gated.clone, "checkout", "-q", "--detach", base)
    other = gated.commit("services/billing/a", text="another\n")
    said = gated.plainly("-f", f"{other}:refs/heads/{grant.branch}")
    assert f"holds the result of #{grant.number}" in said
    assert "would be deleted" in gated.plainly(f":{grant.branch}")
    assert gated.tip(grant.branch) == further


def test_other_peoples_branches_and_tags_stay_usable(gated: Gated) -> None:
    gated.holding("services/billing")
    gated.commit("services/billing/a", text="two\n")
    assert "new branch" in gated.plainly("HEAD:refs/heads/mine")
    assert "new tag" in gated.plainly("HEAD:refs/tags/v1")
    assert "forced update" in gated.plainly("-f", "main:mine")
    assert "deleted" in gated.plainly(":mine")
    gated.plainly("HEAD:refs/notes/x", "HEAD:refs/heads/one", "HEAD:refs/heads/two")
    assert gated.tip("one") == gated.tip("two") == gated.tip("refs/notes/x") == gated.head()


def test_a_name_with_another_systems_line_end_is_one_name(gated: Gated) -> None:
    """Python splits text at these, git at its own alone."""
    for name in ("a\u2028b", "a\x85b"):
        assert "new branch" in gated.plainly(f"HEAD:refs/heads/{name}")


def test_a_push_of_several_references_is_refused_as_one(gated: Gated) -> None:
    grant = gated.holding("services/billing")
    gated.commit("services/billing/a", text="two\n")
    gated.plainly("HEAD:refs/heads/mine", f"HEAD:refs/heads/{grant.branch}")
    assert gated.tip("mine") == gated.tip(grant.branch) == ""


def test_a_repository_can_refuse_what_isnt_leased(gated: Gated) -> None:
    git(gated.bare, "config", "lessor.unleased", "refuse")
    git(gated.bare, "config", "lessor.exempt", "refs/tags/*")
    git(gated.bare, "config", "--add", "lessor.exempt", "refs/heads/release/*")
    grant = gated.holding("services/billing")
    gated.commit("services/billing/a", text="two\n")
    assert "belongs to no lease" in gated.plainly("HEAD:refs/heads/mine")
    assert "belongs to no lease" in gated.plainly("HEAD:refs/notes/x")
    assert "new tag" in gated.plainly("HEAD:refs/tags/v1")
    assert "new branch" in gated.plainly("HEAD:refs/heads/release/1")
    assert gated.push(grant).moved
    git(gated.bare, "config", "lessor.unleased", "perhaps")
    assert "lessor.unleased is 'perhaps'" in gated.plainly("HEAD:refs/heads/mine")


def test_a_store_that_was_moved_away_is_asked_no_more(gated: Gated) -> None:
    """The keeper has it open: what is read there is what was, and nothing that was granted since."""
    path = gated.yard.store.path
    other, away = path.with_name("other.db"), path.with_name("away.db")
    # By a process of its own: to close a file here would drop the locks that the store has on it.
    copy = "import sqlite3, sys; a, b = map(sqlite3.connect, sys.argv[1:]); a.backup(b); b.close()"
    subprocess.run([sys.executable, "-c", copy, path, other], check=True)
    grant = gated.holding("services/billing")
    gated.commit("services/billing/a", text="two\n")
    assert "is leased" in gated.plainly("HEAD")
    for end in ("", "-wal", "-shm"):
        path.with_name(path.name + end).rename(away.with_name(away.name + end))
    assert f"{path} isn't there" in gated.plainly("HEAD")
    assert gated.tip(grant.branch) == ""
    other.rename(path)  # it knows of no lease
    assert "new branch" in gated.plainly("HEAD")


def test_where_nobody_can_be_asked_no_branch_moves(gated: Gated) -> None:
    grant = gated.holding("services/billing")
    gated.commit("services/billing/a", text="two\n")
    git(gated.bare, "config", "lessor.exempt", "refs/heads/release/*")
    away = gated.yard.store.path.with_name("away.db")
    gated.install(store=f"sqlite://{away}")
    gated.stop()
    for said in (gated.plainly("HEAD"), gated.plainly("HEAD:mine"), gated.refused(grant)):
        assert "nobody can say whether this is leased" in said
        assert f"{away} isn't there" in said
    assert "new tag" in gated.plainly("HEAD:refs/tags/v1")
    assert "new branch" in gated.plainly("HEAD:refs/heads/release/1")
    assert not away.exists()
    away.symlink_to(gated.yard.store.path)
    assert "is leased" in gated.plainly("HEAD")
    assert "new branch" in gated.plainly("HEAD:refs/heads/mine")


@pytest.mark.parametrize("what", ["client", "folder"])
def test_where_no_keeper_can_be_started_no_branch_moves(gated: Gated, what: str) -> None:
    hook = gated.bare / "hooks" / "pre-receive"
    if what == "client":
        hook.write_text(hook.read_text().replace("client.py", "gone.py"))
    else:
        shutil.rmtree(gated.bare / FOLDER)
    assert "lessor: refused" in gated.plainly("HEAD:refs/heads/mine")
    assert gated.tip("mine") == ""


def test_a_keeper_that_was_killed_between_the_two_looks_is_replaced(
    gated: Gated, tmp_path: Path
) -> None:
    grant = gated.holding("services/billing")
    head = gated.commit("services/billing/a", text="two\n")
    paused = Paused(gated, tmp_path, lambda: gated.push(grant))
    first = keeper(gated)
    os.kill(first, signal.SIGKILL)
    assert getattr(paused.resume(), "moved", False)
    assert gated.tip(grant.branch) == head
    assert keeper(gated) != first


def test_no_push_waits_for_a_keeper_that_was_stopped(gated: Gated, tmp_path: Path) -> None:
    own = Path(client.__file__)
    hasty = tmp_path / "client.py"
    text = own.read_text().replace("__file__", repr(str(own)))
    assert f"SILENCE_S = {SILENCE_S}\n" in text
    hasty.write_text(text.replace(f"SILENCE_S = {SILENCE_S}\n", "SILENCE_S = 0.5\n"))
    gated.plainly("HEAD:refs/heads/mine")
    hook = gated.bare / "hooks" / "pre-receive"
    hook.write_text(hook.read_text().replace(str(own), str(hasty)))
    stopped = keeper(gated)
    os.kill(stopped, signal.SIGSTOP)
    try:
        said = gated.plainly("HEAD:refs/heads/more")
    finally:
        os.kill(stopped, signal.SIGKILL)
    assert "has said nothing" in said
    assert f"kill -9 {stopped}" in said
    assert gated.tip("more") == ""
    assert "new branch" in gated.plainly("HEAD:refs/heads/more")


def test_a_keeper_that_takes_its_time_shows_that_it_is_at_it(
    gated: Gated, monkeypatch: pytest.MonkeyPatch
) -> None:
    may_answer = threading.Event()

    class Slow(Keeper):
        def answer(self, question: bytes) -> bytes:
            assert may_answer.wait(60)
            return super().answer(question)

    folder = gated.bare / FOLDER
    monkeypatch.chdir(folder)
    monkeypatch.setattr(keeping, "BEAT_S", 0.01)
    slow = Slow(folder, json.loads((folder / SETTINGS).read_text()), SystemClock())
    serving = threading.Thread(target=serve, args=(slow,))
    serving.start()
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as line:
            while line.connect_ex(SOCKET):
                assert serving.is_alive()
            line.sendall(question("pre-receive", "1", b"", {}))
            line.shutdown(socket.SHUT_WR)
            said = b""
            while said.count(BEAT) < 3:
                said += line.recv(1)
            may_answer.set()
            while part := line.recv(100):
                said += part
        assert said.lstrip(BEAT).startswith(YES)
    finally:
        may_answer.set()
        slow.ending.set()
        serving.join()


def test_one_keeper_serves_many_pushes(gated: Gated) -> None:
    for n in range(3):
        gated.plainly(f"HEAD:refs/heads/mine-{n}")
    first = keeper(gated)
    gated.plainly("HEAD:refs/heads/more")
    assert keeper(gated) == first
    assert (gated.bare / FOLDER).stat().st_mode & 0o777 == 0o700


def test_another_lessors_keeper_ends_and_answers_nothing(gated: Gated) -> None:
    settings = json.loads((gated.bare / FOLDER / SETTINGS).read_text())
    asked = question("pre-receive", "1", b"", {}).split(b"\0")
    own = Keeper(gated.bare / FOLDER, settings, SystemClock())
    assert own.answer(b"\0".join(asked)).startswith(YES)
    assert not own.ending.is_set()
    assert own.answer(b"\0".join([*asked[:2], b"another", *asked[3:]])) == STALE
    assert own.ending.is_set()


def test_a_keeper_lets_go_of_a_store_that_nobody_asks_for(gated: Gated) -> None:
    settings = json.loads((gated.bare / FOLDER / SETTINGS).read_text())
    clock = ManualClock()
    own = Keeper(gated.bare / FOLDER, settings, clock)
    update = f"{'0' * 40} {gated.head()} refs/heads/mine\n".encode()
    assert own.answer(question("pre-receive", "1", update, {})).startswith(YES)
    assert own.has_store
    clock.advance(STORE_IDLE_MS)
    own.rest()
    assert not own.has_store
    assert own.answer(question("pre-receive", "1", update, {})).startswith(YES)
    own.close()


def test_what_this_machine_does_to_its_own_references_is_no_push(gated: Gated) -> None:
    grant = gated.holding("services/billing")
    gated.commit("services/billing/a", text="two\n")
    gated.push(grant)
    gated.stop()
    git(gated.bare, "pack-refs", "--all")
    git(gated.bare, "gc", "-q")
    git(gated.bare, "update-ref", "refs/heads/local", "main")
    git(gated.bare, "update-ref", "-d", "refs/heads/local")
    assert gated.tip(grant.branch) == gated.head()


def test_notes_of_past_pushes_are_cleared_away(gated: Gated) -> None:
    for n in range(3):
        gated.plainly(f"HEAD:refs/heads/mine-{n}")
    assert len(list((gated.bare / FOLDER / "pushes").iterdir())) == 1


def test_a_fenced_repository_may_have_hooks_as_well(gated: Gated) -> None:
    gated.yard.lessor.registry.set_fence_remote(gated.yard.repository.id, "origin")
    grant = gated.holding("services/billing")
    make_ready(gated.yard.lessor, find_repository(gated.clone).root, grant.holder)
    head = gated.commit("services/billing/a", text="two\n")
    assert gated.push(grant).fenced
    assert gated.tip(grant.branch) == head
    assert "is leased" in gated.plainly("-f", f"main:{grant.branch}")


def test_a_refusal_of_a_live_push_is_settled(gated: Gated) -> None:
    grant = gated.holding("services/billing")
    gated.commit("libs/x", text="two\n")
    with pytest.raises(PushRefusedError, match="no lease over these paths"):
        gated.push(grant)
    (intent,) = gated.yard.lessor.intents.of_task(grant.task)
    assert intent.outcome == "failed"
