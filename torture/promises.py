"""What was acknowledged: granted once, in growing order, ended once, and still there when all is over."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from torture.log import FOR_EVER, Call, History
from torture.register import CLAIMING, ENDING, WRITES

ENDS = {"complete": "completed", "fail": "failed", "release": "released"}


def granted(history: History) -> Iterator[tuple[Call, dict[str, Any]]]:
    """Each grant that somebody was told of."""
    for call in history.calls:
        if call.op in CLAIMING and call.ok is not None:
            for grant in call.ok["grants"]:
                yield call, grant


def double_accepts(history: History) -> Iterator[str]:
    """At most one completion of a task was accepted; a repetition of it is the same one."""
    taken: dict[str, set[int]] = defaultdict(set)
    fresh: dict[str, int] = defaultdict(int)
    for call in history.calls:
        if call.op == "complete" and call.ok is not None:
            taken[call.asked["task"]].add(call.asked["epoch"])
            fresh[call.asked["task"]] += not call.ok["repeated"]
    for task, epochs in taken.items():
        if len(epochs) > 1 or fresh[task] > 1:
            yield f"{task} was completed {max(len(epochs), fresh[task])} times, at epochs {sorted(epochs)}"


def second_grants(history: History) -> Iterator[str]:
    """An epoch of a task was granted to one request, and a request got no more than it wanted."""
    whose: dict[tuple[str, int], str] = {}
    got: dict[str, set[tuple[str, int]]] = defaultdict(set)
    for call, grant in granted(history):
        known, request = (grant["task"], grant["epoch"]), call.asked["request"]
        if whose.setdefault(known, request) != request:
            yield f"{known} was granted to {whose[known]} and to {request} of {call.who}"
        got[request].add(known)
        if len(got[request]) > call.asked["wanted"]:
            yield f"{request} wanted {call.asked['wanted']} and was granted {sorted(got[request])}"


def shrinking_epochs(history: History) -> Iterator[str]:
    """What was granted of a task after an earlier grant had been told has a larger epoch."""
    of_task: dict[str, list[tuple[int, int, int]]] = defaultdict(list)
    for (task, epoch), (begin, done) in _intervals(history).items():
        of_task[task].append((begin, done, epoch))
    for task, grants in of_task.items():
        yield from (f"{task}: {line}" for line in _disordered(grants, "epoch"))


def shrinking_fences(history: History) -> Iterator[str]:
    """What a repository granted after an earlier grant had been told has a larger (term, fence)."""
    intervals = _intervals(history)
    of_repository: dict[str, list[tuple[int, int, tuple[int, int]]]] = defaultdict(list)
    seen: set[tuple[str, int]] = set()
    terms: dict[tuple[str, int], tuple[str, int]] = {}
    seen_fences: set[tuple[tuple[str, int], int]] = set()
    for _, grant in granted(history):
        known = (grant["task"], grant["epoch"])
        if known not in seen and grant["repository"]:
            seen.add(known)
            terms[known] = (grant["repository"], grant["term"])
            fence = (grant["term"], grant["fence"])
            of_repository[grant["repository"]].append((*intervals[known], fence))
            seen_fences.add((known, grant["fence"]))
    for call in history.calls:
        known = (call.asked.get("task", ""), call.asked.get("epoch", 0))
        if call.op == "widen" and call.ok is not None and known in terms:
            repository, term = terms[known]
            fence = (term, call.ok["fence"])
            if (known, call.ok["fence"]) in seen_fences:
                continue  # it had those places already: nothing was granted
            seen_fences.add((known, call.ok["fence"]))
            of_repository[repository].append((call.at, call.done or FOR_EVER, fence))
    for repository, grants in of_repository.items():
        yield from (f"{repository}: {line}" for line in _disordered(grants, "fence"))


def overtaken_writes(history: History) -> Iterator[str]:
    """Nothing was taken from a holder after somebody had been told of a later epoch."""
    told: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for (task, epoch), (_, done) in _intervals(history).items():
        told[task].append((epoch, done))
    for call in history.calls:
        if call.op in WRITES and call.ok is not None and not call.ok.get("repeated"):
            task, epoch = call.asked["task"], call.asked["epoch"]
            later = [e for e, done in told[task] if e > epoch and done < call.at]
            if later:
                yield f"{call.op} of {(task, epoch)} by {call.who} was taken after epoch {later[0]} was granted"


def lost_acknowledgements(history: History) -> Iterator[str]:
    """Each grant, renewal and end that was acknowledged is in what the store says at the end."""
    if history.last is None:
        return
    leases = {(lease["task"], lease["epoch"]): lease for lease in history.last["leases"]}
    states = history.last["tasks"]
    for _, grant in granted(history):
        lease = leases.get((grant["task"], grant["epoch"]))
        if lease is None or (lease["term"], lease["fence"]) != (grant["term"], grant["fence"]):
            yield f"granted {grant}, and the store has {lease}"
    for call in history.calls:
        if call.ok is None:
            continue
        if call.op == "submit":
            yield from (
                f"{task} was submitted and isn't there"
                for task in call.ok["tasks"]
                if task not in states
            )
        if call.op not in {*ENDING, "renew"}:
            continue
        known = (call.asked["task"], call.asked["epoch"])
        lease = leases.get(known) or {"version": 0, "end": "", "term": 0}
        if call.op == "renew" and lease["version"] < call.ok["version"]:
            yield f"{known} was renewed to version {call.ok['version']}, and the store has {lease}"
        if call.op in ENDING and lease["end"] != ENDS[call.op]:
            yield f"{call.op} of {known} was acknowledged, and the store has {lease}"
        if call.op == "complete" and states.get(known[0]) != "succeeded":
            yield f"{known} was completed, and its task is {states.get(known[0])}"


def _intervals(history: History) -> dict[tuple[str, int], tuple[int, int]]:
    """When each grant was first sent for, and when it was first told."""
    first: dict[str, int] = {}
    found: dict[tuple[str, int], tuple[int, int]] = {}
    for call in history.calls:
        if call.op in CLAIMING:
            first.setdefault(call.asked["request"], call.at)
    for call, grant in granted(history):
        begin = first[call.asked["request"]]
        found.setdefault((grant["task"], grant["epoch"]), (begin, call.done or FOR_EVER))
    return found


def _disordered(grants: list[tuple[int, int, Any]], what: str) -> Iterator[str]:
    """Of two where one was told before the other was sent for, the later has to be larger."""
    by_done = sorted(grants, key=lambda grant: grant[1])
    largest: Any = None
    place = 0
    for begin, _, number in sorted(grants, key=lambda grant: grant[0]):
        while by_done[place][1] < begin:
            if largest is None or by_done[place][2] > largest:
                largest = by_done[place][2]
            place += 1
        if largest is not None and number <= largest:
            yield f"{what} {number} was granted after {what} {largest} had been told"
