"""The store's address as an agent gets it: without passwords, which its logs would keep.

`lessor` commands work from inside a run. What they need to connect is in a file of mode 0600 beside
the lease's token, and goes with it.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from lessor.runner.desk import Desk
from lessor.settings import LISTEN, STORE
from lessor.store.address import pass_file_line, split_password, with_pass_file


def agent_addresses(desk: Desk, lease: str) -> dict[str, str]:
    """The variables that name the store; the passwords in them are written to files.

    Raises:
        OSError: a file can't be written.
    """
    named = {STORE: desk.store_url, LISTEN: desk.listen_dsn}
    return {
        name: _address(url, _pass_file(desk, lease, name)) for name, url in named.items() if url
    }


def forget_passwords(desk: Desk, lease: str) -> None:
    """Remove the files: the run is over."""
    for name in (STORE, LISTEN):
        with suppress(OSError):
            _pass_file(desk, lease, name).unlink()


def _pass_file(desk: Desk, lease: str, name: str) -> Path:
    return desk.tokens_dir / f"{lease}.{name.lower()}.pgpass"


def _address(url: str, file: Path) -> str:
    bare, password = split_password(url)
    if not password:
        return bare
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8", errors="surrogateescape") as opened:
        opened.write(pass_file_line(password))
    return with_pass_file(bare, file)
