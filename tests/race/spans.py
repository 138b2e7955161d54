"""Who held which paths from when to when: by the store's own rows, and by the journals alone."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from brute import paths_of
from history import ENDING, History, Known, Lease

FOR_EVER = 2**62
REVOKING = frozenset({"cancel", "block", "force_release", "end_gone"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """Paths held for writing and for reading, in a half-open interval of some clock."""

    what: str
    repository: int
    task: int
    fence: int
    writes: int
    reads: int
    begin: float
    end: float
    is_grant: bool = True

    def told(self) -> str:
        """For people."""
        return f"{self.what} (fence {self.fence}) from {self.begin} to {self.end}"

    def conflicts(self, other: Span) -> bool:
        """Whether the two can't be held side by side."""
        return self.task != other.task and bool(
            (self.writes & (other.writes | other.reads)) | (self.reads & other.writes)
        )


def stored_spans(history: History) -> Iterator[Span]:
    """Each grant and each widening until its lease ended, or the hold that came after it."""
    ends = {
        (lease.task, lease.epoch): lease.ended_ms or FOR_EVER
        for lease in sorted(history.leases, key=lambda lease: lease.kind != "lease")
        if lease.kind in {"lease", "hold"}
    }
    at = {
        (event.task, event.facts["fence"]): event.at_ms
        for events in history.events.values()
        for event in events
        if event.kind == "widened"
    }
    leases = {lease.id: lease for lease in history.grants()}
    for lease in leases.values():
        if lease.repository:
            yield _span(
                history,
                lease,
                f"{lease.kind} {lease.id} of task {lease.task}",
                paths_at(history, lease),
                fence=lease.fence,
                begin=lease.granted_ms,
                end=ends[lease.task, lease.epoch],
            )
    for path in (path for paths in history.widened.values() for path in paths):
        lease = leases[path.lease]
        yield _span(
            history,
            lease,
            f"widening {path.fence} of lease {lease.id} of task {lease.task}",
            [(path.text, path.mode)],
            fence=path.fence,
            begin=at.get((path.task, path.fence), 0),
            end=ends[lease.task, lease.epoch],
            is_grant=False,
        )


def reserved_spans(history: History) -> Iterator[Span]:
    """Each reserved turn."""
    for lease in history.leases:
        if lease.kind == "reservation":
            yield _span(
                history,
                lease,
                f"reservation {lease.id} of task {lease.task}",
                paths_at(history, lease),
                fence=lease.fence,
                begin=lease.granted_ms,
                end=lease.ended_ms or FOR_EVER,
            )


def paths_at(history: History, lease: Lease) -> list[tuple[str, str]]:
    """What the task's paths were when the lease began: as submitted, and as widened before."""
    widened = history.widened[lease.task]
    return history.began_with[lease.task] + [
        (path.text, path.mode) for path in widened if path.lease < lease.id
    ]


def certain_spans(history: History) -> Iterator[Span]:
    """What the journals alone prove: held at least from the answer to the holder's own deadline.

    It ends earlier where the holder began to end it, or where somebody began to revoke it. Instants
    are CLOCK_MONOTONIC's, which all processes of a machine share.
    """
    ends = _certain_ends(history)
    for call, grant in history.granted():
        if grant["repository"]:
            fold = history.folds[grant["repository"]]
            yield Span(
                what=f"what worker {call.worker} was granted of task {grant['task']}",
                repository=grant["repository"],
                task=grant["task"],
                fence=grant["fence"],
                writes=union(grant["writes"], fold=fold),
                reads=union(grant["reads"], fold=fold),
                begin=call.done_ns or 0,
                end=ends[grant["task"], grant["epoch"]],
            )
    for call, known, answer in history.acknowledged("widen"):
        repository = history.tasks[known[0]].repository
        paths = union(call.asked["paths"], fold=history.folds[repository])
        yield Span(
            what=f"what worker {call.worker} widened task {known[0]} by",
            repository=repository,
            task=known[0],
            fence=answer["fence"],
            writes=paths if call.asked["mode"] == "w" else 0,
            reads=paths if call.asked["mode"] == "r" else 0,
            begin=call.done_ns or 0,
            end=ends.get(known, 0),
        )


def _certain_ends(history: History) -> dict[Known, float]:
    """For each acknowledged grant the last instant at which nobody can have doubted it."""
    ends: dict[Known, float] = defaultdict(float)
    sent: dict[Known, int] = {}
    for call, grant in history.granted():
        known = (grant["task"], grant["epoch"])
        ends[known] = max(ends[known], call.at_ns + grant["ttl"] * 1_000_000)
        sent[known] = min(sent.get(known, call.at_ns), call.at_ns)
    for call, known, answer in history.acknowledged("renew"):
        ends[known] = max(ends[known], call.at_ns + answer["ttl"] * 1_000_000)
    for call, known, _ in history.writes():
        if call.op in ENDING and not call.asked.get("forged"):
            ends[known] = min(ends[known], call.at_ns)
    by_task: dict[int, list[Known]] = defaultdict(list)
    for known in sent:
        by_task[known[0]].append(known)
    for call in history.calls:
        if call.op in REVOKING and (call.ok is not None or call.is_open):
            for known in (known for task in call.asked["tasks"] for known in by_task[task]):
                if (call.done_ns or FOR_EVER) >= sent[known]:
                    ends[known] = min(ends[known], call.at_ns)
    return ends


def _span(
    history: History,
    lease: Lease,
    what: str,
    paths: Iterable[tuple[str, str]],
    *,
    fence: int,
    begin: float,
    end: float,
    is_grant: bool = True,
) -> Span:
    fold = history.folds[lease.repository]
    several = list(paths)
    return Span(
        what=what,
        repository=lease.repository,
        task=lease.task,
        fence=fence,
        writes=union((text for text, mode in several if mode == "w"), fold=fold),
        reads=union((text for text, mode in several if mode == "r"), fold=fold),
        begin=begin,
        end=end,
        is_grant=is_grant,
    )


def union(texts: Iterable[str], *, fold: bool) -> int:
    """The paths of several scopes."""
    paths = 0
    for text in texts:
        paths |= paths_of(text, fold=fold)
    return paths
