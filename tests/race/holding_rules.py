"""What may not be held side by side: paths, reserved turns, and more leases than a limit allows."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator

from history import History, Lease
from spans import FOR_EVER, Span, certain_spans, reserved_spans, stored_spans


def overlapping_by_fence(history: History) -> Iterator[str]:
    """Of two overlapping grants of which one writes, the later by fence began after the earlier ended."""
    for spans in _by_repository(stored_spans(history)):
        live: list[Span] = []
        for span in sorted(spans, key=lambda span: span.fence):
            live = [earlier for earlier in live if earlier.end > span.begin]
            yield from (
                f"{span.told()} while {earlier.told()}"
                for earlier in live
                if earlier.conflicts(span)
            )
            live.append(span)


def overlapping_by_journals(history: History) -> Iterator[str]:
    """No two processes were certain of overlapping paths at one instant; no word of the store's is used."""
    for spans in _by_repository(span for span in certain_spans(history) if span.begin < span.end):
        live: list[Span] = []
        for span in sorted(spans, key=lambda span: span.begin):
            live = [earlier for earlier in live if earlier.end > span.begin]
            yield from (
                f"{span.told()} while {earlier.told()}"
                for earlier in live
                if earlier.conflicts(span)
            )
            live.append(span)


def overtaken_turns(history: History) -> Iterator[str]:
    """While a turn is reserved, nothing of the same or a lower priority is granted over its paths.

    But what a task held already: the turn may wait for it.
    """
    ranks = {task.id: task.rank for task in history.tasks.values()}
    held = {(lease.task, lease.ended_ms) for lease in history.leases if lease.kind == "hold"}
    turns = list(reserved_spans(history))
    for span in stored_spans(history):
        freely = span.is_grant and (span.task, span.begin) not in held
        for turn in turns if freely else ():
            if (
                turn.repository == span.repository
                and turn.begin < span.begin < turn.end
                and ranks[span.task] >= ranks[turn.task]
                and turn.conflicts(span)
            ):
                yield f"{span.told()} passed {turn.told()}"


def overstepped_limits(history: History) -> Iterator[str]:
    """At no instant of the store's clock are more leases live than a limit allows."""
    for kind, key, maximum in history.limits:
        counted = [lease for lease in history.grants() if _counts(lease, kind, key)]
        # Half-open: at one instant ends come before beginnings.
        moves = sorted(
            [(lease.ended_ms or FOR_EVER, -1) for lease in counted]
            + [(lease.granted_ms, 1) for lease in counted]
        )
        holding = 0
        for at, by in moves:
            holding += by
            if holding > maximum:
                yield f"{holding} leases of {kind} {key} at {at}, where {maximum} are allowed"


def _counts(lease: Lease, kind: str, key: str) -> bool:
    return key == {"queue": lease.queue, "agent": lease.agent, "key": lease.limit_key}[kind]


def _by_repository(spans: Iterable[Span]) -> Iterator[list[Span]]:
    found: dict[int, list[Span]] = defaultdict(list)
    for span in spans:
        found[span.repository].append(span)
    yield from found.values()
