"""Who believed to hold which places when, by acknowledgement, and that no two did so at once."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from torture.arena import leaves_of
from torture.log import FOR_EVER, Fault, History
from torture.promises import granted
from torture.register import ENDING, ENDING_EARLY


@dataclass(frozen=True, slots=True, kw_only=True)
class Belief:
    """From an acknowledgement to the holder's own deadline: half-open, in nanoseconds of CLOCK_BOOTTIME."""

    who: str
    repository: str
    task: str
    epoch: int
    leaves: frozenset[str]
    begin: int
    end: int

    def told(self) -> str:
        """For people."""
        places = ", ".join(sorted(self.leaves))
        return f"{self.who} held {places} by {self.task} epoch {self.epoch}"


def overlapping_beliefs(history: History) -> Iterator[str]:
    """No two held overlapping places at one instant, each by what it had been told."""
    live: dict[str, list[Belief]] = defaultdict(list)
    for belief in sorted(beliefs(history), key=lambda belief: belief.begin):
        others = [other for other in live[belief.repository] if other.end > belief.begin]
        for other in others:
            if other.task != belief.task and other.leaves & belief.leaves:
                yield f"{belief.told()} while {other.told()} for {(other.end - belief.begin) / 1e6:.0f} ms more"
        live[belief.repository] = [*others, belief]
    yield from _two_of_one_task(history)


def _two_of_one_task(history: History) -> Iterator[str]:
    of_task: dict[str, list[Belief]] = defaultdict(list)
    for belief in beliefs(history, widened=False):
        of_task[belief.task].append(belief)
    for several in of_task.values():
        several.sort(key=lambda belief: belief.begin)
        for place, belief in enumerate(several):
            for other in several[:place]:
                if other.epoch != belief.epoch and other.end > belief.begin:
                    yield f"{belief.told()} while {other.told()}"


def beliefs(history: History, *, widened: bool = True) -> Iterator[Belief]:
    """What each holder could believe of each lease: a piece from each answer to the deadline that it gave.

    A piece ends early where the holder began to end the lease. A promotion, and a step
    forward of the store's clock, may end every lease that was granted before it.
    """
    ends: dict[tuple[str, int], int] = defaultdict(lambda: FOR_EVER)
    answers: dict[tuple[str, int], list[tuple[int, int, int]]] = defaultdict(list)
    for call in history.calls:
        known = (call.asked.get("task", ""), call.asked.get("epoch", 0))
        if call.op in ENDING:
            ends[known] = min(ends[known], call.at)
        elif call.op == "renew" and call.ok is not None and call.done is not None:
            answers[known].append((call.at, call.done, _stop_at(history, call.at, call.ok["ttl"])))
    places: dict[tuple[str, int], list[tuple[int, frozenset[str]]]] = defaultdict(list)
    of: dict[tuple[str, int], tuple[str, str]] = {}
    for call, grant in granted(history):
        known = (grant["task"], grant["epoch"])
        stop = _stop_at(history, call.at, grant["ttl"])
        answers[known].append((call.at, call.done or FOR_EVER, stop))
        places[known].append((0, leaves_of(grant["paths"])))
        of[known] = (call.who, grant["repository"])
    for call in history.calls:
        if widened and call.op == "widen" and call.ok is not None:
            known = (call.asked["task"], call.asked["epoch"])
            places[known].append((call.done or FOR_EVER, leaves_of(call.asked["paths"])))
    early = [fault for fault in history.faults if fault.kind in ENDING_EARLY]
    for known, pieces in answers.items():
        for sent, told, stop in pieces if known in of else ():
            for since, leaves in places[known]:
                begin = max(told, since)
                end = min(stop, ends[known], _ended_early(early, sent, stop))
                if begin < end:
                    yield Belief(
                        who=of[known][0],
                        repository=of[known][1],
                        task=known[0],
                        epoch=known[1],
                        leaves=leaves,
                        begin=begin,
                        end=end,
                    )


def _stop_at(history: History, at: int, ttl_ms: int) -> int:
    return at + (ttl_ms - history.margin_ms) * 1_000_000


def _ended_early(early: list[Fault], sent: int, stop: int) -> int:
    """When something ended the lease that was asked for at `sent`, at the earliest."""
    return min((f.at for f in early if sent < f.until and f.at < stop), default=FOR_EVER)
