"""Each task is a small register, and what was told of it has to be explained by one order of the calls.

The register is free, held by an epoch until somewhere between two instants, or ended. The search is
Wing and Gong's, with a memory of what was tried (Lowe): an order has to keep every call between its
first line and its last one. A call without an answer may have been carried out at any time after it
was sent, or never. A lapse is nobody's call: it may come once the term can be over.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from torture.log import FOR_EVER, Call, Fault, History

CLAIMING = frozenset({"claim", "acquire"})
ENDING = frozenset({"complete", "fail", "release"})
WRITES = frozenset({"renew", "widen", *ENDING})
TERMINAL = frozenset({"succeeded", "failed", "cancelled"})
ENDING_EARLY = frozenset({"failover", "clock"})
"""Faults that end leases before their holders can know: a promotion, and a step forward of the store's clock."""
SLACK_NS = 30_000_000
"""What rounding to milliseconds and a clock that runs 0.1 % fast may come to."""
MOST_STEPS = 200_000
LONGEST_FAULT_NS = 60 * 1_000_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Op:
    """One call on one task, with all of its repetitions.

    Attributes:
        kind: claim, renew, widen, end, or refused.
        begin: when it was first sent.
        done: when it was first answered; FOR_EVER where it never was.
        over_from: the earliest instant that the lease can be over at, after a claim or a renewal.
        over_until: the latest instant that it can live to.
        ends: whether it ends the task, not the lease alone.
    """

    kind: str
    epoch: int
    begin: int
    done: int
    who: str
    over_from: int = 0
    over_until: int = FOR_EVER
    ends: bool = False

    @property
    def is_open(self) -> bool:
        """Whether nobody was told what became of it."""
        return self.done == FOR_EVER


class State(NamedTuple):
    """The register: `epoch` is the last one; the rest counts while it is held."""

    phase: str = "free"
    epoch: int = 0
    over_from: int = 0
    over_until: int = 0
    now: int = 0


def unexplained_tasks(history: History) -> Iterator[str]:
    """No order of a task's calls explains what was told of it."""
    for task, ops in ops_by_task(history).items():
        left = unexplained(ops)
        if left:
            yield f"{task}: nothing explains {left[0]} among {len(ops)} calls"


def ops_by_task(history: History) -> dict[str, list[Op]]:
    """What the logs say of each task."""
    kinds = {*ENDING_EARLY, "clock back"}
    faults = sorted((fault for fault in history.faults if fault.kind in kinds), key=lambda f: f.at)
    instants = [fault.at for fault in faults]
    outdated = _outdated(history)
    found: dict[str, list[Op]] = defaultdict(list)
    for (task, _), calls in _granted(history).items():
        found[task].append(_claim(task, calls))
    for (task, _, op, _), calls in _written(history).items():
        found[task].extend(_write(op, calls, outdated))
    return {
        task: sorted((_loose(op, faults, instants) for op in ops), key=lambda op: op.begin)
        for task, ops in found.items()
    }


def unexplained(ops: Sequence[Op]) -> list[Op]:
    """Empty where some order explains all; else what was left where the search came furthest."""
    everything = (1 << len(ops)) - 1
    needed = sum(1 << place for place, op in enumerate(ops) if not op.is_open)
    tried: set[tuple[int, State]] = set()
    waiting: list[tuple[int, State]] = [(0, State())]
    furthest = 0
    while waiting:
        done, state = waiting.pop()
        if done & needed == needed:
            return []
        if (done, state) in tried or len(tried) > MOST_STEPS:
            continue
        tried.add((done, state))
        if (done & needed).bit_count() > (furthest & needed).bit_count():
            furthest = done
        left = [place for place in range(len(ops)) if not done >> place & 1]
        latest = min(ops[place].done for place in left if not ops[place].is_open)
        for place in reversed(left):
            if ops[place].begin <= latest:
                after = _apply(state, ops[place])
                if after is not None:
                    waiting.append((done | 1 << place, after))
    return [op for place, op in enumerate(ops) if (needed & ~furthest & everything) >> place & 1]


def _apply(state: State, op: Op) -> State | None:
    """The register after the call; None where it can't have been answered so."""
    at = max(state.now, op.begin)
    held = state.phase == "held" and state.epoch == op.epoch
    if op.kind == "claim":
        if state.phase == "held":  # a lapse comes first
            at = max(at, state.over_from)
        if state.phase == "ended" or op.epoch <= state.epoch or at > op.done:
            return None
        return State("held", op.epoch, op.over_from, op.over_until, at)
    if op.kind == "refused":
        if held:
            at = max(at, state.over_from)
        return state._replace(now=at) if at <= op.done else None
    if not held or at > op.done or at >= state.over_until:
        return None
    if op.kind == "renew":
        return state._replace(
            over_from=op.over_from or state.over_from, over_until=op.over_until, now=at
        )
    if op.kind == "end":
        return State("ended" if op.ends else "free", op.epoch, now=at)
    return state._replace(now=at)


