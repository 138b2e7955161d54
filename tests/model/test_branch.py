"""Branch names: everything accepted is a name that git takes, everything made is accepted."""

from __future__ import annotations

import os
import random
import re
import subprocess
from collections.abc import Iterable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lessor.errors import BranchInvalidError
from lessor.model.branch import (
    DEFAULT_TYPES,
    branch_for,
    branch_of_epoch,
    is_branch,
    parse_branch,
)

# The user's own configuration and a GIT_DIR of an outer hook stay out.
ENVIRONMENT = {
    **{name: value for name, value in os.environ.items() if not name.startswith("GIT_")},
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_SYSTEM": os.devnull,
}
# The frozen expression of the specification, 1.1.0, without its shared branches.
SPECIFICATION = re.compile(
    r"(?:feature|feat|bugfix|fix|hotfix|release|chore|ai|copilot|cursor|claude|codex)"
    r"/[a-z0-9]+(?:\.[a-z0-9]+)*(?:-[a-z0-9]+(?:\.[a-z0-9]+)*)*"
)
near_names = st.builds(
    "{}/{}".format,
    st.sampled_from([*DEFAULT_TYPES, "main", "Fix", "", "refs/heads/fix"]),
    st.text("ab0.-/_ Aé@{~^:?*[\\\n٣lock", max_size=12) | st.sampled_from(["a.lock", "a.lock.b"]),
)


def git_takes(name: str) -> bool:
    done = subprocess.run(
        ["git", "check-ref-format", f"refs/heads/{name}"], check=False, env=ENVIRONMENT
    )
    return done.returncode == 0


@settings(max_examples=300, deadline=None)
@given(near_names)
def test_a_name_is_accepted_exactly_when_specification_and_git_both_take_it(name: str) -> None:
    expected = SPECIFICATION.fullmatch(name) is not None and len(name) <= 200 and git_takes(name)

    assert is_branch_of_a_default_type(name) == expected


def is_branch_of_a_default_type(name: str) -> bool:
    try:
        return parse_branch(name) == name
    except BranchInvalidError:
        return False


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("branches")
    subprocess.run(["git", "init", "-q", "-b", "main", str(path)], check=True, env=ENVIRONMENT)
    return path


def create_branches(repository: Path, names: Iterable[str]) -> None:
    """Makes the branches in one git process and takes them away again; raises if git refuses."""
    git = ["git", "-C", str(repository)]
    made = subprocess.run(
        [*git, "hash-object", "-t", "tree", "-w", "/dev/null"],
        capture_output=True,
        check=True,
        env=ENVIRONMENT,
    )
    commit = (
        subprocess.run(
            [
                *git,
                "-c",
                "user.name=t",
                "-c",
                "user.email=t@t",
                "commit-tree",
                made.stdout.strip(),
                "-m",
                "x",
            ],
            capture_output=True,
            check=True,
            env=ENVIRONMENT,
        )
        .stdout.decode()
        .strip()
    )
    for verb in (f"create refs/heads/{{}} {commit}\n", f"delete refs/heads/{{}} {commit}\n"):
        lines = "".join(verb.format(name) for name in names)
        subprocess.run(
            [*git, "update-ref", "--stdin"], input=lines.encode(), check=True, env=ENVIRONMENT
        )


@pytest.mark.parametrize("seed", range(5))
def test_git_makes_every_accepted_branch(repository: Path, seed: int) -> None:
    rng = random.Random(seed)
    texts = {
        f"{rng.choice(DEFAULT_TYPES)}/{''.join(rng.choices('ab0z.-lock', k=rng.randint(1, 12)))}"
        for _ in range(5000)
    }
    accepted = sorted(filter(is_branch_of_a_default_type, texts))

    assert len(accepted) > 1000
    create_branches(repository, accepted)


def test_git_makes_the_longest_accepted_branch(repository: Path) -> None:
    longest = "fix/" + "x" * 196

    create_branches(repository, [parse_branch(longest)])
    with pytest.raises(BranchInvalidError, match="more than 200 bytes"):
        parse_branch(longest + "x")


@pytest.mark.parametrize("kind", DEFAULT_TYPES)
def test_every_type_of_the_specification_is_accepted(kind: str) -> None:
    assert parse_branch(f"{kind}/14-billing-retry") == f"{kind}/14-billing-retry"


@pytest.mark.parametrize("name", ["release/v1.2.0", "fix/1", "chore/a.b-c.d", "fix/x.lock.y"])
def test_single_dots_and_hyphens_join_words(name: str) -> None:
    assert parse_branch(name) == name


