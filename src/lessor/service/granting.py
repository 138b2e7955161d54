"""A granted row as the grant that its holder gets."""

from __future__ import annotations

from lessor.model.grant import Grant, Stand
from lessor.model.lease import Epoch, Holder, time_left
from lessor.model.task import Effects
from lessor.service.naming import Naming
from lessor.service.rows import GrantRow, unpack

NO_SCOPES = "[]"


def grant_of(row: GrantRow, *, worker: str, token: str, naming: Naming) -> Grant:
    """The grant, with the term that is left now."""
    task, lease = naming.task(row.task_id), naming.lease(row.lease_id)
    scopes = unpack(row.scopes) if row.scopes != NO_SCOPES else []
    return Grant(
        holder=Holder(
            task=task,
            epoch=Epoch(row.epoch),
            worker=worker,
            token=token,
            lease=lease,
            version=row.version,
        ),
        lease=lease,
        task=task,
        number=row.number,
        epoch=row.epoch,
        title=row.title,
        prompt=row.prompt,
        check=row.check_command,
        effects=Effects(row.effects),
        progress=bool(row.progress),
        strict=bool(row.strict),
        idempotency_key=row.idempotency_key,
        queue=row.queue,
        repository=naming.repository(row.repository_id),
        branch=row.branch,
        label=row.label,
        fence=row.fence,
        term=row.term,
        attempts=row.attempts,
        ttl_ms=time_left(now=row.now, expires_ms=row.expires_ms, ttl_ms=row.ttl_ms),
        granted_ms=row.granted_ms,
        expires_ms=row.expires_ms,
        max_until_ms=row.max_until_ms,
        scopes=tuple(text for text, mode in scopes if mode == "w"),
        reads=tuple(text for text, mode in scopes if mode == "r"),
        stand=None if row.stand is None else _stand(row.stand, naming),
    )


def _stand(text: str, naming: Naming) -> Stand:
    task, number, branch, commit = unpack(text)
    return Stand(task=naming.task(task), number=number, branch=branch, commit=commit)
