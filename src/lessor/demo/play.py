"""The demo: a repository, a dozen tasks, three workers, one killed, one frozen, and the proof."""

from __future__ import annotations

import shlex
import sys
from dataclasses import dataclass
from pathlib import Path

from lessor.clock import Clock
from lessor.connect import connect
from lessor.demo.agent import LEDGER
from lessor.demo.proof import Proof, prove
from lessor.demo.saboteur import Saboteur
from lessor.demo.story import FILES, SCRIPTS
from lessor.demo.telling import Teller
from lessor.errors import InvalidError
from lessor.git.command import run_git
from lessor.git.repository import Repository, find_repository, repository_key
from lessor.model.lease import terms_for
from lessor.model.task import NewTask
from lessor.runner.desk import Desk, Plan, RunOptions
from lessor.runner.host import this_host
from lessor.runner.host_id import host_id
from lessor.runner.landing import Came, Lander
from lessor.runner.run import Run
from lessor.runner.spec import Patience
from lessor.runner.stopping import Stopping
from lessor.service.lessor import Lessor

BRANCH = "main"
LEASE_MS = 6_000
WORKERS = 3
CHECK = f"{shlex.quote(sys.executable)} -m unittest discover -q -s tests -t ."
_AUTHOR = {
    "GIT_AUTHOR_NAME": "Dana",
    "GIT_AUTHOR_EMAIL": "dana@example.org",
    "GIT_COMMITTER_NAME": "Dana",
    "GIT_COMMITTER_EMAIL": "dana@example.org",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How the demo ended."""

    proof: Proof
    counts: dict[str, int]
    took_ms: int
    store: Path
    repo: Path


def play(folder: Path, *, clock: Clock, teller: Teller) -> Ended:
    """Run the demo in the new directory `folder`.

    Raises:
        InvalidError: `folder` is there already; the demo never writes into what it didn't make.
    """
    started = clock.boottime_ms()
    try:
        folder.mkdir(parents=True)
    except FileExistsError:
        raise InvalidError(
            f"{folder} is there already.", next_step="Name another directory, or remove it."
        ) from None
    repo = make_repository(folder / "shop")
    state = folder / "state"
    state.mkdir()
    ledger = folder / "ledger.jsonl"
    ledger.touch()
    store = state / "lessor.db"
    host = this_host(host_id(state))
    lessor = connect(f"sqlite:///{store}", host_id=host.id)
    desk = Desk(
        lessor=lessor,
        repo=repo,
        cwd=repo.root,
        repository=lessor.registry.add_repository(repository_key(repo), name=repo.name).id,
        store_url=f"sqlite:///{store}",
        listen_dsn=None,
        state_dir=state,
        host=host,
        clock=clock,
        options=RunOptions(
            command=(sys.executable, "-m", "lessor.demo.agent"),
            agent="agent",
            kind="scripted",
            workers=WORKERS,
            terms=terms_for(LEASE_MS),
            patience=Patience(watch_every_ms=1_000, lost_grace_ms=500, linger_ms=500),
            env={LEDGER: str(ledger)},
        ),
        plan_at=lambda _commit: Plan(check=CHECK),
        reporter=Saboteur(teller, told=teller.told),
    )
    tasks = queue_tasks(lessor, desk.repository)
    teller.begin(lessor, tasks, workers=WORKERS)
    stopping = Stopping()
    with stopping.by_signals():
        Run(desk, stopping).run()
        teller.end()
        teller.say_waits(lessor, tasks)
        # What overlaps several results waits until they landed, and is done then.
        while land_results(desk, teller) and not stopping.draining:
            Run(desk, stopping).run()
    ended = Ended(
        proof=prove(lessor, repo, ledger=ledger, tasks=tasks),
        counts=lessor.tasks.counts(everywhere=True),
        took_ms=clock.boottime_ms() - started,
        store=store,
        repo=repo.root,
    )
    lessor.close()
    return ended


def land_results(desk: Desk, teller: Teller) -> int:
    """Land every result that hasn't landed on the branch of the checkout; how many did."""
    results = desk.lessor.landings.results(repository=desk.repository)
    lander = Lander(desk, branch=BRANCH, tell=lambda _task, _text: None)
    landed = 0
    for result in results:  # one by one, to be told as it comes; the oldest stand on no other
        (done,) = lander.land([desk.lessor.tasks.task(result.task)])
        teller.landed(done.task, done.came, done.text)
        landed += done.came is Came.LANDED
    return landed


def make_repository(root: Path) -> Repository:
    """A git repository with the story's files in its first commit."""
    root.mkdir()
    run_git(["init", "--quiet", "-b", BRANCH, "."], cwd=root)
    for path, text in FILES.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text, encoding="utf-8")
    run_git(["add", "--all"], cwd=root)
    run_git(["commit", "--quiet", "-m", "shop: begin"], cwd=root, env=_AUTHOR)
    return find_repository(root)


def queue_tasks(lessor: Lessor, repository: str) -> list[str]:
    """Queue the story's tasks; their ids, in order."""
    places = {script.key: place for place, script in enumerate(SCRIPTS)}
    tasks = [
        NewTask(
            title=script.title,
            prompt=f"Please: {script.title}.",
            repository=repository,
            scopes=script.scope,
            needs_index=(places[script.after],) if script.after else (),
        )
        for script in SCRIPTS
    ]
    return [done.task for done in lessor.tasks.submit(tasks, submitter="demo")]
