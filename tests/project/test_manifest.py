"""`lessor.toml`: what it may say, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from lessor.errors import InvalidError
from lessor.model.budget import Budget
from lessor.project.manifest import KEYS, read_manifest

FULL = b"""
agent = "codex"
check = "make test"
setup = "npm ci"
bring = [".env", "config/*.local"]
base = "origin/main"
n = 3
lease = "10m"
quiet = 90
total = "1h30m"
rounds = 2
attempts = 5
queue = "night"
unlanded = "wait"
push = true
workspaces = { count = 20, bytes = "1.5 GB", age = "14d" }

[scopes]
billing = ["services/billing", "libs/tax"]

[agents]
mine = ["my-agent", "--do", "{prompt}"]
"""


def test_every_key_is_read_into_what_lessor_uses() -> None:
    found = read_manifest(FULL)
    assert set(found) == {key.name for key in KEYS}
    assert (found["lease"], found["quiet"], found["total"]) == (600_000, 90_000, 5_400_000)
    assert found["bring"] == (".env", "config/*.local")
    assert found["workspaces"] == Budget(count=20, bytes=1_500_000_000, age_ms=14 * 86_400_000)
    assert found["scopes"]["billing"] == ("services/billing", "libs/tax")
    assert found["agents"]["mine"] == ("my-agent", "--do", "{prompt}")


def test_an_empty_file_settles_nothing() -> None:
    assert not read_manifest(b"")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('chekc = "x"', "Did you mean `check`?"),
        ("zzz = 1", "It knows: agent, check"),
        ("check = 3", "which has to be text"),
        ('check = " "', "which has to be text"),
        ("bring = 'x'", "which has to be a list"),
        ("bring = [1]", "which has to be text"),
        ("n = 0", "a whole number from 1 to 64"),
        ("n = true", "a whole number"),
        ("n = 1.5", "a whole number"),
        ('lease = "soon"', "a duration"),
        ("workspaces = 3", "which has to be a table"),
        ("workspaces = { most = 3 }", "whose 'most' isn't one of count, bytes, age"),
        ("workspaces = { count = -1 }", "a whole number from 0"),
        ('workspaces = { bytes = "many" }', "a size such as"),
        ('workspaces = { bytes = "-1 GB" }', "a size such as"),
        ("workspaces = { bytes = true }", "a size such as"),
        ('workspaces = { age = "soon" }', "a duration"),
        ('lease = "10ms"', "from a second to a year"),
        ("lease = -5", "a duration"),
        ("lease = true", "a duration"),
        ("scopes = []", "a table"),
        ('scopes = { a = "x" }', "a list"),
        ("agents = { a = [] }", "name a program"),
        ("check = ", "can't be read"),
        ("= 1", "can't be read"),
    ],
)
def test_what_cant_be_meant_is_refused_with_its_rule(text: str, said: str) -> None:
    with pytest.raises(InvalidError) as refused:
        read_manifest(text.encode())
    assert said in str(refused.value)
    assert str(refused.value).startswith("lessor.toml ")


def test_bytes_that_are_no_text_are_refused() -> None:
    with pytest.raises(InvalidError, match="isn't UTF-8"):
        read_manifest(b"\xff\xfe")


def test_every_key_is_documented() -> None:
    page = (Path(__file__).parents[2] / "docs" / "configuration.md").read_text()
    for key in KEYS:
        assert f"| `{key.name}` | {key.meaning} | {key.default} |" in page


def test_whether_results_are_pushed_is_true_or_false() -> None:
    assert read_manifest(b"push = true\n")["push"] is True
    with pytest.raises(InvalidError, match="true or false"):
        read_manifest(b'push = "origin"\n')


def test_what_is_done_with_unlanded_results_is_one_of_three() -> None:
    assert read_manifest(b'unlanded = "wait"')["unlanded"] == "wait"
    with pytest.raises(InvalidError, match="stack, wait, ignore"):
        read_manifest(b'unlanded = "never"')


@pytest.mark.parametrize(
    "content",
    [
        "n = " + "1" * 5_000,
        "agents = [0x" + "1" * 5_000 + "]",
        "bring = " + "[" * 5_000 + "]" * 5_000,
        "agents." + "a." * 5_000 + "b = 1",
    ],
)
def test_what_is_too_large_or_too_deep_to_read_is_refused(content: str) -> None:
    with pytest.raises(InvalidError, match=r"lessor\.toml (can't be read|has)"):
        read_manifest(content.encode())
