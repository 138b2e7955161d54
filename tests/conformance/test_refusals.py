"""Each operation, refusal code and store: every cell is provoked, and no other ever occurs."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import apsw
import psycopg
import pytest

from builders import TTL, StoreUnderTest, Yard, zombie
from declared import GROUPS, REFUSALS, page
from lessor.errors import LeaseLostError, LessorError
from lessor.ids import new_token
from lessor.model.grant import Failure, Grant, Reach, Result
from lessor.model.intent import Outcome, Publish
from lessor.model.shadow import Unlanded
from lessor.model.task import NewTask
from lessor.model.worker import NewWorker
from lessor.model.workspace import Workspace, WorkspaceState
from lessor.service.lessor import Lessor
from lessor.service.salvages import Salvaged

PAGE = Path(__file__).parents[2] / "docs" / "refusals.md"
NUL = "a\0b"

Case = Callable[[Yard], object]
CASES: dict[tuple[str, str], Case] = {}


def case(operation: str, code: str) -> Callable[[Case], Case]:
    """This function provokes `code` from `operation`."""

    def keep(provoke: Case) -> Case:
        assert (operation, code) not in CASES
        CASES[operation, code] = provoke
        return provoke

    return keep


def cases(code: str, provoked: dict[str, Case]) -> None:
    """One code, many operations."""
    for operation, provoke in provoked.items():
        case(operation, code)(provoke)


def lost(yard: Yard) -> Grant:
    """A grant whose lease ran out and went on to another."""
    grant = yard.running("src")
    yard.store.advance(TTL)
    yard.claim_one(worker=yard.other.id)
    return grant


def done(yard: Yard) -> str:
    """A finished task."""
    grant = yard.running("src")
    yard.complete(grant)
    return grant.task


def within(yard: Yard, *tasks: NewTask) -> object:
    """Submit in a transaction of our own."""
    store = yard.store
    if store.kind == "sqlite":
        with closing(apsw.Connection(str(store.path))) as db:
            db.execute("BEGIN IMMEDIATE")
            return yard.lessor.tasks.submit_within(db, tasks)
    with closing(psycopg.connect(store.url)) as db:
        return yard.lessor.tasks.submit_within(db, tasks)


def acquire(yard: Yard, task: NewTask | None = None, **more: object) -> Grant:
    """Lease paths at once."""
    wish = task or yard.asked(scopes=("src",))
    return yard.lessor.leases.acquire(wish, **{"worker": yard.worker.id, **more})


def reserve(yard: Yard, grant: Grant, **changed: str) -> Workspace:
    """A workspace of this grant."""
    place = {"host_id": "h", "path": "/w", "branch": "ai/x", "base": "a" * 40, **changed}
    workspaces = yard.lessor.workspaces
    return workspaces.get(workspaces.reserve(grant.holder, **place))


def saved(yard: Yard) -> Salvaged:
    """Something that was saved."""
    made = reserve(yard, yard.running())
    yard.lessor.salvages.note(made, ref="r", archive=None, files=1)
    return yard.lessor.salvages.of_task(made.task)[0]


def gone(yard: Yard) -> Workspace:
    """One whose directory was removed."""
    made = reserve(yard, yard.running("w"))
    yard.lessor.workspaces.move(made, WorkspaceState.GONE)
    return yard.lessor.workspaces.get(made.id)


PUSH = Publish(remote="origin", ref="refs/heads/ai/1-x", old=None, new="a" * 40)


def pushed(yard: Yard, grant: Grant | None = None) -> int:
    """A push that is announced."""
    holder = (grant or yard.running("src")).holder
    return yard.lessor.intents.announce(holder, PUSH, secret="sesame")


def push_in_doubt(yard: Yard) -> object:
    """The same lease announces another push before the first one is settled."""
    grant = yard.running("src")
    pushed(yard, grant)
    return pushed(yard, grant)


cases(
    "invalid",
    {
        "landings.results": lambda y: y.lessor.landings.results(most=-1),
        "landings.all_results": lambda y: list(y.lessor.landings.all_results(page=0)),
        "landings.over": lambda y: y.lessor.landings.over(NUL, repository=y.repository.id),
        "landings.landed": lambda y: y.lessor.landings.landed(done(y), commit="", target="main"),
        "landings.discarded": lambda y: y.lessor.landings.discarded(done(y), reason=NUL),
        "landings.refused": lambda y: y.lessor.landings.refused(done(y), trouble=""),
        "intents.announce": lambda y: y.lessor.intents.announce(
            y.running("src").holder, replace(PUSH, ref=""), secret="sesame"
        ),
        "intents.settle": lambda y: y.lessor.intents.settle(y.running("src").holder, 1, "gone"),
        "intents.recover": lambda y: y.lessor.intents.recover(1, "gone", response=""),
        "intents.unsettled": lambda y: y.lessor.intents.unsettled(y.repository.id, after=-1),
        "intents.shown": lambda y: y.lessor.intents.shown(2**70, "sesame"),
        "fences.announce": lambda y: y.lessor.fences.announce(
            y.running("src").holder, remote="", oid="a"
        ),
        "fences.opened": lambda y: y.lessor.fences.opened(
            y.running("src").holder, remote="origin", oid=NUL
        ),
        "fences.at": lambda y: y.lessor.fences.at(y.running("src").lease, NUL),
        "fences.unclosed": lambda y: y.lessor.fences.unclosed(y.repository.id, remote=NUL),
        "fences.closed": lambda y: y.lessor.fences.closed([y.running("src").lease], remote=NUL),
        "workspaces.reserve": lambda y: reserve(y, y.running(), path=""),
        "workspaces.adopt": lambda y: y.lessor.workspaces.adopt(y.running().holder, 0),
        "workspaces.move": lambda y: y.lessor.workspaces.move(
            reserve(y, y.running()), WorkspaceState.DIRTY, why=NUL
        ),
        "workspaces.get": lambda y: y.lessor.workspaces.get(0),
        "workspaces.on_host": lambda y: y.lessor.workspaces.on_host(""),
        "salvages.note": lambda y: y.lessor.salvages.note(
            reserve(y, y.running()), ref=None, archive=None, files=-1
        ),
        "salvages.of_repository": lambda y: y.lessor.salvages.of_repository(
            y.repository.id, most=0
        ),
        "salvages.drop": lambda y: y.lessor.salvages.drop(saved(y), reason=NUL),
        "registry.add_repository": lambda y: y.lessor.registry.add_repository(""),
        "registry.set_fence_remote": lambda y: y.lessor.registry.set_fence_remote(
            y.repository.id, "https://token@host/a.git"
        ),
        "registry.add_checkout": lambda y: y.lessor.registry.add_checkout(
            y.repository.id, host_id=NUL, common_dir="/d"
        ),
        "registry.add_worker": lambda y: y.lessor.registry.add_worker(NewWorker(agent="a;b")),
        "registry.workers": lambda y: y.lessor.registry.workers(host_id=NUL),
        "registry.set_unlanded": lambda y: y.lessor.registry.set_unlanded(
            y.repository.id, ["wait"]
        ),
        "registry.set_queue": lambda y: y.lessor.registry.set_queue("q", overtake_limit=0),
        "registry.set_limit": lambda y: y.lessor.registry.set_limit("task", "x", 1),
        "tasks.submit": lambda y: y.add(""),
        "tasks.submit_within": lambda y: within(y, y.asked("")),
        "tasks.task_numbered": lambda y: y.lessor.tasks.task_numbered(-1, repository=None),
        "tasks.tasks": lambda y: y.lessor.tasks.tasks(most=0),
        "tasks.open_tasks": lambda y: y.lessor.tasks.open_tasks(repository=None, most=0),
        "tasks.with_keys": lambda y: y.lessor.tasks.with_keys([NUL], repository=None),
        "tasks.newest_on": lambda y: y.lessor.tasks.newest_on([NUL], repository=None),
        "tasks.open_with_keys": lambda y: y.lessor.tasks.open_with_keys("", repository=None),
        "tasks.ready": lambda y: y.lessor.tasks.ready(repository=None, queue=""),
        "tasks.overdue": lambda y: y.lessor.tasks.overdue(repository=None, most=-1),
        "tasks.history": lambda y: y.lessor.tasks.history(y.add().task, after=-1),
        "tasks.amend": lambda y: y.lessor.tasks.amend(y.add().task, y.asked("")),
        "tasks.cancel": lambda y: y.lessor.tasks.cancel([y.add().task], reason=NUL),
        "tasks.block": lambda y: y.lessor.tasks.block([y.add().task], actor=NUL),
        "tasks.unblock": lambda y: y.lessor.tasks.unblock("task"),
        "tasks.requeue": lambda y: y.lessor.tasks.requeue([y.add().task], addition=NUL),
        "tasks.answer": lambda y: y.lessor.tasks.answer(y.add().task, NUL),
        "leases.claim": lambda y: y.claim(wanted=0),
        "leases.complete_and_claim": lambda y: y.lessor.leases.complete_and_claim(
            [], y.request(repository=Reach.ANYWHERE)
        ),
        "leases.acquire": lambda y: acquire(y, y.asked("")),
        "leases.renew": lambda y: y.lessor.leases.renew([zombie(y.running().holder, epoch=0)]),
        "leases.renew_one": lambda y: y.lessor.leases.renew_one(
            zombie(y.running().holder, version=0)
        ),
        "leases.complete": lambda y: y.lessor.leases.complete(
            [(y.running().holder, Result(said=NUL))]
        ),
        "leases.complete_one": lambda y: y.complete(y.running(), said=NUL),
        "leases.fail": lambda y: y.fail(y.running(), error=NUL),
        "leases.release": lambda y: y.lessor.leases.release(y.running().holder, reason=NUL),
        "leases.ask": lambda y: y.lessor.leases.ask(y.running().holder, " "),
        "leases.force_release": lambda y: y.lessor.leases.force_release(
            y.running().task, actor="a", reason="", checked="c"
        ),
        "leases.end_gone": lambda y: y.lessor.leases.end_gone(y.running().task, epoch=1, proof=""),
        "leases.acknowledge": lambda y: y.lessor.leases.acknowledge(
            zombie(y.running().holder, epoch=0)
        ),
        "leases.watch": lambda y: y.lessor.leases.watch(zombie(y.running().holder, token=NUL)),
        "leases.widen": lambda y: y.lessor.leases.widen(y.running().holder, [NUL]),
        "leases.move_branch": lambda y: y.lessor.leases.move_branch(
            y.claim_free(task=y.add(free=True).task)[0].holder, "ai/1-x", why="it is kept"
        ),
        "leases.admit": lambda y: y.lessor.leases.admit(y.running().holder, "docs"),
        "leases.who": lambda y: y.lessor.leases.who(NUL, repository=y.repository.id),
        "leases.leases": lambda y: y.lessor.leases.leases(most=0),
    },
)

cases(
    "not_found",
    {
        "workspaces.reserve": lambda y: reserve(
            y, replace(y.running(), holder=zombie(y.running("b").holder, task="task_x"))
        ),
        "workspaces.adopt": lambda y: y.lessor.workspaces.adopt(y.running().holder, 99),
        "workspaces.move": lambda y: y.lessor.workspaces.move(
            replace(reserve(y, y.running()), id=99), WorkspaceState.DIRTY
        ),
        "workspaces.get": lambda y: y.lessor.workspaces.get(99),
        "workspaces.of_task": lambda y: y.lessor.workspaces.of_task("task_x"),
        "workspaces.on_host": lambda y: y.lessor.workspaces.on_host("h", repository="repo_x"),
        "salvages.note": lambda y: y.lessor.salvages.note(
            replace(reserve(y, y.running()), id=99), ref="r", archive=None, files=1
        ),
        "salvages.of_task": lambda y: y.lessor.salvages.of_task("task_x"),
        "salvages.of_repository": lambda y: y.lessor.salvages.of_repository("repo_x"),
        "salvages.drop": lambda y: y.lessor.salvages.drop(replace(saved(y), n=9)),
        "registry.set_fence_remote": lambda y: y.lessor.registry.set_fence_remote("repo_x", None),
        "registry.add_checkout": lambda y: y.lessor.registry.add_checkout(
            "repo_x", host_id="h", common_dir="/d"
        ),
        "registry.repository": lambda y: y.lessor.registry.repository("repo_x"),
        "registry.set_unlanded": lambda y: y.lessor.registry.set_unlanded("repo_x", Unlanded.WAIT),
        "registry.checkouts": lambda y: y.lessor.registry.checkouts("repo_x"),
        "registry.worker": lambda y: y.lessor.registry.worker("worker_x"),
        "registry.retire_worker": lambda y: y.lessor.registry.retire_worker("worker_x"),
        "tasks.submit": lambda y: y.add(needs=("task_x",)),
        "tasks.submit_within": lambda y: within(y, y.asked(needs=("task_x",))),
        "tasks.task": lambda y: y.lessor.tasks.task("task_x"),
        "tasks.task_numbered": lambda y: y.lessor.tasks.task_numbered(9, repository=None),
        "tasks.tasks": lambda y: y.lessor.tasks.tasks(before="task_x"),
        "tasks.open_tasks": lambda y: y.lessor.tasks.open_tasks(repository="repo_x"),
        "tasks.with_keys": lambda y: y.lessor.tasks.with_keys(["k"], repository="repo_x"),
        "tasks.newest_on": lambda y: y.lessor.tasks.newest_on(["b"], repository="repo_x"),
        "tasks.open_with_keys": lambda y: y.lessor.tasks.open_with_keys("k", repository="repo_x"),
        "tasks.ready": lambda y: y.lessor.tasks.ready(repository="repo_x"),
        "tasks.overdue": lambda y: y.lessor.tasks.overdue(repository="repo_x"),
        "tasks.counts": lambda y: y.lessor.tasks.counts(repository="repo_x"),
        "landings.results": lambda y: y.lessor.landings.results(task="task_x"),
        "landings.all_results": lambda y: list(y.lessor.landings.all_results(repository="repo_x")),
        "landings.blocking": lambda y: y.lessor.landings.blocking(repository="repo_x"),
        "landings.over": lambda y: y.lessor.landings.over("src", repository="repo_x"),
        "landings.landed": lambda y: y.lessor.landings.landed(done(y), commit="a", target="main"),
        "landings.discarded": lambda y: y.lessor.landings.discarded(done(y)),
        "landings.refused": lambda y: y.lessor.landings.refused(done(y), trouble="it conflicts"),
        "intents.announce": lambda y: y.lessor.intents.announce(
            zombie(y.running("src").holder, task="task_x"), PUSH, secret="sesame"
        ),
        "intents.settle": lambda y: y.lessor.intents.settle(
            y.running("src").holder, 9, Outcome.DONE
        ),
        "intents.recover": lambda y: y.lessor.intents.recover(9, Outcome.DONE, response=""),
        "intents.unsettled": lambda y: y.lessor.intents.unsettled("repo_x"),
        "intents.of_task": lambda y: y.lessor.intents.of_task("task_x"),
        "fences.announce": lambda y: y.lessor.fences.announce(
            zombie(y.running("src").holder, worker="worker_x"), remote="origin", oid="a"
        ),
        "fences.opened": lambda y: y.lessor.fences.opened(
            zombie(y.running("src").holder, worker="worker_x"), remote="origin", oid="a"
        ),
        "fences.at": lambda y: y.lessor.fences.at("lease_x", "origin"),
        "fences.unclosed": lambda y: y.lessor.fences.unclosed("repo_x"),
        "fences.closed": lambda y: y.lessor.fences.closed(["lease_x"], remote="origin"),
        "tasks.needs": lambda y: y.lessor.tasks.needs("task_x"),
        "tasks.taken": lambda y: y.lessor.tasks.taken("task_x"),
        "tasks.why": lambda y: y.lessor.tasks.why(y.lessor.naming.task(99)),
        "tasks.history": lambda y: y.lessor.tasks.history(y.lessor.naming.task(99)),
        "tasks.amend": lambda y: y.lessor.tasks.amend("task_x", y.asked()),
        "tasks.cancel": lambda y: y.lessor.tasks.cancel(["task_x"]),
        "tasks.block": lambda y: y.lessor.tasks.block([y.lessor.naming.task(99)]),
        "tasks.unblock": lambda y: y.lessor.tasks.unblock(["task_x"]),
        "tasks.requeue": lambda y: y.lessor.tasks.requeue(["task_x"]),
        "tasks.answer": lambda y: y.lessor.tasks.answer("task_x", "yes"),
        "leases.claim": lambda y: y.claim(worker="worker_x"),
        "leases.complete_and_claim": lambda y: y.lessor.leases.complete_and_claim(
            [], y.request(worker="worker_x")
        ),
        "leases.acquire": lambda y: acquire(y, worker="worker_x"),
        "leases.renew": lambda y: y.lessor.leases.renew(
            [zombie(y.running().holder, task="task_x")]
        ),
        "leases.renew_one": lambda y: y.lessor.leases.renew_one(
            zombie(y.running().holder, task=y.lessor.naming.task(99))
        ),
        "leases.complete": lambda y: y.lessor.leases.complete(
            [(zombie(y.running().holder, worker="worker_x"), Result())]
        ),
        "leases.complete_one": lambda y: y.lessor.leases.complete_one(
            zombie(y.running().holder, task=y.lessor.naming.task(99)), Result()
        ),
        "leases.fail": lambda y: y.lessor.leases.fail(
            zombie(y.running().holder, task=y.lessor.naming.task(99)), Failure(error="x")
        ),
        "leases.release": lambda y: y.lessor.leases.release(
            zombie(y.running().holder, task="task_x")
        ),
        "leases.ask": lambda y: y.lessor.leases.ask(zombie(y.running().holder, task="task_x"), "?"),
        "leases.force_release": lambda y: y.lessor.leases.force_release(
            y.lessor.naming.task(99), actor="a", reason="b", checked="c"
        ),
        "leases.end_gone": lambda y: y.lessor.leases.end_gone("task_x", epoch=1, proof="p"),
        "leases.acknowledge": lambda y: y.lessor.leases.acknowledge(
            zombie(y.running().holder, task="task_x")
        ),
        "leases.watch": lambda y: y.lessor.leases.watch(
            zombie(y.running().holder, task=y.lessor.naming.task(99))
        ),
        "leases.widen": lambda y: y.lessor.leases.widen(
            zombie(y.running().holder, task="task_x"), ["d"]
        ),
        "leases.move_branch": lambda y: y.lessor.leases.move_branch(
            zombie(y.running().holder, task="task_x"), "ai/1-x", why="it is kept"
        ),
        "leases.admit": lambda y: y.lessor.leases.admit(
            y.claim_free(task=y.add(free=True).task)[0].holder, ["d"]
        ),
        "leases.who": lambda y: y.lessor.leases.who("src", repository="repo_x"),
        "leases.leases": lambda y: y.lessor.leases.leases(task="task_x"),
        "leases.lease": lambda y: y.lessor.leases.lease("lease_x"),
        "leases.sweep": lambda y: y.lessor.leases.sweep(repository="repo_x"),
    },
)

cases(
    "lease_lost",
    {
        "intents.announce": lambda y: y.lessor.intents.announce(
            lost(y).holder, PUSH, secret="sesame"
        ),
        "intents.settle": lambda y: y.lessor.intents.settle(lost(y).holder, 1, Outcome.DONE),
        "fences.announce": lambda y: y.lessor.fences.announce(
            lost(y).holder, remote="origin", oid="a"
        ),
        "fences.opened": lambda y: y.lessor.fences.opened(lost(y).holder, remote="origin", oid="a"),
        "workspaces.reserve": lambda y: reserve(y, lost(y)),
        "workspaces.adopt": lambda y: y.lessor.workspaces.adopt(lost(y).holder, 1),
        "leases.renew": lambda y: y.lessor.leases.renew([lost(y).holder])[0],
        "leases.renew_one": lambda y: y.lessor.leases.renew_one(lost(y).holder),
        "leases.complete": lambda y: y.lessor.leases.complete([(lost(y).holder, Result())])[0],
        "leases.complete_one": lambda y: y.complete(lost(y)),
        "leases.complete_and_claim": lambda y: y.lessor.leases.complete_and_claim(
            [(lost(y).holder, Result())], y.request()
        )[0][0],
        "leases.fail": lambda y: y.fail(lost(y)),
        "leases.release": lambda y: y.lessor.leases.release(lost(y).holder),
        "leases.ask": lambda y: y.lessor.leases.ask(lost(y).holder, "?"),
        "leases.acknowledge": lambda y: y.lessor.leases.acknowledge(
            zombie(lost(y).holder, token=new_token())
        ),
        "leases.watch": lambda y: y.lessor.leases.watch(zombie(y.running().holder, epoch=7)),
        "leases.widen": lambda y: y.lessor.leases.widen(lost(y).holder, ["d"]),
        "leases.move_branch": lambda y: y.lessor.leases.move_branch(
            lost(y).holder, "ai/1-x", why="it is kept"
        ),
        "leases.admit": lambda y: y.lessor.leases.admit(lost(y).holder, []),
    },
)

cases(
    "scope_invalid",
    {
        "landings.over": lambda y: y.lessor.landings.over("../up", repository=y.repository.id),
        "tasks.submit": lambda y: y.add(scopes=("..",)),
        "tasks.submit_within": lambda y: within(y, y.asked(scopes=("/",))),
        "tasks.amend": lambda y: y.lessor.tasks.amend(y.add().task, y.asked(scopes=("a\\b",))),
        "leases.acquire": lambda y: acquire(y, y.asked(scopes=(".git",))),
        "leases.widen": lambda y: y.lessor.leases.widen(y.running().holder, [".."]),
        "leases.who": lambda y: y.lessor.leases.who("", repository=y.repository.id),
    },
)

cases(
    "branch_invalid",
    {
        "tasks.submit": lambda y: y.add(branch="main"),
        "tasks.submit_within": lambda y: within(y, y.asked(branch="Feature/x")),
        "tasks.amend": lambda y: y.lessor.tasks.amend(y.add().task, y.asked(branch="x")),
        "leases.acquire": lambda y: acquire(y, y.asked(branch="fix/")),
    },
)

cases(
    "cycle",
    {
        "tasks.submit": lambda y: y.add(needs_index=(0,)),
        "tasks.submit_within": lambda y: within(y, y.asked(needs_index=(0,))),
        "leases.acquire": lambda y: acquire(y, y.asked(needs_index=(0,))),
    },
)

cases(
    "terms_invalid",
    {
        "leases.claim": lambda y: y.claim(ttl_ms=19),
        "leases.complete_and_claim": lambda y: y.lessor.leases.complete_and_claim(
            [], y.request(max_hold_ms=TTL - 1)
        ),
        "leases.acquire": lambda y: acquire(y, ttl_ms=1),
    },
)

cases(
    "scope_held",
    {
        "leases.widen": lambda y: (
            y.running("src"),
            y.lessor.leases.widen(y.running("d").holder, ["src/a"]),
        ),
        "leases.acquire": lambda y: (y.running("src"), acquire(y, y.asked(scopes=("src/a",)))),
    },
)


@case("tasks.amend", "cycle")
def _needs_itself(yard: Yard) -> object:
    task = yard.add().task
    return yard.lessor.tasks.amend(task, yard.asked(needs=(task,)))


@case("tasks.submit", "conflict")
def _taken_branch(yard: Yard) -> object:
    yard.add(branch="fix/a")
    return yard.add(branch="fix/a")


@case("tasks.submit_within", "conflict")
def _taken_branch_within(yard: Yard) -> object:
    yard.add(branch="fix/a")
    return within(yard, yard.asked(branch="fix/a"))


@case("workspaces.reserve", "conflict")
def _taken_path(yard: Yard) -> object:
    reserve(yard, yard.running("a"))
    return reserve(yard, yard.running("b"))


@case("leases.move_branch", "branch_invalid")
def _moves_to_what_is_no_branch(yard: Yard) -> object:
    return yard.lessor.leases.move_branch(yard.running().holder, "main", why="it is kept")


@case("workspaces.adopt", "transition_refused")
def _adopts_what_is_gone(yard: Yard) -> object:
    grant = yard.running("w")
    made = reserve(yard, grant)
    yard.lessor.workspaces.move(made, WorkspaceState.GONE)
    return yard.lessor.workspaces.adopt(grant.holder, made.id)


@case("leases.acquire", "conflict")
def _limited(yard: Yard) -> object:
    yard.lessor.registry.set_limit("queue", "default", 0)
    return acquire(yard)


@case("tasks.submit", "transition_refused")
def _dead_need(yard: Yard) -> object:
    dead = yard.add().task
    yard.lessor.tasks.cancel([dead])
    return yard.add(needs=(dead,))


@case("tasks.submit_within", "transition_refused")
def _dead_need_within(yard: Yard) -> object:
    dead = yard.add().task
    yard.lessor.tasks.cancel([dead])
    return within(yard, yard.asked(needs=(dead,)))


@case("leases.acquire", "transition_refused")
def _key_is_running(yard: Yard) -> object:
    yard.running("src", unique_key="k")
    return acquire(yard, yard.asked(unique_key="k"))


cases(
    "transition_refused",
    {
        "intents.announce": push_in_doubt,
        "intents.recover": lambda y: y.lessor.intents.recover(pushed(y), Outcome.DONE, response=""),
        "fences.opened": lambda y: y.lessor.fences.opened(
            y.running("src").holder, remote="origin", oid="a"
        ),
        "workspaces.move": lambda y: y.lessor.workspaces.move(gone(y), WorkspaceState.DIRTY),
        "tasks.amend": lambda y: y.lessor.tasks.amend(done(y), y.asked()),
        "tasks.cancel": lambda y: y.lessor.tasks.cancel([done(y)]),
        "tasks.block": lambda y: y.lessor.tasks.block([done(y)]),
        "tasks.unblock": lambda y: y.lessor.tasks.unblock([y.add().task]),
        "tasks.requeue": lambda y: y.lessor.tasks.requeue([y.running().task]),
        "tasks.answer": lambda y: y.lessor.tasks.answer(y.add().task, "yes"),
        "leases.force_release": lambda y: y.lessor.leases.force_release(
            y.add().task, actor="a", reason="b", checked="c"
        ),
        "leases.end_gone": lambda y: y.lessor.leases.end_gone(y.running().task, epoch=2, proof="p"),
        "leases.acknowledge": lambda y: y.lessor.leases.acknowledge(y.running().holder),
    },
)


def twice(first: Case, second: Case) -> Case:
    """The same request id, another request."""
    return lambda yard: (first(yard), second(yard))[1]


cases(
    "request_reused",
    {
        "tasks.submit": twice(
            lambda y: y.lessor.tasks.submit([y.asked("a")], request_id="r"),
            lambda y: y.lessor.tasks.submit([y.asked("b")], request_id="r"),
        ),
        **{
            f"tasks.{verb}": twice(
                lambda y: y.lessor.tasks.submit([], request_id="r"),
                lambda y, v=verb: getattr(y.lessor.tasks, v)([y.add().task], request_id="r"),
            )
            for verb in ("cancel", "block", "unblock", "requeue")
        },
        "tasks.answer": twice(
            lambda y: y.lessor.tasks.submit([], request_id="r"),
            lambda y: y.lessor.tasks.answer(y.add().task, "yes", request_id="r"),
        ),
        "tasks.amend": twice(
            lambda y: y.lessor.tasks.submit([], request_id="r"),
            lambda y: y.lessor.tasks.amend(y.add().task, y.asked(), request_id="r"),
        ),
        "leases.force_release": twice(
            lambda y: y.lessor.tasks.submit([], submitter="a", request_id="r"),
            lambda y: y.lessor.leases.force_release(
                y.running().task, actor="a", reason="b", checked="c", request_id="r"
            ),
        ),
        "leases.end_gone": twice(
            lambda y: y.lessor.tasks.submit([], request_id="r"),
            lambda y: y.lessor.leases.end_gone(
                y.running().task, epoch=1, proof="p", request_id="r"
            ),
        ),
        "leases.acquire": twice(
            lambda y: acquire(y, request_id="r"),
            lambda y: acquire(y, y.asked(scopes=("docs",)), request_id="r"),
        ),
    },
)


@case("leases.claim", "request_reused")
def _another_claim(yard: Yard) -> object:
    yard.add("one", scopes=("a",))
    yard.add("two", scopes=("b",))
    request = yard.request()
    yard.lessor.leases.claim(request)
    return yard.lessor.leases.claim(replace(request, wanted=2))


@case("leases.complete_and_claim", "request_reused")
def _another_fused_claim(yard: Yard) -> object:
    yard.add("one", scopes=("a",))
    request = yard.request()
    yard.lessor.leases.claim(request)
    return yard.lessor.leases.complete_and_claim([], replace(request, wanted=2))


@case("leases.widen", "request_reused")
def _another_widening(yard: Yard) -> object:
    holder, widen = yard.running("src").holder, yard.lessor.leases.widen
    widen(holder, ["a"], request_id="r")
    return widen(holder, ["b"], request_id="r")


@case("leases.claim", "grant_over")
def _grant_over(yard: Yard) -> object:
    yard.add()
    request = yard.request()
    yard.complete(yard.lessor.leases.claim(request)[0])
    return yard.lessor.leases.claim(request)


@case("leases.complete_and_claim", "grant_over")
def _fused_grant_over(yard: Yard) -> object:
    yard.add()
    request = yard.request()
    yard.complete(yard.lessor.leases.claim(request)[0])
    return yard.lessor.leases.complete_and_claim([], request)


@case("leases.acquire", "grant_over")
def _acquired_over(yard: Yard) -> object:
    values = {"request_id": "r", "secret": new_token()}
    yard.complete(acquire(yard, **values))
    return acquire(yard, **values)


@pytest.mark.parametrize(("operation", "code"), sorted(CASES))
def test_the_refusal_is_made(yard: Yard, operation: str, code: str) -> None:
    answer: object = None
    try:
        answer = CASES[operation, code](yard)
    except LessorError as error:
        answer = error
    assert isinstance(answer, LessorError), answer
    assert answer.code == code
    assert answer.message
    assert answer.next_step
    if isinstance(answer, LeaseLostError) and code == "lease_lost":
        assert {"task", "epoch", "current_epoch", "current_holder", "ttl_ms"} <= answer.facts.keys()


def test_the_table_has_no_empty_cell() -> None:
    declared = {(operation, code) for operation, codes in REFUSALS.items() for code in codes}
    assert declared == CASES.keys()


def test_every_operation_is_in_the_table(store: StoreUnderTest) -> None:
    lessor: Lessor = store.connect()
    found = {
        f"{group}.{name}"
        for group in GROUPS
        for name in dir(getattr(lessor, group))
        if not name.startswith("_")
    }
    assert found == REFUSALS.keys()


def test_the_page_is_what_the_table_says() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "python tests/declared.py > docs/refusals.md"
