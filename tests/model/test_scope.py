"""Scopes as they are written: what is accepted, refused, dropped, folded, and the keys that result."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from unicodedata import normalize

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lessor.errors import ScopeInvalidError
from lessor.model.scope import (
    MAX_SCOPES,
    Mode,
    PathRules,
    Scope,
    covers,
    natural_scope,
    overlaps,
    parse_scope,
    parse_scopes,
    path_key,
)

FOLDING = PathRules(fold_case=True)
AS_IS = PathRules(normalize=False)
# The user's own configuration and a GIT_DIR of an outer hook stay out.
ENVIRONMENT = {
    **{name: value for name, value in os.environ.items() if not name.startswith("GIT_")},
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_SYSTEM": os.devnull,
}


def test_a_literal_path_is_a_scope_with_its_key_range_and_ancestors() -> None:
    scope = parse_scope("services/billing")

    assert scope == Scope(
        text="services/billing", key="/services/billing/", mode=Mode.WRITE, pattern=None
    )
    assert scope.key_end == "/services/billing0"
    assert scope.ancestors == ("/", "/services/", "/services/billing/")


def test_the_root_is_above_everything() -> None:
    root = parse_scope(".")

    assert (root.key, root.key_end, root.ancestors) == ("/", "0", ("/",))
    assert root == parse_scope("./") == parse_scope("././/")


def test_a_glob_has_the_key_of_the_directories_before_its_first_wildcard() -> None:
    scope = parse_scope("src/api/**/*.py", mode=Mode.READ)

    assert scope == Scope(
        text="src/api/**/*.py", key="/src/api/", mode=Mode.READ, pattern="src/api/**/*.py"
    )
    assert parse_scope("sr?/api").key == "/"


@pytest.mark.parametrize("text", ["./a/b", "a//b", "a/b/", "a/./b", "a/b/.", "././a///b//"])
def test_dots_and_doubled_or_trailing_slashes_are_dropped(text: str) -> None:
    assert parse_scope(text) == parse_scope("a/b")


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("", "is empty"),
        ("path:", "is empty"),
        ("glob:", "is empty"),
        ("/etc/passwd", "is absolute"),
        ("//host/share", "is absolute"),
        ("path:/etc", "is absolute"),
        ("..", 'has a ".." segment'),
        ("a/../b", 'has a ".." segment'),
        ("**/../b", 'has a ".." segment'),
        ("C:/work", "as a drive does"),
        ("c:work", "as a drive does"),
        ("./C:/work", "as a drive does"),
        ("r:docs", "as a drive does"),
        ("w:docs", "as a drive does"),
        ("a\\b", "contains a backslash"),
        ("a\x00b", "contains a control character"),
        ("a\nb", "contains a control character"),
        ("a\n", "contains a control character"),
        ("a\x7f", "contains a control character"),
        ("a\x85", "contains a control character"),
        ("\x1b[2J", "contains a control character"),
        (".git", "git's own directory"),
        (".GIT/hooks", "git's own directory"),
        ("sub/.gIt/config", "git's own directory"),
        ("git~1", "git's own directory"),
        ("a/GIT~1/config", "git's own directory"),
        (".git/*", "git's own directory"),
        ("a/\udc80", "is not valid UTF-8"),
        ("\ud800/a", "is not valid UTF-8"),
        pytest.param("x" * 256, "more than 255 bytes", id="name"),
        pytest.param("é" * 128, "more than 255 bytes", id="name-in-bytes"),
        pytest.param("a/" * 2048 + "a", "more than 850 bytes", id="path"),
        pytest.param("é/" * 1366, "more than 850 bytes", id="path-in-bytes"),
        pytest.param("x" * 1_000_000, "more than 850 bytes", id="huge"),
    ],
)
def test_what_no_repository_path_can_be_is_refused(text: str, fault: str) -> None:
    with pytest.raises(ScopeInvalidError) as caught:
        parse_scope(text)

    assert fault in caught.value.message
    assert caught.value.next_step
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 1000


@pytest.mark.parametrize(
    "text",
    [
        ".github/workflows",
        ".gitignore",
        "x.git",
        "git~2",
        "...",
        "a..b",
        "docs:old",
        "a b/c",
        "x" * 255,
        "é" * 127,
        "a/" * 424 + "aa",
        "-rf",
        "$(id)",
    ],
)
def test_unusual_names_are_accepted_as_they_are(text: str) -> None:
    assert parse_scope(text).text == text


def git_takes(repository: Path, path: str) -> bool:
    """Whether git's index accepts a file of that path."""
    entry = f"100644,{'1' * 40},{path}"
    done = subprocess.run(
        ["git", "-C", str(repository), "update-index", "--add", "--cacheinfo", entry],
        capture_output=True,
        check=False,
        env=ENVIRONMENT,
    )
    return done.returncode == 0


