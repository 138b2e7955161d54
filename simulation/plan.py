"""What one run is made of, drawn from its seed: how many, how long, and which faults how often."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from lessor.ids import Chance

FAULTS: Mapping[str, str] = {
    "lost_before": "a call never reaches the store",
    "lost_after": "a call is done, and its answer never arrives",
    "doubled": "a call is delivered twice",
    "late": "a call is delivered late",
    "straggler": "a copy of a call is delivered long after its caller has gone on",
    "pause": "a process stands still between two statements, and goes on with what it was about to do",
    "crash": "a process ends, and what it remembered is gone",
    "crash_in_doubt": "a process ends after it has sent a push, and before it knows what became of it",
    "crash_within": "a process ends at some statement of a transaction",
    "broken_statement": "a statement of a transaction fails: busy, full, or an I/O error",
    "disk_full": "the store can't grow for a while (SQLITE_FULL wherever SQLite says so)",
    "step_forward": "the wall clock is set forward",
    "step_back": "the wall clock is set back",
    "suspend": "the machine sleeps",
    "clone": "a second process acts with the same identity, token and leases",
    "forged": "a holder's call is sent with something of its proof changed",
    "careless": "a worker goes on after its authority has ended",
    "check_fails": "the check of a result fails",
    "hook_refuses": "a hook at the remote refuses a push",
    "remote_down": "the remote can't be asked for a while",
    "push_late": "a push arrives at the remote long after it was sent",
    "push_unanswered": "the remote's answer to a push never arrives",
    "person_intrudes": "a person cancels, blocks, forces, pauses, or sets a limit",
    "witness": "a host's witness proves a process gone",
}

RATES = (0.003, 0.01, 0.03, 0.1, 0.3)
RARE = frozenset(
    {
        "clone",
        "forged",
        "crash_in_doubt",
        "careless",
        "check_fails",
        "hook_refuses",
        "push_late",
        "push_unanswered",
    }
    | {"person_intrudes", "witness", "disk_full", "step_forward", "step_back", "suspend"}
)
"""What could happen at fewer places: five times as often there."""
MOST = 0.5
LEASES_MS = (30_000, 60_000, 300_000)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """One run.

    Attributes:
        steps: how many accesses to the store and the remote until the faults stop.
        tasks: how many unfinished tasks people keep in the store.
        files: each process opens the store's file by itself; else they share one in memory.
        fenced: whether the repositories are fenced at the remote.
        rates: how often each fault happens where it could; a kind that is missing never does.
        unjudged: invariants that nobody looks at.
    """

    seed: int
    steps: int
    workers: int
    tasks: int
    repositories: int
    ttl_ms: int
    files: bool
    fenced: bool
    unlanded: str
    rates: Mapping[str, float]
    unjudged: tuple[str, ...] = ()

    def chance(self, name: str) -> Chance:
        """A stream of its own for each purpose: what one draws doesn't move the others."""
        return Chance(f"{self.seed}/{name}")

    def rate(self, fault: str) -> float:
        """How often a fault happens where it could."""
        return self.rates.get(fault, 0.0)

    def without(self, fault: str) -> Plan:
        """The same with one kind of fault less."""
        return replace(self, rates={k: v for k, v in self.rates.items() if k != fault})


def draw_plan(seed: int) -> Plan:
    """The plan of a seed: its own mix of faults and sizes, so that no fault hides another for ever."""
    chance = Chance(f"{seed}/plan")
    share = chance.choice((0.2, 0.5, 0.8))
    return Plan(
        seed=seed,
        steps=chance.choice((200, 500, 500, 1_500)),
        workers=chance.choice((2, 3, 5, 8)),
        tasks=chance.choice((4, 8, 16, 32)),
        repositories=chance.choice((1, 1, 2)),
        ttl_ms=chance.choice(LEASES_MS),
        files=chance.random() < 0.25,
        fenced=chance.random() < 0.5,
        unlanded=chance.choice(("stack", "wait", "ignore")),
        rates={
            name: min(MOST, chance.choice(RATES) * (5 if name in RARE else 1))
            for name in FAULTS
            if chance.random() < share
        },
    )
