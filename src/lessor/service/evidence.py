"""Refused results, kept as evidence: the first of them whole, the rest counted.

A holder that goes on trying after its end, in a loop perhaps, adds nothing to the store with a result
that is kept already, nor with any after `MOST_KEPT` different ones.
"""

from __future__ import annotations

from typing import Any

from lessor.errors import LeaseLostError
from lessor.model.lease import Holder
from lessor.service.naming import Naming
from lessor.service.rows import pack, pack_facts, unpack
from lessor.store import Store, Transaction

MOST_KEPT = 16
"""Of a lease's own holder; and as many of all the others that name it, so that none crowds it out."""


def keep_late(
    store: Store,
    naming: Naming,
    holder: Holder,
    *,
    verb: str,
    body: str,
    mine: bool,
    error: LeaseLostError,
) -> None:
    """Keep a refused result in its task's history, where it is shown and never applied, or count it.

    Args:
        mine: whether the caller was the lease's holder once.
        error: the refusal, which is told whether the result was kept.
    """
    task = naming.task_row(holder.task)
    said = {"verb": verb, "body": body, "mine": mine}
    facts: dict[str, Any] = {
        **said,
        "worker": holder.worker,
        "why": error.facts.get("end_reason"),
        "current_epoch": error.facts.get("current_epoch"),
    }

    def rule(tx: Transaction) -> bool:
        here = {"task_id": task, "epoch": holder.epoch}
        if not tx.rows("count_late", **here):  # it locks; no such lease: the task's row does
            tx.rows("lock_tasks", tasks=pack([task]))
        kept = [unpack(row[0]) for row in tx.rows("late_results", **here)]
        if said in [{name: one.get(name) for name in said} for one in kept]:
            return True
        if sum(one.get("mine") == mine for one in kept) >= MOST_KEPT:
            return False
        tx.rows("append_event", **here, kind="late", facts=pack_facts(**facts))
        return True

    error.facts = {**error.facts, "kept": store.write(rule)}
