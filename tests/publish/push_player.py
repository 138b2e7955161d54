"""A process that claims, pushes, loses its lease and pushes all the same.

Run as `python push_player.py ORDERS`, a JSON object; see `Orders`.
"""

from __future__ import annotations

import json
import sys
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random

from push_journal import TAKEN, Handed, Journal, Missed, Tried, now_ms

from lessor.clock import SystemClock
from lessor.connect import connect
from lessor.errors import LessorError
from lessor.git.command import run_git
from lessor.git.fence import fence_ref
from lessor.git.identity import LESSOR, identity
from lessor.git.push import Fate, Pushed, RefChange, push
from lessor.git.repository import Repository, find_repository
from lessor.ids import new_request_id, new_token
from lessor.model.grant import ClaimRequest, Grant
from lessor.model.lease import Holder
from lessor.model.retry import RetryPolicy
from lessor.model.worker import NewWorker
from lessor.publish.claiming import claim_ready
from lessor.publish.pushing import Errand, publish
from lessor.publish.recovering import recover_one

REMOTE = "origin"


@dataclass(frozen=True, slots=True, kw_only=True)
class Orders:
    """What a player is told.

    Attributes:
        pushes: how many it tries.
        hooked: the remote has hooks: a late push is sent as plain `git push --force`, too.
        hasty: nothing would refuse a late push: what became of one is decided at once, and one is
            sent, by plain force too, when another has the task.
    """

    number: int
    seed: int
    store: str
    repository: str
    clone: str
    journal: str
    tasks: list[str]
    pushes: int
    until_ms: int
    ttl_ms: int
    hooked: bool
    hasty: bool


class Player:
    def __init__(self, orders: Orders) -> None:
        self._orders = orders
        self._random = Random(f"{orders.seed}.{orders.number}")
        self._lessor = connect(orders.store, policy=RetryPolicy(first_ms=20, ceiling_ms=50))
        self._repo: Repository = find_repository(Path(orders.clone))
        self._bare = Path(self._repo.git(["remote", "get-url", REMOTE]).text)
        self._tree = self._repo.git(["rev-parse", "main^{tree}"]).text
        self._journal = Journal(Path(orders.journal))
        worker = NewWorker(agent=f"player-{orders.number}", kind="player")
        self._worker = self._lessor.registry.add_worker(worker).id
        self._tried = 0

    def play(self) -> None:
        while self._tried < self._orders.pushes and now_ms() < self._orders.until_ms:
            grant = self._claim(self._random.choice(self._orders.tasks))
            if grant is None:
                self._wait(0.1)
            else:
                self._work(grant)

    def _claim(self, task: str) -> Grant | None:
        leases = self._lessor.leases
        request = ClaimRequest(
            worker=self._worker,
            request_id=new_request_id(),
            secret=new_token(),
            repository=self._orders.repository,
            task=task,
            ttl_ms=self._orders.ttl_ms,
        )
        try:
            for intent in self._lessor.intents.unsettled(self._orders.repository):
                if self._orders.hasty:
                    recover_one(self._lessor, self._repo.root, intent, under_way_ms=0)
            grants = claim_ready(
                self._lessor,
                self._repo.root,
                self._orders.repository,
                lambda wait: leases.claim(request, wait_ms=wait),
                give_back=lambda grant, why: leases.release(grant.holder, reason=why),
            )
        except LessorError as refused:
            self._journal.note(Missed(what=refused.code, said=refused.message))
            return None
        if not grants:
            return None
        grant = grants[0]
        self._journal.note(
            Handed(
                lease=grant.lease,
                task=task,
                epoch=grant.epoch,
                branch=str(grant.branch),
                at_ms=now_ms(),
            )
        )
        return grant

    def _work(self, grant: Grant) -> None:
        holder, ref = grant.holder, f"refs/heads/{grant.branch}"
        for _ in range(self._random.randint(1, 6)):
            self._wait(self._random.choice((0, 0, 0, 0.3)) * self._orders.ttl_ms / 1_000)
            if not self._push(holder, ref):
                break
            if self._random.random() < 0.3:
                with suppress(LessorError):
                    renewed = self._lessor.leases.renew_one(holder)
                    holder = replace(holder, version=renewed.version)
        if self._random.random() < 0.5:
            with suppress(LessorError):
                self._lessor.leases.release(holder, reason="enough")
        if not self._lessor.leases.lease(holder.lease).live:
            if self._orders.hasty and (heir := self._claim(holder.task)):
                self._push(heir.holder, ref)  # from here on it is late, whatever the clocks say
            self._push_late(holder, ref)

    def _push(self, holder: Holder, ref: str) -> bool:
        commit = self._commit(holder.lease, ref)
        began = now_ms()
        errand = Errand(repo=self._repo, remote=REMOTE, ref=ref, commit=commit, judged=True)
        try:
            publish(self._lessor, holder, errand)
        except LessorError as refused:
            said = refused.facts.get("said")
            if said or refused.code == "conflict":
                self._note(holder.lease, commit, began, refused.code, f"{refused.message} {said}")
            return False
        self._note(holder.lease, commit, began, TAKEN, "")
        return True

    def _push_late(self, holder: Holder, ref: str) -> None:
        """Send the last announced push once more; to hooks, by plain force as well."""
        intents = [i for i in self._lessor.intents.of_task(holder.task) if i.lease == holder.lease]
        if intents and self._random.random() < 0.5:
            wish = intents[-1].publish
            changes = [RefChange(ref=ref, expected=wish.old, new=wish.new)]
            if wish.fence is not None:
                fence = fence_ref(holder.lease)
                changes.append(RefChange(ref=fence, expected=wish.fence, new=wish.next_fence))
            if self._tip(ref) != wish.new:
                self._send(holder.lease, wish.new, changes)
        forced = self._orders.hooked or self._orders.hasty
        if forced and self._random.random() < 0.5:
            tip = self._tip(ref)
            commit = self._commit(holder.lease, ref)
            self._send(holder.lease, commit, [RefChange(ref=ref, expected=tip, new=commit)])

    def _send(self, lease: str, commit: str, changes: list[RefChange]) -> None:
        began = now_ms()
        pushed: Pushed = push(self._repo.root, REMOTE, changes)
        fate = pushed.fate(changes[0].ref)
        what = TAKEN if fate in {Fate.MOVED, Fate.SAME} else f"{fate}"
        self._note(lease, commit, began, what, " ".join(pushed.said), replayed=True)

    def _note(
        self, lease: str, commit: str, began: int, what: str, said: str, *, replayed: bool = False
    ) -> None:
        self._tried += 1
        self._journal.note(
            Tried(
                lease=lease,
                commit=commit,
                began_ms=began,
                answered_ms=now_ms(),
                what=what,
                said=said,
                replayed=replayed,
            )
        )

    def _commit(self, lease: str, ref: str) -> str:
        """A commit on what the remote has, which says whose it is."""
        tip = self._tip(ref)
        text = f"{lease} {new_token()}"
        args = ["commit-tree", *(["-p", tip] if tip else []), "-m", text, self._tree]
        return run_git(args, cwd=self._repo.root, env=identity(LESSOR)).text

    def _tip(self, ref: str) -> str | None:
        asked = ["rev-parse", "--verify", "--quiet", ref]
        return run_git(asked, cwd=self._bare, check=False).text or None

    def _wait(self, longest_s: float) -> None:
        SystemClock().wait(int(1000 * self._random.random() * longest_s))


if __name__ == "__main__":
    Player(Orders(**json.loads(sys.argv[1]))).play()
