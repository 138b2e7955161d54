"""Globs against a model that tries every path: no answer of the automata is taken on trust."""

from __future__ import annotations

from functools import cache
from itertools import combinations_with_replacement, product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lessor.errors import ScopeInvalidError
from lessor.model.glob import GLOB_BYTES, GLOB_SEGMENTS
from lessor.model.scope import Scope, covers, overlaps, parse_scope


@cache
def name_matches(pattern: str, name: str) -> bool:
    if not pattern:
        return not name
    if pattern[0] == "*":
        return any(name_matches(pattern[1:], name[n:]) for n in range(len(name) + 1))
    return bool(name) and pattern[0] in {"?", name[0]} and name_matches(pattern[1:], name[1:])


@cache
def path_matches(pattern: tuple[str, ...], path: tuple[str, ...]) -> bool:
    if not pattern:
        return not path
    if pattern[0] == "**":
        return any(path_matches(pattern[1:], path[n:]) for n in range(len(path) + 1))
    return bool(path) and name_matches(pattern[0], path[0]) and path_matches(pattern[1:], path[1:])


def is_covered(pattern: tuple[str, ...], path: tuple[str, ...]) -> bool:
    if pattern[-1] in {"*.p", "*.q"}:
        return path_matches(pattern, path)
    return any(path_matches(pattern, path[:n]) for n in range(1, len(path) + 1))


def words(letters: str, longest: int) -> list[str]:
    return ["".join(w) for n in range(1, longest + 1) for w in product(letters, repeat=n)]


# What two segments of a family match together is found among its names whenever there is any,
# and a path that two globs of up to three segments share needs at most five.
FAMILIES = [
    pytest.param(("a", "b", "?", "*", "**", "a*", "*b", "*a*"), ("a", "b", "ab"), id="letters"),
    pytest.param(("a.p", "*", "**", "*.p", "*.q", "a*"), ("a", "a.p", "a.q"), id="extensions"),
]
Model = list[tuple[tuple[str, ...], Scope, int]]


def all_paths(names: tuple[str, ...]) -> list[tuple[str, ...]]:
    return [path for n in range(1, 6) for path in product(names, repeat=n)]


def model_of(segments: tuple[str, ...], names: tuple[str, ...]) -> Model:
    """Every glob of up to three segments with the set of paths it should cover, as bits."""
    paths = all_paths(names)
    globs = [glob for n in (1, 2, 3) for glob in product(segments, repeat=n)]
    return [
        (
            glob,
            parse_scope("/".join(glob)),
            sum(1 << n for n, path in enumerate(paths) if is_covered(glob, path)),
        )
        for glob in globs
    ]


@pytest.mark.parametrize(("segments", "names"), FAMILIES)
def test_two_globs_overlap_exactly_when_some_path_is_covered_by_both(
    segments: tuple[str, ...], names: tuple[str, ...]
) -> None:
    model = model_of(segments, names)

    wrong = [
        (a.text, b.text)
        for (_, a, in_a), (_, b, in_b) in combinations_with_replacement(model, 2)
        if not overlaps(a, b) == overlaps(b, a) == bool(in_a & in_b)
    ]

    assert wrong == []


def test_two_names_with_wildcards_overlap_exactly_when_some_name_matches_both() -> None:
    # Two patterns of up to four symbols share a name of up to six characters or none.
    names = words("ab", 6)
    model = [
        (parse_scope(word), sum(1 << n for n, name in enumerate(names) if name_matches(word, name)))
        for word in words("ab?*", 4)
        if word != "**"
    ]

    wrong = [
        (a.text, b.text)
        for (a, in_a), (b, in_b) in combinations_with_replacement(model, 2)
        if not overlaps(a, b) == overlaps(b, a) == bool(in_a & in_b)
    ]

    assert wrong == []


@pytest.mark.parametrize(("segments", "names"), FAMILIES)
def test_a_glob_covers_exactly_the_paths_that_match_and_those_below_them(
    segments: tuple[str, ...], names: tuple[str, ...]
) -> None:
    paths = ["/".join(path) for path in all_paths(names)]
    wrong = [
        (glob, path)
        for glob, scope, covered in model_of(segments, names)
        for n, path in enumerate(paths)
        if covers(scope, path) != bool(covered >> n & 1)
    ]

    assert wrong == []


names = st.text("ab[]{}.-_é", min_size=1, max_size=8).filter(lambda n: n not in {".", ".."})
paths = st.lists(names, min_size=1, max_size=8)


@st.composite
def generalised(draw: st.DrawFn, path: list[str]) -> str:
    """A glob that matches `path`: parts of it are replaced by what stands for them."""
    segments: list[str] = []
    for name in path:
        shape = draw(st.sampled_from(["same", "star", "stars", "inside"]))
        segment = {"star": "*", "stars": "**"}.get(shape, name)
        if shape == "inside":
            start = draw(st.integers(0, len(name)))
            end = draw(st.integers(start, len(name)))
            segment = name[:start] + draw(st.sampled_from(["*", "?" * (end - start)])) + name[end:]
        segments.append(segment)
        if draw(st.integers(0, 9)) == 0:
            segments.append("**")
    return "/".join(segments)


