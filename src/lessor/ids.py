"""Ids, tokens and chance: the only module that draws them.

Ids are TypeIDs (`task_5jy4v8r9f…`): prefixed by what they name, ordered as the store issued them,
an authority over nothing. Tokens are 256 bits from the system's generator; the store keeps only their SHA-256.
"""

from __future__ import annotations

import hashlib
import random
import secrets
from functools import lru_cache

TOKEN_BYTES = 32
_ALPHABET = b"0123456789abcdefghjkmnpqrstvwxyz"  # TypeID's own: Crockford's base 32, lower case
_LENGTH = 26
_PAIRS = [chr(a) + chr(b) for a in _ALPHABET for b in _ALPHABET]  # ten bits at a time
_ROW_BITS = 62
_LOW_BITS = 60  # a row below 2^60 leaves the first fourteen letters to the store's key
# Python's digits for Crockford's; what is no digit becomes one that `int` refuses.
_DIGITS = bytes(
    b"0123456789abcdefghijklmnopqrstuv"[_ALPHABET.index(byte)] if byte in _ALPHABET else ord("!")
    for byte in range(256)
)


def public_id(prefix: str, *, store_key: int, row: int) -> str:
    """The id of row `row` of a store: a TypeID over a version-8 UUID.

    It carries the row's number and the store's key, so that no index is needed to find the row and
    an id of another store is told from an unknown one. It is an authority over nothing.
    """
    pairs = _PAIRS
    return _head(prefix, store_key, row >> _LOW_BITS) + (
        pairs[row >> 50 & 1023]
        + pairs[row >> 40 & 1023]
        + pairs[row >> 30 & 1023]
        + pairs[row >> 20 & 1023]
        + pairs[row >> 10 & 1023]
        + pairs[row & 1023]
    )


def row_of(text: object, prefix: str, *, store_key: int) -> int | None:
    """The row that `text` names in this store; None when it isn't such an id."""
    head, _, tail = text.rpartition("_") if isinstance(text, str) else ("", "", "")
    if head != prefix or len(tail) != _LENGTH:
        return None
    try:
        number = int(tail.encode("ascii").translate(_DIGITS), 32)
    except ValueError:  # UnicodeEncodeError is one
        return None
    ours = number >> _ROW_BITS == _ours(store_key)
    return number & ((1 << _ROW_BITS) - 1) if ours else None


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


@lru_cache(maxsize=64)
def _head(prefix: str, store_key: int, high: int) -> str:
    number = _ours(store_key) << (_ROW_BITS - _LOW_BITS) | high
    return f"{prefix}_" + "".join([_PAIRS[number >> shift & 1023] for shift in range(60, -1, -10)])


@lru_cache(maxsize=64)
def _ours(store_key: int) -> int:
    """What an id of this store has above the row: the key around a UUID's version and variant."""
    high, low = store_key >> 12 & 0xFFFF_FFFF_FFFF, store_key & 0xFFF
    return high << 18 | 8 << 14 | low << 2 | 0b10
