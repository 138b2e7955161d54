"""A store's address may hold a password; no refusal says it."""

from __future__ import annotations

from pathlib import Path

import pytest

from lessor.connect import connect
from lessor.errors import InvalidError, LessorError, StoreError


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


@pytest.mark.parametrize(
    "url",
    [
        "",
        "ftp://x",
        "sqlite://",
        "x\0y",
        "a\nb",
        "sqlite:s.db",
        "sqlite:///s.db?mode=ro",
        "\udcff.db",
    ],
)
def test_an_address_of_no_known_kind_is_refused(url: str) -> None:
    with pytest.raises(InvalidError):
        connect(url)


def test_a_link_to_itself_is_refused(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(StoreError):
        connect(str(tmp_path / "loop" / "lessor.db"))
