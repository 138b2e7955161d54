"""What the processes fight over: repositories, queues, limits, and tasks with random scopes."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from itertools import product
from random import Random

from lessor.model.retry import RetryPolicy
from lessor.model.task import Effects, NewTask
from lessor.service.lessor import Lessor

PLAIN, FOLDED = "race/plain", "race/folded"
QUEUES = ("default", "narrow", "ad-hoc")
AGENTS = ("agent-0", "agent-1", "agent-2", "agent-3")
LIMITS = (
    ("queue", "narrow", 3),
    ("key", "db", 2),
    ("key", "gpu", 1),
    ("agent", "agent-0", 3),
)
DECISIONS = {
    "needs_person": "answer",
    "blocked": "unblock",
    "quarantined": "requeue",
    "reconciling": "requeue",
}
"""What a task waits for in a state that only a person leads out of."""
POLICY = RetryPolicy(first_ms=20, ceiling_ms=100, same_error_limit=10)

_FOLDERS = ("a", "b", "c", "ab", "A")
LITERALS = (
    ".",
    *("/".join(path) for level in (1, 2) for path in product(_FOLDERS, repeat=level)),
    *("/".join((*path, name)) for path in product(_FOLDERS, repeat=2) for name in ("1.py", "2.md")),
    *(f"{folder}/{name}" for folder in _FOLDERS for name in ("1.py", "2.md")),
    *(f"a/b/{name}" for name in _FOLDERS),
)
DEEP = tuple(text for text in LITERALS if text.count("/") == 2)
GLOBS = (
    "*.py",
    "**/*.py",
    "**/*.md",
    "a/*",
    "a/*.py",
    "b/**",
    "*/b",
    "?/1.py",
    "**/1.py",
    "b/**/2.md",
    "a*/a",
    "?b/*",
    "A/*.py",
    "c/*/b",
    "*/*/2.*",
)


def set_up(lessor: Lessor, *, limited: bool) -> None:
    """Register what the players look for; in a limited arena everything is counted."""
    lessor.registry.add_repository(PLAIN)
    lessor.registry.add_repository(FOLDED, fold_case=True)
    for queue in QUEUES:
        lessor.registry.set_queue(queue, overtake_limit=4, overtake_ms=2_000)
    for kind, key, maximum in LIMITS if limited else ():
        lessor.registry.set_limit(kind, key, maximum)


def random_scope(rng: Random) -> str:
    """Mostly a literal well below the top, now and then a glob, seldom everything."""
    kind = rng.random()
    if kind < 0.12:
        return rng.choice(GLOBS)
    return rng.choice(LITERALS if kind < 0.2 else DEEP)


def random_tasks(
    rng: Random, wanted: int, *, repositories: Sequence[str], known: Sequence[str]
) -> list[NewTask]:
    """A batch in which some need others of it, or one of the `known` tasks."""
    return [
        _random_task(rng, place, repositories=repositories, known=known) for place in range(wanted)
    ]


def _random_task(
    rng: Random, place: int, *, repositories: Sequence[str], known: Sequence[str]
) -> NewTask:
    free = rng.random() < 0.2
    effects = rng.choices(tuple(Effects), weights=(2, 14, 1, 1, 1, 1))[0]
    return NewTask(
        title=f"t{rng.randrange(50)}",  # few titles: branches are made of them, and meet
        queue=rng.choices(QUEUES, weights=(6, 2, 0))[0],
        repository=None if free else rng.choice(repositories),
        scopes=() if free else _scopes(rng, rng.choice((0, 1, 1, 2, 3))),
        reads=() if free else _scopes(rng, rng.choice((0, 0, 1, 2))),
        strict=rng.random() < 0.1,
        priority=rng.choice((-1, 0, 0, 0, 1, 2)),
        delay=timedelta(milliseconds=rng.randrange(300)) if rng.random() < 0.1 else None,
        needs=(rng.choice(known),) if known and rng.random() < 0.05 else (),
        needs_index=(rng.randrange(place),) if place and rng.random() < 0.2 else (),
        unique_key=f"u{rng.randrange(5)}" if rng.random() < 0.05 else None,
        idempotency_key="k" if rng.random() < 0.5 else None,
        effects=effects,
        max_attempts=rng.choice((2, 5, 20)),
        agent=rng.choice(AGENTS) if rng.random() < 0.05 else None,
        limit_key=rng.choices((None, "db", "gpu"), weights=(6, 2, 1))[0],
        progress=rng.random() < 0.9,
        branch=f"feature/b{rng.randrange(3)}" if not free and rng.random() < 0.03 else None,
    )


def _scopes(rng: Random, wanted: int) -> tuple[str, ...]:
    return tuple(random_scope(rng) for _ in range(wanted))
