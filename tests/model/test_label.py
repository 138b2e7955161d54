"""Labels: what is written is read back exactly, and nothing else is read."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import permutations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lessor.errors import LabelInvalidError
from lessor.model.label import Label, format_label, parse_label

LABEL = Label(owner="agent-07", branch="feature/search-copy", env="preview-b", task="412", epoch=3)
TEXT = "owner=agent-07;branch=feature/search-copy;env=preview-b;task=412;epoch=3"

values = st.from_regex(re.compile(r"[A-Za-z0-9._@:/-]{1,40}"), fullmatch=True)
labels = st.builds(
    Label,
    owner=values,
    branch=st.sampled_from(["none", "claude/14-billing-retry", "docs/a.b", "fix/1"]),
    env=st.just("none") | values,
    task=values,
    epoch=st.integers(1, 2**63 - 1),
)


def test_a_label_is_written_in_its_fixed_form() -> None:
    assert format_label(LABEL) == TEXT
    assert parse_label(TEXT) == LABEL


@settings(max_examples=300, deadline=None)
@given(labels)
def test_every_label_is_read_back_as_it_was(label: Label) -> None:
    text = format_label(label)

    assert parse_label(text) == label
    assert text.isascii()
    assert text.isprintable()
    assert " " not in text


@settings(max_examples=500, deadline=None)
@given(labels, st.data())
def test_a_text_with_one_character_changed_is_refused_or_is_another_label(
    label: Label, data: st.DataObject
) -> None:
    text = format_label(label)
    at = data.draw(st.integers(0, len(text)))
    inserted = data.draw(st.sampled_from([*";= \n\t\x00\x7f0+-_٣éa/", ""]))
    changed = text[:at] + inserted + text[at + data.draw(st.integers(0, 1)) :]

    try:
        read = parse_label(changed)
    except LabelInvalidError:
        return
    assert format_label(read) == changed


@pytest.mark.parametrize(
    "text",
    [
        "",
        "owner",
        TEXT + ";",
        ";" + TEXT,
        TEXT + "\n",
        " " + TEXT,
        TEXT.replace(";", "; "),
        TEXT + ";seq=1",
        TEXT + ";epoch=4",
        TEXT.replace(";env=preview-b", ""),
        TEXT.replace("env=", "Env="),
        TEXT.replace("env=", "host="),
        TEXT.replace("owner=agent-07", "owner="),
        TEXT.replace("owner=agent-07", "owner"),
        TEXT.replace("task=412", "task="),
        TEXT.replace("=3", "="),
        TEXT.replace("=3", "=0"),
        TEXT.replace("=3", "=-3"),
        TEXT.replace("=3", "=+3"),
        TEXT.replace("=3", "=03"),
        TEXT.replace("=3", "=3.0"),
        TEXT.replace("=3", "=3_0"),
        TEXT.replace("=3", "=٣"),
        TEXT.replace("=3", "= 3"),
        TEXT.replace("=3", f"={2**63}"),
        pytest.param(TEXT.replace("=3", "=" + "9" * 900), id="digits"),
        TEXT.replace("feature/search-copy", "main"),
        TEXT.replace("feature/search-copy", "feature/Search"),
        TEXT.replace("feature/search-copy", "feature/a/b"),
        TEXT.replace("feature/search-copy", "feature/x.lock"),
        pytest.param(TEXT.replace("412", "x" * 2000), id="long"),
        pytest.param("x" * 1_000_000, id="huge"),
    ],
)
def test_a_text_that_only_resembles_a_label_is_refused(text: str) -> None:
    with pytest.raises(LabelInvalidError) as caught:
        parse_label(text)

    assert caught.value.next_step
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 1000


def test_fields_out_of_order_are_refused() -> None:
    fields = TEXT.split(";")

    for order in permutations(fields):
        if list(order) != fields:
            with pytest.raises(LabelInvalidError):
                parse_label(";".join(order))


@pytest.mark.parametrize("field", ["owner", "env", "task"])
@pytest.mark.parametrize(
    "value",
    ["", "a;b", "a=b", "a b", "a\n", "a\x00", "a\x7f", "é", "٣", "a;epoch=9", "#14", "a\\b"],
)
def test_a_value_that_could_break_the_line_makes_no_label(field: str, value: str) -> None:
    with pytest.raises(LabelInvalidError, match=field):
        replace(LABEL, **{field: value})


@pytest.mark.parametrize(
    "branch", ["", "main", "feature", "fix/a;b", "fix/x\n", "Fix/x", "fix/a_b"]
)
def test_a_branch_outside_the_grammar_makes_no_label(branch: str) -> None:
    with pytest.raises(LabelInvalidError, match="branch"):
        replace(LABEL, branch=branch)


@pytest.mark.parametrize("epoch", [0, -1, 2**63])
def test_an_epoch_that_no_claim_has_makes_no_label(epoch: int) -> None:
    with pytest.raises(LabelInvalidError, match="epoch"):
        replace(LABEL, epoch=epoch)


def test_a_label_has_at_most_a_thousand_characters() -> None:
    room = 1000 - len(format_label(replace(LABEL, owner="a")))
    longest = replace(LABEL, owner="a" * (room + 1))

    assert len(format_label(longest)) == 1000
    assert parse_label(format_label(longest)) == longest
    with pytest.raises(LabelInvalidError, match="at most 1000"):
        replace(LABEL, owner="a" * (room + 2))
