"""What a repository's own configuration says about pushes.

| key | what it settles | without it |
|---|---|---|
| `lessor.unleased` | `allow` or `refuse`: references that belong to no lease | `allow` |
| `lessor.exempt` | patterns of full names that are never asked about; may be given several times | none |
| `lessor.trusted` | patterns of references whose commits are nobody's own; several times | HEAD's branch |
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from lessor.errors import InvalidError
from lessor.git.command import run_git
from lessor.git.complaint import failure
from lessor.model.push import Unleased

_NONE_SET = 1  # the exit code of git config


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """A repository's policy.

    Attributes:
        exempt: patterns of references that are never asked about.
        trusted: patterns of references whose commits are nobody's own, beside HEAD's.
    """

    unleased: Unleased = Unleased.ALLOW
    exempt: tuple[str, ...] = ()
    trusted: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Trusted:
    """The tips whose commits count as nobody's own.

    Attributes:
        target: that of HEAD's branch, which all of them would land in; None where it has none yet.
    """

    tips: tuple[str, ...]
    target: str | None


def read_policy(git_dir: Path) -> Policy:
    """The policy as of now.

    Raises:
        InvalidError: a value is none that there is.
        GitError: git can't be asked.
    """
    asked = ["config", "-z", "--get-regexp", r"^lessor\."]
    settings: dict[str, list[str]] = {}
    said = run_git(asked, cwd=git_dir, git_dir=git_dir, check=False)
    if said.code not in {0, _NONE_SET}:  # unread configuration allows nothing
        raise failure(asked, said)
    for record in said.records:
        key, _, value = record.partition("\n")
        settings.setdefault(key, []).append(value)
    word = settings.get("lessor.unleased", [Unleased.ALLOW.value])[-1]
    if word not in {*Unleased}:
        raise InvalidError(
            f"lessor.unleased is {word[:40]!r} in this repository's configuration.",
            next_step=f"Set it to one of: {', '.join(Unleased)}.",
        )
    return Policy(
        unleased=Unleased(word),
        exempt=tuple(settings.get("lessor.exempt", ())),
        trusted=tuple(settings.get("lessor.trusted", ())),
    )


def trusted_tips(git_dir: Path, policy: Policy) -> Trusted:
    """What `policy` trusts, as it stands before a push.

    Raises:
        GitError: git can't be asked.
    """
    asked = ["rev-parse", "--verify", "--quiet", "HEAD^{commit}"]
    head = run_git(asked, cwd=git_dir, git_dir=git_dir, check=False)
    tips = [head.text] if head.code == 0 else []
    if policy.trusted:
        args = ["for-each-ref", "--format=%(objectname)", *policy.trusted]
        tips += run_git(args, cwd=git_dir, git_dir=git_dir).lines
    return Trusted(tips=tuple(tips), target=head.text if head.code == 0 else None)
