"""Addresses: a store's URL, with its password taken out, and remotes."""

from __future__ import annotations

from pathlib import Path

from fuzz.promise import asked, text, unicode
from lessor.connect import _names_a_store
from lessor.git.complaint import hide_credentials
from lessor.git.remote import canonical_remote
from lessor.store.address import pass_file_line, public, split_password, with_pass_file

_SECRET = "s3cr3t-word"


def one(data: bytes) -> None:
    """One input."""
    for url in (text(data), unicode(data)):
        kept, password = split_password(url)
        assert split_password(kept)[0] == kept or password == ""
        with_pass_file(public(url), Path("/tmp/pass"))
        pass_file_line(password)
        scheme, _, rest = url.partition("://")
        asked(lambda scheme=scheme, rest=rest: _names_a_store(scheme, rest))
        canonical_remote(url)
        hide_credentials(url)
        host = "".join(c for c in url if c.isalnum())[:20]
        for known in (
            f"postgresql://me:{_SECRET}@{host}/db",
            f"postgres://{host}/db?password={_SECRET}",
        ):
            assert split_password(known)[1] == _SECRET
            assert _SECRET not in public(known)
