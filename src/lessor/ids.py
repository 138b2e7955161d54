"""Ids, tokens and chance: the only module that draws them.

Ids are TypeIDs (`task_01jy4v8r9f…`): ordered by time, prefixed by what they name, an authority
over nothing. Tokens are 256 bits from the system's generator; the store keeps only their SHA-256.
"""

from __future__ import annotations

import hashlib
import random
import secrets

from typeid import TypeID

TOKEN_BYTES = 32


def new_id(prefix: str) -> str:
    """A fresh TypeID with `prefix`."""
    return str(TypeID(prefix))


def is_id(text: str, prefix: str) -> bool:
    """Whether `text` is a TypeID of that prefix, exactly as Lessor writes it."""
    head, _, tail = text.rpartition("_")
    return head == prefix and len(tail) == 26 and tail.isascii() and tail.isalnum()  # noqa: PLR2004 - a TypeID's fixed length


def new_request_id() -> str:
    """A request id, made once by the caller and sent again with each retry."""
    return str(TypeID("request"))


def new_token() -> str:
    """A lease token: 256 random bits in hexadecimal."""
    return secrets.token_hex(TOKEN_BYTES)


def token_hash(token: str) -> str:
    """What the store keeps of a token."""
    return hashlib.sha256(token.encode()).hexdigest()


def new_random() -> random.Random:
    """A source of jitter, seeded by the system."""
    return random.Random(secrets.randbits(64))  # noqa: S311 - jitter, not a secret
