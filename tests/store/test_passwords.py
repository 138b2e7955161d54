"""A store's address without its password, and the password where libpq finds it."""

from __future__ import annotations

from pathlib import Path

import psycopg
import pytest

from lessor.store.address import pass_file_line, public, split_password, with_pass_file

URLS = [
    ("postgresql://u:p%40ss@h1:5432,h2:5433/db?sslmode=require", "p@ss"),
    ("postgresql:///db?host=/run/pg&user=u&password=se%20cret", "se cret"),
    ("postgres://u:se?cret@h/db", "se?cret"),
    ("postgresql://u:secret@h?sslmode=require", "secret"),
    ("postgresql://u:secret@[::1]:5433/db", "secret"),
    ("postgresql://:secret@h/db", "secret"),
    ("postgresql://u@h/db?application_name=a%20b&password=secret", "secret"),
    ("postgresql://u@h/db?sslpassword=of-a-key", ""),
    ("postgresql://u@h/db", ""),
    ("postgresql://", ""),
]


@pytest.mark.parametrize(("url", "password"), URLS)
def test_a_password_is_taken_out_and_nothing_else_changes(url: str, password: str) -> None:
    bare, found = split_password(url)
    assert found == password
    whole = psycopg.conninfo.conninfo_to_dict(url)
    assert whole.pop("password", "") == password
    whole.pop("sslpassword", None)
    assert psycopg.conninfo.conninfo_to_dict(bare) == whole
    assert "cret" not in public(url)
    assert "of-a-key" not in public(url)


@pytest.mark.parametrize("url", ["sqlite:///a?password=b", "/srv/u:p@x.db", ":memory:", ""])
def test_what_is_no_servers_address_stays_as_it_is(url: str) -> None:
    assert split_password(url) == (url, "")


@pytest.mark.parametrize("url", ["postgresql://u@h/db", "postgresql://u@h/db?sslmode=require"])
def test_a_password_file_is_named_as_libpq_reads_it(url: str) -> None:
    file = Path("/srv/a b&c/lease.pgpass")
    named = psycopg.conninfo.conninfo_to_dict(with_pass_file(url, file))
    assert named["passfile"] == str(file)
    assert named["user"] == "u"


def test_a_password_files_line_escapes_what_separates_its_fields() -> None:
    assert pass_file_line("a:b\\c") == "*:*:*:*:a\\:b\\\\c\n"


def test_bytes_beyond_utf8_stay_the_bytes_they_are() -> None:
    bare, password = split_password("postgresql://u@h/db?options=%ff\udcfe&password=%fd")
    assert bare == "postgresql://u@h/db?options=%FF%FE"
    assert password.encode(errors="surrogateescape") == b"\xfd"
