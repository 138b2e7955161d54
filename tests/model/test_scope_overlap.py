"""Which scopes exclude each other, and what a set of scopes comes down to."""

from __future__ import annotations

from itertools import combinations_with_replacement, permutations, product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lessor.model.scope import (
    Mode,
    PathRules,
    Scope,
    conflicts,
    covers,
    merge_scopes,
    overlaps,
    parse_scope,
    parse_scopes,
)

READ, WRITE = Mode.READ, Mode.WRITE
NAMES = ("a", "ab", "a-b", "a.b")
PATHS = ["/".join(p) for n in (1, 2, 3) for p in product(NAMES, repeat=n)]


def test_literals_overlap_exactly_when_one_is_the_other_or_above_it() -> None:
    wrong = [
        (a, b)
        for a, b in combinations_with_replacement([*PATHS, "."], 2)
        if overlaps(parse_scope(a), parse_scope(b))
        != any(covers(parse_scope(a), p) and covers(parse_scope(b), p) for p in (a, b))
    ]

    assert wrong == []


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("services/billing", "services/billing-v2"),
        ("services/billing", "services/billing.old"),
        ("services/billing", "services/billing0"),
        ("src/a.py", "src/a.pyi"),
        ("pages/[id].tsx", "pages/i.tsx"),
    ],
)
def test_names_that_only_begin_alike_are_disjoint(a: str, b: str) -> None:
    assert not overlaps(parse_scope(a), parse_scope(b))
    assert not overlaps(parse_scope(b), parse_scope(a))


@pytest.mark.parametrize("text", ["README.md", "a/b/c", "**/*.py", "*", "?", "."])
def test_the_root_overlaps_everything(text: str) -> None:
    assert overlaps(parse_scope("."), parse_scope(text))
    assert overlaps(parse_scope(text), parse_scope("."))


@pytest.mark.parametrize(
    ("a", "b", "excluded"),
    [(READ, READ, False), (READ, WRITE, True), (WRITE, READ, True), (WRITE, WRITE, True)],
)
def test_overlapping_scopes_conflict_unless_both_only_read(
    a: Mode, b: Mode, excluded: bool
) -> None:
    assert conflicts(parse_scope("src", mode=a), parse_scope("src/**/x*", mode=b)) is excluded
    assert not conflicts(parse_scope("src", mode=a), parse_scope("docs/**/x*", mode=b))


def test_nested_and_repeated_scopes_are_merged() -> None:
    scopes = parse_scopes(["src/api", "docs", "src", "src/", "src/api/v1/*.py", "src-old"])

    assert [scope.text for scope in scopes] == ["docs", "src-old", "src"]


def test_writing_covers_reading_but_reading_never_covers_writing() -> None:
    scopes = merge_scopes(
        [
            parse_scope("src", mode=READ),
            parse_scope("src/api", mode=WRITE),
            parse_scope("src/api/v1", mode=READ),
            parse_scope("src/web", mode=READ),
            parse_scope("docs", mode=READ),
            parse_scope("docs", mode=WRITE),
            parse_scope("x/*.py", mode=READ),
            parse_scope("x/*.py", mode=WRITE),
            parse_scope("x/*.ts", mode=READ),
        ]
    )

    assert [(scope.text, scope.mode) for scope in scopes] == [
        ("docs", WRITE),
        ("src", READ),
        ("src/api", WRITE),
        ("x/*.py", WRITE),
        ("x/*.ts", READ),
    ]


def test_merging_twins_gives_one_answer_in_every_order() -> None:
    twins = [parse_scope(text, rules=PathRules(fold_case=True)) for text in ("src", "Src", "SRC")]

    assert {merge_scopes(order) for order in permutations(twins)} == {(twins[2],)}


SCOPES = st.builds(
    parse_scope,
    st.sampled_from([*PATHS[:40], ".", "a*", "a/*", "a/a?b", "**/ab", "ab/**/a", "a-b/*/a"]),
    mode=st.sampled_from(Mode),
)


def strongest(scopes: list[Scope] | tuple[Scope, ...], path: str) -> Mode | None:
    modes = {scope.mode for scope in scopes if covers(scope, path)}
    return WRITE if WRITE in modes else READ if modes else None


@settings(max_examples=300, deadline=None)
@given(st.lists(SCOPES, max_size=8), st.randoms(use_true_random=False))
def test_merging_changes_no_path_and_leaves_no_nested_literal(scopes: list[Scope], rng) -> None:
    merged = merge_scopes(scopes)

    assert [strongest(merged, p) for p in PATHS] == [strongest(scopes, p) for p in PATHS]
    for outer, inner in product(merged, merged):
        if outer is not inner and outer.pattern is None and inner.key.startswith(outer.key):
            assert (outer.mode, inner.mode) == (READ, WRITE)
    rng.shuffle(scopes)
    assert merge_scopes(scopes) == merged
    assert merge_scopes(merged) == merged


@settings(max_examples=300, deadline=None)
@given(SCOPES, SCOPES)
def test_overlap_and_conflict_are_symmetric(a: Scope, b: Scope) -> None:
    assert overlaps(a, b) == overlaps(b, a)
    assert conflicts(a, b) == conflicts(b, a)
    assert overlaps(a, a)
