"""Lessor: every operation over one store."""

from __future__ import annotations

from lessor.clock import Clock, SystemClock
from lessor.ids import Chance, new_random
from lessor.model.retry import RetryPolicy
from lessor.service.claims import Claims
from lessor.service.fences import Fences
from lessor.service.intents import Intents
from lessor.service.landing import Landings
from lessor.service.leases import Leases
from lessor.service.naming import Naming
from lessor.service.registry import Registry
from lessor.service.salvages import Salvages
from lessor.service.tasks import Tasks
from lessor.service.workspaces import Workspaces
from lessor.store import Store


class Lessor:
    """Operations in groups; each opens one transaction and calls one rule.

    Args:
        policy: the delays between attempts, and how often the same error is tried.
        chance: where jitter comes from.

    Attributes:
        registry: repositories, workers, queues and limits.
        tasks: submit, look, decide.
        leases: claim, renew, complete, give back, widen, look.
        workspaces: where work lies.
        salvages: what was saved of them.
        fences: the fence references of leases at remotes.
        intents: what is announced before it is done outside.
        landings: results that haven't landed, and what became of them.
    """

    def __init__(
        self,
        store: Store,
        *,
        clock: Clock | None = None,
        policy: RetryPolicy | None = None,
        chance: Chance | None = None,
    ) -> None:
        self.store = store
        self.naming = Naming(store.key)
        claims = Claims(store, self.naming, clock or SystemClock())
        policy = policy or RetryPolicy()
        self.registry = Registry(store, self.naming, claims)
        self.tasks = Tasks(store, self.naming, claims)
        self.leases = Leases(
            store,
            self.naming,
            claims,
            self.tasks,
            policy=policy,
            chance=chance or new_random(),
        )
        self.workspaces = Workspaces(store, self.naming)
        self.salvages = Salvages(store, self.naming)
        self.fences = Fences(store, self.naming)
        self.intents = Intents(store, self.naming, policy=policy, changed=claims.changed)
        self.landings = Landings(store, self.naming, claims)

    def now_ms(self) -> int:
        """The store's clock, in milliseconds."""
        return int(self.store.read("clock")[0][0])

    def close(self) -> None:
        """Give up connections and locks."""
        self.store.close()
