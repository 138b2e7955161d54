"""Ids, tokens and chance: the only module that draws them.

Ids are TypeIDs (`task_5jy4v8r9f…`): prefixed by what they name, ordered as the store issued them,
an authority over nothing. Tokens are 256 bits from the system's generator; the store keeps only their SHA-256.
"""

from __future__ import annotations

import hashlib
import random
import secrets

TOKEN_BYTES = 32
_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"  # TypeID's own: Crockford's base 32, lower case
_DIGITS = {letter: digit for digit, letter in enumerate(_ALPHABET)}
_LENGTH = 26
_PAIRS = [a + b for a in _ALPHABET for b in _ALPHABET]  # ten bits at a time: twice as fast


def public_id(prefix: str, *, store_key: int, row: int) -> str:
    """The id of row `row` of a store: a TypeID over a version-8 UUID.

    It carries the row's number and the store's key, so that no index is needed to find the row and
    an id of another store is told from an unknown one. It is an authority over nothing.
    """
    high = (store_key >> 12) & 0xFFFF_FFFF_FFFF
    low = store_key & 0xFFF
    number = (high << 80) | (8 << 76) | (low << 64) | (0b10 << 62) | row
    return f"{prefix}_{_base32(number)}"


def row_of(text: object, prefix: str, *, store_key: int) -> int | None:
    """The row that `text` names in this store; None when it isn't such an id."""
    head, _, tail = text.rpartition("_") if isinstance(text, str) else ("", "", "")
    if head != prefix or len(tail) != _LENGTH:
        return None
    number = 0
    for letter in tail:
        digit = _DIGITS.get(letter)
        if digit is None:
            return None
        number = number << 5 | digit
    row = number & ((1 << 62) - 1)
    return row if text == public_id(prefix, store_key=store_key, row=row) else None


def new_request_id() -> str:
    """A request id, made once by the caller and sent again with each retry."""
    return f"request_{secrets.token_hex(16)}"


def new_token() -> str:
    """A lease token: 256 random bits in hexadecimal."""
    return secrets.token_hex(TOKEN_BYTES)


def token_hash(token: str) -> str:
    """What the store keeps of a token."""
    return hashlib.sha256(token.encode()).hexdigest()


Chance = random.Random
"""Where jitter comes from; injected, so that a test or a simulation can repeat it."""


def new_random() -> Chance:
    """A source of jitter, seeded by the system."""
    return Chance(secrets.randbits(64))


def new_store_key() -> int:
    """60 random bits that tell one store's ids from another's."""
    return secrets.randbits(60)


def _base32(number: int) -> str:
    pairs = _PAIRS
    return "".join([pairs[(number >> shift) & 1023] for shift in range(120, -1, -10)])
