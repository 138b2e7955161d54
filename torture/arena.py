"""What the workers fight over: a few areas with a few places each, in two repositories and in none."""

from __future__ import annotations

from collections.abc import Iterable
from random import Random

from lessor.model.retry import RetryPolicy
from lessor.model.task import NewTask

AREAS = ("a", "b", "c", "d")
PLACES = ("0", "1", "2")
LEAVES = tuple(f"{area}/{place}" for area in AREAS for place in PLACES)
POLICY = RetryPolicy(first_ms=20, ceiling_ms=100, same_error_limit=10)
MOST_ATTEMPTS = 1000
"""A task is killed many times here, and that isn't its fault."""


def random_paths(rng: Random) -> tuple[str, ...]:
    """Mostly one place, sometimes two, seldom a whole area."""
    kind = rng.random()
    if kind < 0.06:
        return (rng.choice(AREAS),)
    return tuple(rng.sample(LEAVES, 2 if kind < 0.2 else 1))


def random_tasks(rng: Random, wanted: int, *, repositories: Iterable[str | None]) -> list[NewTask]:
    """A batch for these repositories, None being none; some of it without one in any case."""
    places = [*repositories]
    return [
        _random_task(rng, None if rng.random() < 0.2 else rng.choice(places)) for _ in range(wanted)
    ]


def _random_task(rng: Random, repository: str | None) -> NewTask:
    return NewTask(
        title=f"task {rng.randrange(10**6)}",
        repository=repository,
        scopes=() if repository is None else random_paths(rng),
        max_attempts=MOST_ATTEMPTS,
        priority=rng.choice((0, 0, 0, 1)),
    )


def leaves_of(paths: Iterable[str]) -> frozenset[str]:
    """The places that some paths cover; the checker's own idea of it, by segments."""
    return frozenset(
        leaf for leaf in LEAVES for path in paths if leaf == path or leaf.startswith(f"{path}/")
    )
