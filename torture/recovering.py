"""How long it took from a holder's death until its places, or its task, were somebody's again."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from itertools import islice
from operator import itemgetter
from statistics import quantiles

from torture.arena import leaves_of
from torture.log import History
from torture.promises import granted
from torture.register import ENDING

GRACE_MS = 5_000
OUTAGES = frozenset({"failover", "full", "net silence", "net deafen", "clock back"})
ENOUGH = 20
"""How many leases of the dead it takes to judge their p99."""
DEATHS = frozenset({"kill", "midcall"})


def recoveries_ms(history: History) -> list[float]:
    """One for each lease of a queued task that somebody died with.

    The next grant is that of the task, or of one whose paths overlap and which got them first. What
    nobody could reach meanwhile isn't counted: the store, or the remote of a fenced repository.
    """
    ended = {
        (call.asked["task"], call.asked["epoch"])
        for call in history.calls
        if call.op in ENDING and call.no != "lease_lost"
    }
    deaths = {fault.who: fault.until for fault in history.faults if fault.kind in DEATHS}
    followed = _last_told(history)
    grants = sorted(
        (
            (call.done, call, grant, leaves_of(grant["paths"]))
            for call, grant in granted(history)
            if call.done is not None
        ),
        key=itemgetter(0),
    )
    instants = [grant[0] for grant in grants]
    tasks = {call.asked["task"] for call in history.calls if call.op == "push"}
    pushed = {grant["repository"] for _, _, grant, _ in grants if grant["task"] in tasks}
    term = history.ttl_ms * 1_000_000
    found = []
    for _, call, grant, leaves in grants:
        known, died = (grant["task"], grant["epoch"]), deaths.get(call.who)
        if died is None or known in ended or call.op == "acquire":
            continue
        if followed[known] < died - term:
            continue  # it had been lost before, or forgotten
        for done, _, next_, others in islice(grants, bisect_right(instants, followed[known]), None):
            if next_["repository"] == grant["repository"] and (
                next_["epoch"] > grant["epoch"]
                if next_["task"] == grant["task"]
                else leaves & others
            ):
                if done > died:  # else a promotion had ended it before
                    fenced = grant["repository"] in pushed
                    found.append((done - died - _out(history, died, done, fenced=fenced)) / 1e6)
                break
    return sorted(found)


def _out(history: History, begin: int, end: int, *, fenced: bool) -> int:
    """How much of an interval everybody was without the store, or without the remote."""
    out, until = 0, begin
    for fault in sorted(history.faults, key=lambda fault: fault.at):
        if fault.kind in OUTAGES or (fenced and fault.kind == "git slow"):
            out += max(0, min(fault.until, end) - max(fault.at, until))
            until = max(until, min(fault.until, end))
    return out


def percentiles(found: list[float]) -> tuple[float, float]:
    """p50 and p99; zeros where nobody died."""
    if len(found) < 2:
        return (found[0], found[0]) if found else (0.0, 0.0)
    cuts = quantiles(found, n=100, method="inclusive")
    return cuts[49], cuts[98]


def late_recoveries(history: History) -> Iterator[str]:
    """The p99 is below the term and five seconds."""
    found = recoveries_ms(history)
    late = percentiles(found)[1]
    if len(found) >= ENOUGH and late > history.ttl_ms + GRACE_MS:
        yield f"p99 from a death to the next grant is {late:.0f} ms, the term is {history.ttl_ms} ms"


def _last_told(history: History) -> dict[tuple[str, int], int]:
    """When each lease was last granted or renewed by acknowledgement."""
    last: dict[tuple[str, int], int] = {}
    for call, grant in granted(history):
        last[grant["task"], grant["epoch"]] = call.done or 0
    for call in history.calls:
        if call.op == "renew" and call.ok is not None:
            known = (call.asked["task"], call.asked["epoch"])
            last[known] = max(last.get(known, 0), call.done or 0)
    return last