def _granted(history: History) -> dict[tuple[str, int], list[tuple[Call, int]]]:
    """Each grant that was told, with the calls that told it and the term that they told."""
    found: dict[tuple[str, int], list[tuple[Call, int]]] = defaultdict(list)
    first: dict[str, Call] = {}
    for call in history.calls:
        if call.op in CLAIMING:
            first.setdefault(call.asked["request"], call)
            for grant in (call.ok or {}).get("grants", ()):
                known = found[grant["task"], grant["epoch"]]
                if not known:
                    known.append((first[call.asked["request"]], 0))
                known.append((call, grant["ttl"]))
    return found


def _claim(task: str, calls: Sequence[tuple[Call, int]]) -> Op:
    first, (told, ttl_ms) = calls[0][0], calls[1]
    epoch = next(g["epoch"] for g in (told.ok or {})["grants"] if g["task"] == task)
    return Op(
        kind="claim",
        epoch=epoch,
        begin=first.at,
        done=told.done or FOR_EVER,
        who=told.who,
        over_from=told.at + ttl_ms * 1_000_000 - SLACK_NS,
        over_until=(told.done or FOR_EVER) + ttl_ms * 1_000_000 + SLACK_NS,
    )


def _written(history: History) -> dict[tuple[str, int, str, str], list[Call]]:
    """A holder's writes; the repetitions of one are together."""
    found: dict[tuple[str, int, str, str], list[Call]] = defaultdict(list)
    for number, call in enumerate(history.calls):
        if call.op in WRITES:
            which = call.asked.get("request", "") if call.op == "renew" else ""
            which = which if call.op != "widen" else str(number)
            found[call.asked["task"], call.asked["epoch"], call.op, f"{call.who}{which}"].append(
                call
            )
    return found


def _write(op: str, calls: Sequence[Call], outdated: set[tuple[str, str, int]]) -> Iterator[Op]:
    """The write, if it was taken or may have been; and each refusal."""
    first = calls[0]
    taken = next((call for call in calls if call.ok is not None), None)
    kind = "end" if op in ENDING else op
    if taken is not None:
        ok = taken.ok or {}
        ttl = ok.get("ttl", 0) * 1_000_000
        done = taken.done or FOR_EVER
        yield Op(
            kind=kind,
            epoch=first.asked["epoch"],
            begin=first.at,
            done=done,
            who=first.who,
            over_from=taken.at + ttl - SLACK_NS,
            over_until=done + ttl + SLACK_NS,
            ends=ok.get("state") in TERMINAL,
        )
        return
    open_ = [call for call in calls if call.is_open]
    if open_:  # whether a release ends the task (a bare scope's does) nobody was told
        yield Op(
            kind=kind,
            epoch=first.asked["epoch"],
            begin=open_[0].at,
            done=FOR_EVER,
            who=first.who,
            ends=op == "complete",
        )
        return
    for call in calls:
        known = (call.who, call.asked["task"], call.asked["epoch"])
        if call.no == "lease_lost" and known not in outdated:
            yield Op(
                kind="refused",
                epoch=first.asked["epoch"],
                begin=call.at,
                done=call.done or FOR_EVER,
                who=call.who,
            )


def _outdated(history: History) -> set[tuple[str, str, int]]:
    """Whose renewal was given up: its holder has a version that may not be the lease's any more."""
    return {
        (call.who, call.asked["task"], call.asked["epoch"])
        for call in history.calls
        if call.op in {*ENDING, "renew"} and call.is_open
    }


def _loose(op: Op, faults: Sequence[Fault], instants: Sequence[int]) -> Op:
    """What a promotion or a step of the store's clock may have touched is judged less strictly.

    A promotion and a step forward end leases early. A step back only lets them live longer, or again:
    one that was over, while nobody was granted anything since.
    """
    latest = op.done if op.over_until == FOR_EVER else op.over_until
    first = bisect_left(instants, op.begin - LONGEST_FAULT_NS)
    for fault in faults[first : bisect_left(instants, latest + LONGEST_FAULT_NS)]:
        if fault.kind in ENDING_EARLY and fault.until >= op.begin and fault.at < op.over_from:
            op = replace(op, over_from=max(op.begin, fault.at))
        back = fault.kind == "clock back" and fault.until >= op.begin
        if back and fault.at - (fault.until - fault.at) < op.over_until:
            op = replace(op, over_until=FOR_EVER)
    return op
