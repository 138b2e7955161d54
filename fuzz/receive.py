"""What git's server hooks are told: updates, push options, the announcement of a push."""

from __future__ import annotations

import os

from fuzz.promise import asked, text
from lessor.hook.client import PUSH, question, shown
from lessor.receive.gate import _TICKET, parse_updates

_OID = "a" * 40


def one(data: bytes) -> None:
    """One input."""
    asked(lambda: parse_updates(data))
    # A line for each reference, whatever its name has in it: git allows any byte but these.
    names = [
        bytes(b for b in name if b > 32 and b not in b"~^:?*[\\\x7f") for name in data.split(b"\n")
    ]
    kept = [name for name in names if name]
    lines = b"".join(
        f"{_OID} {'0' * 40} ".encode() + b"refs/heads/" + name + b"\n" for name in kept
    )
    updates = parse_updates(lines)
    assert [os.fsencode(update.branch or "") for update in updates] == kept
    assert all(update.old == _OID and update.new is None for update in updates)
    count, _, option = text(data.replace(b"\0", b"")).partition("\n")
    environ = {"GIT_PUSH_OPTION_COUNT": count, "GIT_PUSH_OPTION_0": option, PUSH: option}
    said = shown(environ)
    ticket = _TICKET.fullmatch(said)
    assert ticket is None or (int(ticket[1]) >= 0 and len(ticket[2]) <= 128)
    assert question("pre-receive", "1", data, environ).endswith(data)