@pytest.mark.parametrize(
    ("name", "fault"),
    [
        ("main", "all share"),
        ("master", "all share"),
        ("develop", "all share"),
        ("", "known type"),
        ("feature", "known type"),
        ("main/x", "known type"),
        ("wip/x", "known type"),
        ("Fix/x", "known type"),
        ("/fix/x", "known type"),
        ("refs/heads/fix/x", "known type"),
        ("fix/", "one description"),
        ("fix/a/b", "one description"),
        ("fix//a", "one description"),
        ("fix/A", "one description"),
        ("fix/a_b", "one description"),
        ("fix/a b", "one description"),
        ("fix/a--b", "one description"),
        ("fix/a..b", "one description"),
        ("fix/a-.b", "one description"),
        ("fix/-a", "one description"),
        ("fix/a-", "one description"),
        ("fix/.a", "one description"),
        ("fix/a.", "one description"),
        ("fix/x\n", "one description"),
        ("fix/é", "one description"),
        ("fix/٣", "one description"),
        ("fix/²", "one description"),
        ("fix/a;b=c", "one description"),
        ("fix/x.lock", "ends in .lock"),
        pytest.param("fix/" + "x" * 1_000_000, "more than 200 bytes", id="huge"),
    ],
)
def test_other_names_are_refused_with_the_reason(name: str, fault: str) -> None:
    with pytest.raises(BranchInvalidError) as caught:
        parse_branch(name)

    assert fault in caught.value.message
    assert caught.value.next_step
    assert str(caught.value).isprintable()
    assert not is_branch(name) or name == "wip/x"


def test_a_setting_adds_types() -> None:
    assert parse_branch("docs/x", extra_types=["docs"]) == "docs/x"
    assert parse_branch("fix/x", extra_types=["docs"]) == "fix/x"
    assert is_branch("docs/x")


@pytest.mark.parametrize("kind", ["", "main", "develop", "Docs", "a/b", "a.b", "-a", "a\n", "é"])
def test_a_setting_that_adds_no_possible_type_is_refused(kind: str) -> None:
    with pytest.raises(BranchInvalidError, match="can't be a branch type"):
        parse_branch("fix/x", extra_types=[kind])
    assert not is_branch(f"{kind}/x")


@pytest.mark.parametrize(
    ("title", "name"),
    [
        ("Billing: retry on 503", "claude/14-billing-retry-on-503"),
        ("  Don't break Ünïcode — Straße  ", "claude/14-dont-break-unicode-strasse"),
        ("修复 billing 的 retry", "claude/14-billing-retry"),
        ("\uff26\uff55ll \u2460", "claude/14-full-1"),
        ("修复", "claude/14-task"),
        ("", "claude/14-task"),
        ("x.lock", "claude/14-x-lock"),
        ("$(rm -rf /); `id`", "claude/14-rm-rf-id"),
        ("word " * 30, "claude/14-word-word-word-word-word-word-word-word-word-word"),
        ("x" * 47 + " bb cc", "claude/14-" + "x" * 47 + "-bb"),
        ("x" * 48 + " bb cc", "claude/14-" + "x" * 48),
        ("\u2121", "claude/14-tel"),
        ("y" * 90, "claude/14-" + "y" * 50),
    ],
)
def test_a_title_becomes_a_readable_branch(title: str, name: str) -> None:
    assert branch_for(kind="claude", number=14, title=title, fallback="task") == name


def test_a_branch_without_a_number_is_named_by_its_title() -> None:
    assert branch_for(kind="fix", number=None, title="Retry", fallback="task") == "fix/retry"


def test_a_kind_that_is_no_type_becomes_ai() -> None:
    assert branch_for(kind="gemini", number=3, title="Retry", fallback="task") == "ai/3-retry"


def test_a_number_alone_names_a_branch() -> None:
    assert branch_for(kind="fix", number=3, title="", fallback="—") == "fix/3"


def test_nothing_to_name_a_branch_after_is_refused() -> None:
    with pytest.raises(BranchInvalidError):
        branch_for(kind="fix", number=None, title="—", fallback="")


@pytest.mark.parametrize("number", [-1, 2**63, pytest.param(10**5000, id="huge")])
def test_an_absurd_number_is_refused(number: int) -> None:
    with pytest.raises(BranchInvalidError, match="number"):
        branch_for(kind="fix", number=number, title="x", fallback="task")


@settings(max_examples=500, deadline=None)
@given(
    kind=st.sampled_from(DEFAULT_TYPES) | st.text(),
    number=st.none() | st.integers(0, 2**63 - 1),
    title=st.text(max_size=600),
)
def test_whatever_the_title_the_branch_is_accepted_and_short(
    kind: str, number: int | None, title: str
) -> None:
    name = branch_for(kind=kind, number=number, title=title, fallback="task")

    assert parse_branch(name) == name
    assert len(name) <= 90


@pytest.mark.parametrize(
    ("branch", "epoch", "other"),
    [
        ("claude/14-retry", 2, "claude/14-retry-e2"),
        ("claude/14-retry-e2", 3, "claude/14-retry-e3"),
        ("fix/type-e2", 2, "fix/type-e2-e2"),
        ("team/x", 12, "team/x-e12"),
        (f"fix/{'a' * 196}", 2, f"fix/{'a' * 193}-e2"),
        (f"fix/{'a' * 192}.b{'c' * 2}", 10, f"fix/{'a' * 192}-e10"),
    ],
)
def test_a_branch_of_an_epoch_is_another_valid_name(branch: str, epoch: int, other: str) -> None:
    assert branch_of_epoch(branch, epoch) == other