@pytest.mark.parametrize(
    "protected", [".git", ".GIT", "git~1", "GIT~1", ".git. .", ".git ", ".git::$INDEX_ALLOCATION"]
)
def test_names_that_git_itself_refuses_are_refused(tmp_path: Path, protected: str) -> None:
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True, env=ENVIRONMENT)

    for path in (protected, f"{protected}/x", f"a/{protected}/x"):
        assert not git_takes(tmp_path, path)
        with pytest.raises(ScopeInvalidError):
            parse_scope(path)
        with pytest.raises(ScopeInvalidError):
            path_key(path)


@pytest.mark.parametrize("text", [".gitignore", "git~2", "git~10", ".git2/x", "a.git"])
def test_names_that_only_resemble_git_are_left_alone(tmp_path: Path, text: str) -> None:
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True, env=ENVIRONMENT)

    assert git_takes(tmp_path, text)
    assert parse_scope(text).text == text


def test_brackets_and_braces_are_literal() -> None:
    scope = parse_scope("pages/[id].tsx")

    assert scope.pattern is None
    assert covers(scope, "pages/[id].tsx")
    assert not covers(scope, "pages/i.tsx")
    assert not overlaps(scope, parse_scope("pages/i.tsx"))


def test_a_prefix_takes_wildcards_literally() -> None:
    literal = parse_scope("path:a*b")

    assert (literal.key, literal.pattern) == ("/a*b/", None)
    assert covers(literal, "a*b/c")
    assert not covers(literal, "axb")
    assert overlaps(literal, parse_scope("a?b"))
    assert not overlaps(literal, parse_scope("axb"))


texts = st.lists(
    st.sampled_from(
        ["a", "Ab", "*", "**", "?", "a*", "*?", ".", "", "path:", "glob:", "é", "e\u0301", "[x]"]
    ),
    min_size=1,
    max_size=6,
).map("/".join)
prefixed = st.builds(str.__add__, st.sampled_from(["", "path:", "glob:", "glob:path:"]), texts)
all_rules = st.builds(PathRules, fold_case=st.booleans(), normalize=st.booleans())


@settings(max_examples=500, deadline=None)
@given(prefixed, st.sampled_from(Mode), all_rules)
def test_the_text_of_a_scope_parses_to_the_same_scope(
    text: str, mode: Mode, rules: PathRules
) -> None:
    try:
        scope = parse_scope(text, mode=mode, rules=rules)
    except ScopeInvalidError:
        return

    assert parse_scope(scope.text, mode=mode, rules=rules) == scope


@settings(max_examples=300, deadline=None)
@given(st.text(max_size=30), all_rules)
def test_any_text_gives_a_scope_or_a_typed_refusal(text: str, rules: PathRules) -> None:
    try:
        scope = parse_scope(text, rules=rules)
    except ScopeInvalidError:
        return

    assert scope.key.startswith("/")
    assert scope.key.endswith("/")
    assert scope.key.encode()
    assert scope.ancestors[0] == "/"
    assert scope.ancestors[-1] == scope.key


# --- folding


def test_case_is_kept_apart_unless_the_repository_folds_it() -> None:
    assert parse_scope("README").key != parse_scope("readme").key
    assert parse_scope("README", rules=FOLDING).key == parse_scope("readme", rules=FOLDING).key


def test_folding_is_full_unicode_folding() -> None:
    keys = {parse_scope(t, rules=FOLDING).key for t in ("Straße", "STRASSE", "strasse", "STRAẞE")}

    assert keys == {"/strasse/"}
    # Folding takes this letter apart; its key is put together again.
    assert (
        path_key("\u03aa\u0301", rules=FOLDING) == path_key("\u0390", rules=FOLDING) == "/\u0390/"
    )


def test_composed_and_decomposed_names_are_one_name_unless_normalizing_is_off() -> None:
    composed, decomposed = "caf\u00e9", "cafe\u0301"

    assert parse_scope(composed).key == parse_scope(decomposed).key == "/caf\u00e9/"
    assert path_key(composed, rules=AS_IS) != path_key(decomposed, rules=AS_IS)
    assert covers(parse_scope(composed), decomposed)


def test_folding_alone_leaves_the_unicode_form_as_it_is() -> None:
    rules = PathRules(fold_case=True, normalize=False)

    assert path_key("CAFE\u0301", rules=rules) == "/cafe\u0301/"
    assert path_key("CAF\u00c9", rules=rules) == "/caf\u00e9/"


def test_folding_reaches_globs() -> None:
    scope = parse_scope("Src/**/STRAßE*", rules=FOLDING)

    assert (scope.text, scope.key, scope.pattern) == ("Src/**/STRAßE*", "/src/", "src/**/strasse*")
    assert covers(scope, "sRC/x/strasseN.py", rules=FOLDING)
    assert overlaps(scope, parse_scope("SRC/Strasse.PY", rules=FOLDING))


