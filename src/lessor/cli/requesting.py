"""`--request-id`: a script that got no answer sends the same command again and gets the first one's.

A claim's tokens are derived from a secret of the caller's. So that a second process has it too, it
is made from the request's id and a key of this person on this machine, which never leaves it.
"""

from __future__ import annotations

import hashlib
import hmac
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import click

from lessor.cli.invocation import Invocation
from lessor.errors import HostError, LessorError
from lessor.ids import new_request_id, new_token

KEY = "request-key"

request_id_option = click.option(
    "--request-id",
    default="",
    metavar="ID",
    help="Sent again with the same ID, nothing is done twice: you get the first answer.",
)


def request_of(invocation: Invocation, request_id: str) -> tuple[str, str]:
    """A request's id and secret: of a repeated one both are the same.

    Raises:
        HostError: the key can't be read or kept.
    """
    if not request_id:
        return new_request_id(), new_token()
    key = _key(invocation.settings.state_dir / KEY)
    return request_id, hmac.new(key, request_id.encode(), hashlib.sha256).hexdigest()


@contextmanager
def repeated(request_id: str) -> Iterator[None]:
    """Where a claim with an id of the person's gave its leases back: say what to send instead."""
    try:
        yield
    except LessorError as refused:
        from lessor.publish.claiming import GIVEN_BACK

        if request_id and GIVEN_BACK in refused.facts:
            refused.next_step = (
                f"{refused.next_step} Claim with a new --request-id: "
                f"what {request_id} was granted was given back."
            )
        raise


def _key(path: Path) -> bytes:
    try:
        if not path.exists():
            _offer(path)
        return path.read_bytes()
    except OSError as error:
        raise HostError(
            f"{path} can't be used: {error.strerror}.",
            next_step="Check free space and rights there, or leave --request-id out.",
            path=str(path),
        ) from error


def _offer(path: Path) -> None:
    """Make the key; of several processes that do so at once the first one's counts."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    draft = path.with_name(f".{path.name}.{new_token()[:8]}")
    try:
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "w", encoding="ascii") as file:
            file.write(new_token())
        with suppress(FileExistsError):
            os.link(draft, path)
    finally:
        draft.unlink(missing_ok=True)
