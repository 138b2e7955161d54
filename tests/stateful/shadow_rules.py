"""Landings, discards, questions and claims in any order, on a clock that jumps by hours."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Any, ClassVar

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule
from rig import Rig, open_lessor
from shadow_world import HOUR, Errand, ShadowWorld
from wishes import small
from world import settle

from invariants import check_invariants
from lessor.errors import NotFoundError
from lessor.ids import new_request_id, new_token
from lessor.model.grant import ClaimRequest, Grant, Reach, Result
from lessor.model.shadow import Unlanded
from lessor.model.task import NewTask
from lessor.model.worker import NewWorker

NEVER = 300 * 24 * HOUR
MOST = 12
BASE = "0" * 40

# Few, so that many overlap two results which lie beside each other.
paths = st.lists(
    st.sampled_from(["a/a", "a/b", "b/x.py", "a", "a", ".", "?/x.py"]), min_size=1, max_size=2
)


class ShadowMachine(RuleBasedStateMachine):
    """Every rule acts on the product and on the plain world; both have to say the same."""

    rig: ClassVar[Rig]

    def __init__(self) -> None:
        super().__init__()
        self.store = self.rig.fresh()
        self.lessor = open_lessor(self.store)
        registry = self.lessor.registry
        self.repository = registry.add_repository("github.com/acme/shop").id
        self.worker = registry.add_worker(NewWorker(agent="ada")).id
        # Turns are another machine's.
        registry.set_queue("default", overtake_limit=1_000_000, overtake_ms=NEVER)
        self.world = ShadowWorld(now=self.store.clock.wall_ms())
        self.grants: dict[int, Grant] = {}
        self.commits = 0

    def teardown(self) -> None:  # type: ignore[explicit-override]
        """Judge the rows by themselves, and give the store back."""
        check_invariants(self.store)
        self.lessor.close()
        self.rig.discard(self.store)

    @precondition(lambda self: len(self.world.errands) < MOST)
    @rule(writes=paths, reads=st.sampled_from([(), (), (), ("a",), (".",)]))
    def add(self, writes: list[str], reads: tuple[str, ...]) -> None:
        wish = NewTask(
            title="work", repository=self.repository, scopes=tuple(writes), reads=tuple(reads)
        )
        (made,) = self.lessor.tasks.submit([wish])
        row = self.lessor.naming.task_row(made.task)
        held = [(text, "w") for text in settle(writes)] + [(text, "r") for text in reads]
        self.world.errands[row] = Errand(id=row, paths=held)

    add_more = add  # drawn twice as often as other rules

    @rule(wanted=st.sampled_from([1, 1, 1, 2, 3]), anywhere=st.booleans())
    def claim(self, wanted: int, anywhere: bool) -> None:
        request = ClaimRequest(
            worker=self.worker,
            request_id=new_request_id(),
            secret=new_token(),
            repository=Reach.ANYWHERE if anywhere else self.repository,
            wanted=wanted,
            ttl_ms=NEVER,
            max_hold_ms=NEVER,
        )
        grants = self.lessor.leases.claim(request)
        row = self.lessor.naming.task_row
        found = [(row(g.task), g.stand and (row(g.stand.task), g.stand.commit)) for g in grants]
        if anywhere and not grants:  # it may not even have looked, and nothing has to be ended then
            assert self.could_have(wanted) == []
            self.sweep()  # whether it has looked, and ended what ran out, isn't told
            return
        assert found == [(one.id, one.stand) for one in self.world.claim(wanted)]
        self.grants |= {row(grant.task): grant for grant in grants}
        self.agree()

    claim_more = claim

    def could_have(self, wanted: int) -> list[Any]:
        """Whom a claim would get now."""
        return deepcopy(self.world).claim(wanted)

    @precondition(lambda self: self.grants)
    @rule(
        which=small,
        how=st.sampled_from(["complete", "complete", "ask", "ask", "release"]),
        commits=st.sampled_from([True, True, True, False]),
    )
    def end(self, which: int, how: str, commits: bool) -> None:
        task = sorted(self.grants)[which % len(self.grants)]
        holder = self.grants.pop(task).holder
        self.commits += 1
        head = f"{self.commits:040x}" if commits else None
        result = Result(base=BASE, commit=head or BASE)
        leases = self.lessor.leases
        if how == "complete":
            leases.complete_one(holder, result)
            self.world.complete(task, head)
        elif how == "ask":
            leases.ask(holder, "which?", result=result)
            self.world.ask(task, head)
        else:
            leases.release(holder)
            self.world.release(task)
        self.agree()

    end_more = end

    @precondition(lambda self: self.asking())
    @rule(which=small)
    def answer(self, which: int) -> None:
        task = self.asking()[which % len(self.asking())]
        self.lessor.tasks.answer(self.lessor.naming.task(task), "left")
        self.world.answer(task)

    @precondition(lambda self: self.asking())
    @rule(which=small)
    def cancel(self, which: int) -> None:
        task = self.asking()[which % len(self.asking())]
        self.lessor.tasks.cancel([self.lessor.naming.task(task)])
        self.world.cancel(task)
        self.agree()

    @precondition(lambda self: self.settled())
    @rule(which=small, fate=st.sampled_from(["landed", "landed", "given up"]))
    def settle(self, which: int, fate: str) -> None:
        task = self.settled()[which % len(self.settled())]
        named, landings = self.lessor.naming.task(task), self.lessor.landings
        act: dict[str, Callable[[], bool]] = {
            "landed": lambda: landings.landed(named, commit="e" * 40, target="main"),
            "given up": lambda: landings.discarded(named),
        }
        try:
            news: bool | None = act[fate]()
        except NotFoundError:
            news = None
        assert news is self.world.settle(task, fate)
        self.agree()

    @rule(setting=st.sampled_from(["stack", "stack", "wait", "ignore"]))
    def set_unlanded(self, setting: str) -> None:
        self.lessor.registry.set_unlanded(self.repository, Unlanded(setting))
        self.world.unlanded = setting

    @rule(hours=st.sampled_from([1, 1, 3, 4, 4, 4, 24, 72]), short=st.sampled_from([0, 1]))
    def tick(self, hours: int, short: int) -> None:
        self.store.advance(hours * HOUR - short)
        self.world.now += hours * HOUR - short

    @rule()
    def sweep(self) -> None:
        self.lessor.leases.sweep(repository=self.lessor.naming.repository(1))
        self.world.end_what_ran_out()
        self.agree()

    def agree(self) -> None:
        """Whose work casts a shadow, where each task is, and that who waits has something to wait for."""
        live = self.store.sql(
            "SELECT task_id FROM lease WHERE kind = 'shadow' AND ended_ms IS NULL"
        )
        assert {row for (row,) in live} == self.world.shadows()
        found = dict(self.store.sql("SELECT id, status FROM task"))
        assert found == {one.id: one.state for one in self.world.errands.values()}
        naming = self.lessor.naming
        open_ones = {naming.task_row(one.task) for one in self.lessor.landings.results()}
        expected = {
            one.id
            for one in self.world.errands.values()
            if one.state == "succeeded" and one.fate == "open"
        }
        assert open_ones == expected

    def asking(self) -> list[int]:
        """Tasks that wait for a person."""
        return [one.id for one in self.world.errands.values() if one.state == "needs_person"]

    def settled(self) -> list[int]:
        """Tasks that nobody goes on with; those whose result may be landed or given up, where there are."""
        still = [
            one
            for one in self.world.errands.values()
            if one.state in {"succeeded", "needs_person", "queued"}
        ]
        return [one.id for one in still if one.shadow_until] or [one.id for one in still]