@settings(max_examples=500, deadline=None)
@given(st.text(min_size=1, max_size=20))
def test_every_spelling_of_a_name_has_one_key(name: str) -> None:
    try:
        key = path_key(name, rules=FOLDING)
    except ScopeInvalidError:
        return

    assert path_key(normalize("NFD", name), rules=FOLDING) == key
    assert path_key(normalize("NFC", name), rules=FOLDING) == key
    assert path_key(normalize("NFC", name).casefold(), rules=FOLDING) == key
    assert normalize("NFC", key) == key


# --- keys of paths that git reports


def test_a_path_outside_utf8_has_a_key_and_is_covered_by_its_directories() -> None:
    path = os.fsdecode(b"src/\xff\xfe/\nx\\y")

    assert covers(parse_scope("src"), path)
    assert covers(parse_scope("."), path)
    assert covers(parse_scope("src/**/*y"), path)
    assert covers(parse_scope("src/??"), path)
    assert not covers(parse_scope("docs"), path)
    assert path_key(path).encode("utf-8", "surrogateescape") == b"/src/\xff\xfe/\nx\\y/"


@pytest.mark.parametrize("path", ["", "/a", "../a", "a/..", ".git/config", "a\x00b"])
def test_a_path_that_no_tree_holds_is_refused_not_judged(path: str) -> None:
    with pytest.raises(ScopeInvalidError):
        covers(parse_scope("."), path)


segments = st.text("ab-.0/", min_size=1, max_size=8).filter(lambda t: t.strip("/.") != "")
tree_paths = segments.filter(lambda t: not t.startswith("/") and ".." not in t.split("/"))


@settings(max_examples=1000, deadline=None)
@given(tree_paths, tree_paths)
def test_the_keys_below_a_scope_are_exactly_its_byte_range(scope_text: str, path: str) -> None:
    scope, key = parse_scope(scope_text), path_key(path).encode()

    in_range = scope.key.encode() <= key < scope.key_end.encode()

    assert in_range == covers(scope, path)
    assert in_range == (scope.key in parse_scope(path).ancestors)


@settings(max_examples=300, deadline=None)
@given(st.text(min_size=1), st.text(min_size=1))
def test_keys_compare_as_their_bytes_do(a: str, b: str) -> None:
    try:
        one, other = parse_scope(f"path:{a}").key, parse_scope(f"path:{b}").key
    except ScopeInvalidError:
        return

    assert (one < other) == (one.encode() < other.encode())


# --- sets


def test_one_text_in_place_of_a_list_is_refused() -> None:
    with pytest.raises(ScopeInvalidError, match="list of scopes"):
        parse_scopes("src")


def test_more_scopes_than_a_set_may_have_are_refused() -> None:
    texts = [f"d{n}" for n in range(MAX_SCOPES)]

    assert len(parse_scopes(texts)) == MAX_SCOPES
    with pytest.raises(ScopeInvalidError, match="10001 scopes are more than the 10000"):
        parse_scopes([*texts, "one-more"])


# --- the natural scope

PACKAGES = {"services/billing", "services/billing/api", "web", "."}


@pytest.mark.parametrize(
    ("path", "natural"),
    [
        ("services/billing/api/v1/x.py", "services/billing/api"),
        ("services/billing/x.py", "services/billing"),
        ("services/billing", "services/billing"),
        ("services/billing-v2/x.py", "services/billing-v2"),
        ("docs/guide/start.md", "docs/guide"),
        ("web/x", "web"),
        ("README.md", "README.md"),
        ("./docs//x", "docs"),
        ("a*b/x.py", "path:a*b"),
        ("path:x/y", "path:path:x"),
        ("[id]/page.tsx", "[id]"),
        (".", "."),
    ],
)
def test_the_natural_scope_is_the_package_else_the_directory(path: str, natural: str) -> None:
    assert natural_scope(path, packages=PACKAGES) == natural


@pytest.mark.parametrize(
    ("raw", "natural"),
    [(b"src/\xff/a/x", "src"), (b"src/a\nb/x", "src"), (b"\xff", "."), (b"c:x/y", ".")],
)
def test_a_name_that_no_scope_can_have_takes_the_directory_above(raw: bytes, natural: str) -> None:
    path = os.fsdecode(raw)

    assert natural_scope(path, packages=()) == natural
    assert covers(parse_scope(natural), path)


@settings(max_examples=500, deadline=None)
@given(
    st.text(st.characters(codec=None), min_size=1, max_size=20),
    st.sets(st.sampled_from(["a", "b", "a/b", "é"])),
)
def test_the_natural_scope_covers_its_path_and_is_a_literal(path: str, packages: set[str]) -> None:
    try:
        natural = natural_scope(path, packages=packages)
    except ScopeInvalidError:
        with pytest.raises(ScopeInvalidError):
            path_key(path)
        return

    scope = parse_scope(natural)
    assert scope.pattern is None
    assert covers(scope, path)
