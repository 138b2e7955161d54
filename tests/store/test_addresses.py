"""A store's address may hold a password; no refusal says it."""

from __future__ import annotations

import pytest

from lessor.connect import connect
from lessor.errors import InvalidError, LessorError


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://u:SECRET@[::1x/db",
        "postgresql://u:SECR%ET@localhost/db",
        "postgresql://u:SECRET@localhost:port/db",
        "postgresql://u:SECRET@localhost:1/db?sslmode=no",
    ],
)
def test_a_password_in_an_address_is_never_said(url: str) -> None:
    with pytest.raises(LessorError) as refused:
        connect(url)
    text = f"{refused.value} {refused.value.facts} {refused.value.__cause__}"
    assert "SECRET" not in text
    assert "SECR%ET" not in text


@pytest.mark.parametrize("url", ["", "ftp://x", "sqlite://", "x\0y"])
def test_an_address_of_no_known_kind_is_refused(url: str) -> None:
    with pytest.raises(InvalidError):
        connect(url)
