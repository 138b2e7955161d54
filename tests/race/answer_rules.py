"""What was answered has to be so, in the store and for good; what wasn't granted has to be refused."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator

from history import ENDING, GRANTING, History, Known
from journal import Call

from declared import REFUSALS, STORE_CODES

HOLDERS = (*ENDING, "renew", "widen")
DECISIONS = ("cancel", "block", "unblock", "requeue", "answer")
READS = ("why", "history", "ready", "counts", "tasks")
GROUPS = {
    "tasks": ("submit", *DECISIONS, *READS),
    "leases": (*GRANTING, *HOLDERS, "force_release", "end_gone", "sweep", "who", "leases"),
}
OPERATIONS = {op: f"{group}.{op}" for group, ops in GROUPS.items() for op in ops}


def late_writes(history: History) -> Iterator[str]:
    """Nothing that was begun at or after the lease's last deadline was taken; a repeat isn't taken again."""
    for call, known, answer in history.acknowledged(*HOLDERS):
        lease = history.of.get(known)
        if lease and not answer.get("repeated") and call.earliest_ms >= lease.expires_ms:
            yield f"{call.op} of {known} was taken {call.earliest_ms - lease.expires_ms:.0f} ms late"


def overtaken_writes(history: History) -> Iterator[str]:
    """Nothing was taken from a holder after somebody had been told of the next epoch."""
    told: dict[Known, int] = {}
    for call, grant in history.granted():
        known, at = (grant["task"], grant["epoch"]), call.done_ns or 0
        told[known] = min(told.get(known, at), at)
    following: dict[int, list[Known]] = defaultdict(list)
    for known in told:
        following[known[0]].append(known)
    for call, (task, epoch), answer in history.acknowledged(*HOLDERS):
        for later in following[task]:
            if later[1] > epoch and told[later] < call.at_ns and not answer.get("repeated"):
                yield f"{call.op} of {(task, epoch)} was taken although {later} had been granted"


def lost_grants(history: History) -> Iterator[str]:
    """Each grant that was told is in the store: same epoch and fence, same worker, no earlier deadline."""
    for call, grant in history.granted():
        lease = history.of.get((grant["task"], grant["epoch"]))
        if lease is None or (lease.fence, lease.worker) != (grant["fence"], call.worker):
            yield f"worker {call.worker} was granted {grant}, and the store has {lease}"
        elif lease.expires_ms < grant["expires"]:
            yield f"{grant} was told a later deadline than {lease}"


def lost_ends(history: History) -> Iterator[str]:
    """Each end that was acknowledged is the lease's end; an acknowledged completion is the task's."""
    for call, known, _ in history.acknowledged(*ENDING):
        lease = history.of.get(known)
        if lease is None or lease.end_reason != ENDING[call.op]:
            yield f"{call.op} of {known} was acknowledged, and the store has {lease}"
        elif ENDING[call.op] == "completed":
            task = history.tasks[known[0]]
            if (task.status, task.epoch) != ("succeeded", known[1]):
                yield f"{known} was completed, and the store has {task}"


def lost_renewals(history: History) -> Iterator[str]:
    """Each renewal and each widening that was acknowledged is in the store."""
    for _, known, answer in history.acknowledged("renew"):
        lease = history.of.get(known)
        if lease is None or (lease.version, lease.expires_ms) < (
            answer["version"],
            answer["expires"],
        ):
            yield f"{known} was renewed to {answer}, and the store has {lease}"
    for call, known, answer in history.acknowledged("widen"):
        fences = {path.fence for path in history.widened[known[0]]}
        covered = history.of[known].fence if known in history.of else 0
        if answer["fence"] not in fences | {covered}:
            yield f"{known} was widened by {call.asked['paths']} at {answer}: not in the store"


def taken_from_others(history: History) -> Iterator[str]:
    """Nothing was taken but from the worker that the lease was granted to, with its token."""
    for call, known, _ in history.acknowledged(*HOLDERS):
        lease = history.of.get(known)
        if call.asked.get("forged") or (lease and lease.worker != call.worker):
            yield f"{call.op} of {known} was taken from worker {call.worker}, who isn't its holder"


def ends_by_nobody(history: History) -> Iterator[str]:
    """What the store calls a holder's end was asked for by that holder, and wasn't refused to it."""
    asked = {
        (known, ENDING[call.op], call.worker)
        for call, known, answer in history.writes()
        if call.op in ENDING
        and not call.asked.get("forged")
        and (call.is_open if answer is None else "ok" in answer)
    }
    for lease in history.grants():
        end = ((lease.task, lease.epoch), lease.end_reason, lease.worker)
        if lease.end_reason in ENDING.values() and end not in asked:
            yield f"nobody asked for the end of {lease}"


def second_grants(history: History) -> Iterator[str]:
    """A request is granted what it asked for once, however often it is sent and whatever got lost."""
    wanted: dict[str, int] = {}
    told: dict[str, set[Known]] = defaultdict(set)
    lost: set[str] = set()
    by_worker: dict[int, set[str]] = defaultdict(set)
    for call in history.calls:
        if call.op in GRANTING:
            request = call.asked["request"]
            by_worker[call.worker].add(request)
            wanted[request] = max(wanted.get(request, 0), call.asked["wanted"])
            if call.is_open:
                lost.add(request)
            told[request] |= {(g["task"], g["epoch"]) for g in (call.ok or {}).get("grants", ())}
    for request, grants in told.items():
        if len(grants) > wanted[request]:
            yield f"{request} wanted {wanted[request]} and was granted {sorted(grants)}"
    stored = Counter(lease.worker for lease in history.grants())
    for worker, requests in by_worker.items():
        known = sum(len(told[request]) for request in requests)
        open_ = sum(wanted[r] - len(told[r]) for r in requests if r in lost)
        if not known <= stored[worker] <= known + open_:
            yield (
                f"worker {worker} has {stored[worker]} leases, was told of {known}, "
                f"and {open_} more at most got lost on their way"
            )


def undeclared_refusals(history: History) -> Iterator[str]:
    """Each refusal is one that the operation may make."""
    for call in history.calls:
        for code in _codes(call):
            if code not in REFUSALS[OPERATIONS[call.op]] | STORE_CODES:
                yield f"{call.op} was refused with {code}: {call.said}"


def _codes(call: Call) -> list[str]:
    answers = [] if call.ok is None else call.ok.get("leases", [])
    return [answer["no"] for answer in (*answers, {"no": call.no}) if answer.get("no")]
