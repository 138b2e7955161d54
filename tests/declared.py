"""Which refusals an operation can make: the one table that tests, checks and the page go by."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from lessor.errors import LeaseLostError, LessorError
from lessor.service.lessor import Lessor

STORE_CODES = frozenset(
    {"store", "store_corrupt", "store_newer", "store_unsupported", "store_unavailable", "busy"}
)
"""What the store itself can answer to any operation; tests/store provokes these."""

_REPEATABLE = "request_reused"

REFUSALS: dict[str, frozenset[str]] = {
    name: frozenset(codes.split())
    for name, codes in {
        "registry.add_repository": "invalid",
        "registry.add_checkout": "invalid not_found",
        "registry.set_fence_remote": "invalid not_found",
        "registry.repository": "not_found",
        "registry.set_unlanded": "invalid not_found",
        "registry.repositories": "",
        "registry.checkouts": "not_found",
        "registry.add_worker": "invalid",
        "registry.worker": "not_found",
        "registry.workers": "invalid",
        "registry.retire_worker": "not_found",
        "registry.set_queue": "invalid",
        "registry.queues": "",
        "registry.set_limit": "invalid",
        "registry.limits": "",
        "tasks.submit": f"invalid scope_invalid branch_invalid cycle not_found conflict transition_refused {_REPEATABLE}",
        "tasks.submit_within": "invalid scope_invalid branch_invalid cycle not_found conflict transition_refused",
        "tasks.task": "not_found",
        "tasks.task_numbered": "invalid not_found",
        "tasks.tasks": "invalid not_found",
        "tasks.open_tasks": "invalid not_found",
        "tasks.with_keys": "invalid not_found",
        "tasks.newest_on": "invalid not_found",
        "tasks.open_with_keys": "invalid not_found",
        "tasks.ready": "invalid not_found",
        "tasks.overdue": "invalid not_found",
        "tasks.counts": "not_found",
        "tasks.needs": "not_found",
        "tasks.taken": "not_found",
        "tasks.why": "not_found",
        "tasks.history": "invalid not_found",
        "tasks.amend": f"invalid scope_invalid branch_invalid cycle not_found transition_refused {_REPEATABLE}",
        "tasks.cancel": f"invalid not_found transition_refused {_REPEATABLE}",
        "tasks.block": f"invalid not_found transition_refused {_REPEATABLE}",
        "tasks.unblock": f"invalid not_found transition_refused {_REPEATABLE}",
        "tasks.requeue": f"invalid not_found transition_refused {_REPEATABLE}",
        "tasks.answer": f"invalid not_found transition_refused {_REPEATABLE}",
        "leases.claim": f"invalid terms_invalid not_found grant_over {_REPEATABLE}",
        "leases.complete_and_claim": f"invalid terms_invalid not_found lease_lost grant_over {_REPEATABLE}",
        "leases.acquire": f"invalid scope_invalid branch_invalid cycle terms_invalid not_found scope_held conflict transition_refused grant_over {_REPEATABLE}",
        "leases.renew": "invalid not_found lease_lost",
        "leases.renew_one": "invalid not_found lease_lost",
        "leases.complete": "invalid not_found lease_lost",
        "leases.complete_one": "invalid not_found lease_lost",
        "leases.fail": "invalid not_found lease_lost",
        "leases.release": "invalid not_found lease_lost",
        "leases.ask": "invalid not_found lease_lost",
        "leases.force_release": f"invalid not_found transition_refused {_REPEATABLE}",
        "leases.end_gone": f"invalid not_found transition_refused {_REPEATABLE}",
        "leases.acknowledge": "invalid not_found lease_lost transition_refused",
        "leases.watch": "invalid not_found lease_lost",
        "leases.widen": f"invalid scope_invalid not_found lease_lost scope_held {_REPEATABLE}",
        "leases.move_branch": "invalid branch_invalid not_found lease_lost",
        "leases.admit": "invalid not_found lease_lost",
        "leases.who": "invalid scope_invalid not_found",
        "leases.leases": "invalid not_found",
        "leases.lease": "not_found",
        "leases.sweep": "not_found",
        "workspaces.reserve": "invalid not_found lease_lost conflict",
        "workspaces.adopt": "invalid not_found lease_lost transition_refused",
        "workspaces.move": "invalid not_found transition_refused",
        "workspaces.get": "invalid not_found",
        "workspaces.of_task": "not_found",
        "workspaces.on_host": "invalid not_found",
        "salvages.note": "invalid not_found",
        "salvages.of_task": "not_found",
        "salvages.of_repository": "invalid not_found",
        "salvages.drop": "invalid not_found",
        "landings.results": "invalid not_found",
        "landings.all_results": "invalid not_found",
        "landings.blocking": "not_found",
        "landings.over": "invalid scope_invalid not_found",
        "landings.landed": "invalid not_found",
        "landings.discarded": "invalid not_found",
        "landings.refused": "invalid not_found",
        "intents.announce": "invalid not_found lease_lost transition_refused",
        "intents.settle": "invalid not_found lease_lost",
        "intents.recover": "invalid not_found transition_refused",
        "intents.unsettled": "invalid not_found",
        "intents.of_task": "not_found",
        "intents.shown": "invalid",
        "fences.announce": "invalid not_found lease_lost",
        "fences.opened": "invalid not_found lease_lost transition_refused",
        "fences.at": "invalid not_found",
        "fences.unclosed": "invalid not_found",
        "fences.closed": "invalid not_found",
    }.items()
}

GROUPS = (
    *("registry", "tasks", "leases", "workspaces", "salvages", "landings"),
    *("intents", "fences"),
)


class UndeclaredRefusalError(AssertionError):
    """An operation refused with a code that the table doesn't have for it."""


