"""A store's address without what is secret in it: for screens, logs and agents.

A PostgreSQL URL may hold a password. What is started with such a URL in its environment shows it to
whoever reads that environment, and an agent may print it.
"""

from __future__ import annotations

from pathlib import Path
from urllib.parse import parse_qsl, quote, unquote, urlencode

_SCHEMES = frozenset({"postgresql", "postgres"})
_PASSWORD = "password"  # noqa: S105 - the parameter's name
_BYTES = "surrogateescape"  # as the environment's own bytes come in
# A client key's password: no file can carry it for libpq.
_SECRET = frozenset({_PASSWORD, "sslpassword"})


def split_password(url: str) -> tuple[str, str]:
    """`url` without its passwords, and the server's password; "" where there is none."""
    scheme, mark, rest = url.partition("://")
    if scheme not in _SCHEMES or not mark:
        return url, ""
    end = _end_of_authority(rest)
    login, at, hosts = rest[:end].rpartition("@")
    user, _, password = login.partition(":")
    path, _, query = rest[end:].partition("?")
    asked = parse_qsl(query, keep_blank_values=True, errors=_BYTES)
    kept = [(name, value) for name, value in asked if name not in _SECRET]
    if len(kept) != len(asked):
        query = urlencode(kept, quote_via=quote, errors=_BYTES)
    found = unquote(password, errors=_BYTES) or dict(asked).get(_PASSWORD, "")
    return f"{scheme}://{user}{at}{hosts}{path}{'?' if query else ''}{query}", found


def public(url: str) -> str:
    """`url` as it may be shown."""
    return split_password(url)[0]


def with_pass_file(url: str, file: Path) -> str:
    """`url`, which has no password, with the file that libpq finds it in."""
    mark = "&" if "?" in url else "?"
    return f"{url}{mark}passfile={quote(str(file))}"


def pass_file_line(password: str) -> str:
    """A password as a line of libpq's password file, for whatever the URL leads to."""
    escaped = password.replace("\\", "\\\\").replace(":", "\\:")
    return f"*:*:*:*:{escaped}\n"


def _end_of_authority(rest: str) -> int:
    """Where the hosts end. As in libpq a password may have a `?` in it, and no `/`."""
    slash = rest.find("/")
    before = rest if slash < 0 else rest[:slash]
    question = before.find("?", before.find("@") + 1)
    return len(before) if question < 0 else question