@settings(max_examples=500, deadline=None)
@given(st.data(), paths)
def test_two_globs_made_from_one_path_cover_it_and_overlap(
    data: st.DataObject, path: list[str]
) -> None:
    a = parse_scope(data.draw(generalised(path)))
    b = parse_scope(data.draw(generalised(path)))

    assert covers(a, "/".join(path))
    assert covers(b, "/".join(path))
    assert overlaps(a, b)
    assert overlaps(b, a)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("src/a*.py", "src/*b.py"),
        ("src/api/**", "src/**/models.py"),
        ("src/**/*.py", "src/api"),
        ("**/test_*", "services/billing"),
        ("*", "README.md"),
        ("**/*.md", "."),
        ("*a*a*a*a*", "*b*b*b*"),
        ("**/*.app/**", "**/*.ts"),
        ("**/v2.*", "**/*.ts"),
        # A literal may be a directory; nobody but git knows.
        ("src/main.py", "src/**/*.ts"),
    ],
)
def test_globs_that_share_a_path_overlap(a: str, b: str) -> None:
    assert overlaps(parse_scope(a), parse_scope(b))


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("docs/*.md", "src/*.py"),
        ("src/*.py", "src/*.ts"),
        ("services/billing/*", "services/billing-v2/*"),
        ("src/**/*.py", "src/**/*.ts"),
        ("src/**/*.py", "src/**/test_*.ts?"),
        ("man/**/*.1", "man/**/*.2"),
        ("src/?/x.py", "src/x.py"),
        ("**/*.d.ts", "**/*.js"),
        ("a?", "abc"),
        ("src/api-*", "src/api"),
        ("**/test_*.py", "**/*_test.ts"),
    ],
)
def test_globs_that_share_no_path_stay_apart(a: str, b: str) -> None:
    assert not overlaps(parse_scope(a), parse_scope(b))
    assert not overlaps(parse_scope(b), parse_scope(a))


@pytest.mark.parametrize(
    ("glob", "path"),
    [
        ("src/*", "src/a/b"),
        ("src/**/*.py", "src/x.py"),
        ("src/**/*.py", "src/a/b/x.py"),
        ("**/node_modules", "web/node_modules/x/index.js"),
        ("[id]*", "[id].tsx"),
        ("???", "füß"),
        ("*.app/**", "x.app/Contents/Info.plist"),
        ("packages/*-api", "packages/x-api/src/a.py"),
    ],
)
def test_a_glob_covers_matches_and_what_is_below(glob: str, path: str) -> None:
    assert covers(parse_scope(glob), path)


@pytest.mark.parametrize(
    ("glob", "path"),
    [
        ("src/*", "src"),
        ("src/*.py", "src/a/x.py"),
        ("src/*.py", "src/a.py/x"),
        ("src/**/*.py", "source/x.py"),
        ("[ab]*", "a.tsx"),
        ("{a,b}*", "a"),
        ("a?c", "a/c"),
        ("a*c", "a/c"),
        ("*", "."),
    ],
)
def test_wildcards_never_cross_a_slash_and_brackets_are_literal(glob: str, path: str) -> None:
    assert not covers(parse_scope(glob), path)


@pytest.mark.parametrize(
    "spellings",
    [
        ("src", "src/**", "src/**/**", "glob:src/**", "./src//**/"),
        (".", "**", "**/**"),
        ("src/*", "src/**/*", "src/*/**", "src/?*", "src/*?"),
        ("*/**/x?*", "**/*/x*?", "**/*/**/x**?*"),
        ("a*b", "a**b", "a***b"),
        ("*.app/**", "*.app/**/**", "**.app/**"),
    ],
)
def test_spellings_of_one_glob_give_one_scope(spellings: tuple[str, ...]) -> None:
    assert len({parse_scope(spelling) for spelling in spellings}) == 1


@pytest.mark.parametrize(
    "many", ["*a" * 100 + "*", "/".join(["*a*b*"] * 60), "**/" + "*/**/a*/" * 20]
)
def test_hostile_globs_are_answered(many: str) -> None:
    hostile, twin = parse_scope(many), parse_scope(many.replace("a", "c"))

    assert overlaps(hostile, twin)
    assert not covers(hostile, "/".join(["b" * 250] * 15))


def test_a_glob_at_its_limits_is_accepted_and_one_above_is_refused() -> None:
    segments, letters = "?/" * GLOB_SEGMENTS, ("*" + "x" * 126 + "/") * 6
    assert len(letters) == GLOB_BYTES

    parse_scope(segments)
    parse_scope(letters)

    for text in (segments + "?", letters + "x"):
        with pytest.raises(ScopeInvalidError, match="glob of more than 768 bytes or 64 segments"):
            parse_scope(text)
