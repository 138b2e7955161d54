"""Mutations that can be repeated: the answer is kept with the request's id, in the same transaction."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from typing import Any

from lessor.errors import ConstraintError, RequestReusedError
from lessor.ids import new_request_id
from lessor.service.rows import pack, unpack
from lessor.service.wording import check_name, check_note
from lessor.store import Store, Transaction

_ENCODE = json.JSONEncoder(sort_keys=True, default=str).encode


def digest(verb: str, body: Any) -> str:
    """What a repeated request has to match."""
    text = _ENCODE([verb, body])
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def answered(
    tx: Transaction,
    actor: str,
    request_id: str,
    wanted: str,
    rule: Callable[[Transaction], list[Any]],
) -> list[Any]:
    """The kept answer of a request that was made before, else `rule`'s, which is kept.

    Raises:
        RequestReusedError: the id came with another request before.
    """
    check_name(request_id, "request id")
    seen = tx.rows("request_seen", actor=actor, request_id=request_id)
    if seen:
        if seen[0][0] != wanted:
            raise RequestReusedError(
                "This request id was used for another request.",
                next_step="Make a new id for a new request; repeat one only to retry it.",
                request_id=request_id,
            )
        kept: list[Any] = unpack(seen[0][1])
        return kept
    answer = rule(tx)
    tx.rows("keep_request", actor=actor, request_id=request_id, digest=wanted, answer=pack(answer))
    return answer


def once(
    store: Store,
    actor: str,
    request_id: str,
    wanted: str,
    rule: Callable[[Transaction], list[Any]],
) -> list[Any]:
    """Run a mutation in a transaction, once for its request id; every repeat gets the kept answer.

    Args:
        request_id: empty for a request that is never repeated.

    Raises:
        RequestReusedError: the id came with another request before.
    """
    check_note(actor, "actor")
    request = request_id or new_request_id()

    def answer(tx: Transaction) -> list[Any]:
        return answered(tx, actor, request, wanted, rule)

    try:
        return store.write(answer)
    except ConstraintError as error:
        # Another call with the same request id committed first: its answer is the answer.
        if not was_repeated(error):
            raise
        return store.write(answer)


def was_repeated(error: ConstraintError) -> bool:
    """Whether a write failed because its request id has been answered meanwhile."""
    return "request" in str(error.facts.get("constraint"))