def declared(lessor: Lessor) -> Lessor:
    """The same Lessor, whose operations may refuse only as the table says."""
    for group in GROUPS:
        setattr(lessor, group, _Watched(group, getattr(lessor, group)))
    return lessor


class _Watched:
    def __init__(self, group: str, operations: Any) -> None:
        self._group = group
        self._operations = operations

    def __getattr__(self, name: str) -> Callable[..., Any]:
        operation = getattr(self._operations, name)
        where = f"{self._group}.{name}"

        @wraps(operation)
        def watched(*args: Any, **named: Any) -> Any:
            try:
                answer = operation(*args, **named)
            except LessorError as error:
                _check(where, error)
                raise
            several = answer[0] if isinstance(answer, tuple) else answer
            for item in several if isinstance(several, list) else []:
                if isinstance(item, LeaseLostError):
                    _check(where, item)
            return answer

        return watched


def _check(where: str, error: LessorError) -> None:
    if error.code not in REFUSALS[where] | STORE_CODES:
        raise UndeclaredRefusalError(f"{where} refused with {error.code}: {error}") from error
    assert error.message
    assert error.next_step, f"{where}: {error.code} says no next step"


def page() -> str:
    """docs/refusals.md, made from the table."""
    codes = sorted({code for codes in REFUSALS.values() for code in codes})
    lines = [
        "# Refusals",
        "",
        "Which operation refuses with which code. Made from `tests/declared.py`; every cell that says",
        "`both` is provoked by a test on SQLite and on PostgreSQL, and an operation that refuses with",
        "a code that isn't in its row fails the tests. A refusal changes nothing; what a refused",
        "completion brought is kept as evidence.",
        "",
        f"Any operation can also answer with one of {', '.join(f'`{c}`' for c in sorted(STORE_CODES))}:",
        "the store can't be used as it is, or not now.",
        "",
        f"| operation | {' | '.join(f'`{code}`' for code in codes)} |",
        f"|---|{'|'.join('---' for _ in codes)}|",
    ]
    for name, own in REFUSALS.items():
        cells = " | ".join("both" if code in own else "" for code in codes)
        lines.append(f"| `{name}` | {cells} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    print(page(), end="")  # noqa: T201 - `python tests/declared.py > docs/refusals.md`
