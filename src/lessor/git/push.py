"""Pushing references to a remote, each compared with what it has to be there.

`--force-with-lease=<ref>:<expected>` is a compare-and-swap that the remote makes under its own
lock. Three habits of git would take it away, and none is left to a caller: a leading `+` or
`--force` switches the comparison off, an expectation that isn't spelled out trusts the tracking
reference that any fetch refreshes, and without `--atomic` one reference is refused and the other
moves all the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from lessor.clock import SystemClock
from lessor.errors import GitError, RemoteUnreachableError
from lessor.git.command import CHECKOUT_TIMEOUT_S, GitResult, run_git
from lessor.git.complaint import failure, hide_credentials
from lessor.git.reaching import push_places, pushed_to, way_to_hosts

ASK_TIMEOUT_S = 60.0
LOCK_PATIENCE_MS = 10_000
"""How long another push is waited for that keeps a reference locked at the remote: git waits 0.1 s."""
_LOOK_MS = 100
MOST_SAID = 40

PUSH = "LESSOR_PUSH"
"""What a push shows to the remote's hooks, where they are this machine's own processes."""

# What git says as it dies before it has sent anything (2.39). Whatever else ends a push without an
# answer for each reference may have reached the remote.
_NOTHING_SENT = (
    "could not read from remote repository",  # after any words of ssh's, when no reference was shown
    "does not appear to be a git repository",
    "unable to access",
    "unable to connect to",
    "unable to look up",
    "' not allowed",  # the protocol, by protocol.allow or GIT_ALLOW_PROTOCOL
    "authentication failed",
    "could not read username",
    "could not read password",
)
_DIED, _LAST_WORD = 128, "fatal: "
_NOT_UNPACKED = "error: remote unpack failed: "
_SUBMODULES_LACK = "fatal: aborting."
_LACKS = "the receiving end does not support"
_NO_OPTIONS = f"{_LACKS} push options"
# What git refuses for the person's own settings, as it would with `git push`.
_ASKED_BY_PERSON: Mapping[str, str] = {
    "--signed push": "push.gpgSign",
    "push options": "push.pushOption",
}
# Of a lock that another git holds, or left as it died; not of a value that isn't the expected one.
# A deletion takes `packed-refs.lock` as well, and names no reference then.
_LOCK = re.compile(r"Unable to create '.*\.lock': File exists")
# Of a value that isn't the expected one git says where it "is at", that it is missing, or exists.
_UNWRITTEN = re.compile(
    r"(?i:unable to create (directory|'.*\.lock': (?!file exists))|unable to (write|append)|couldn't write"
    r"|exists; cannot create)"
)
_MOVED = frozenset(" +-*")
_SAME = "="


class Fate(StrEnum):
    """What became of one reference at the remote."""

    MOVED = "moved"
    SAME = "same"  # it was there already: git sent nothing for it
    STALE = "stale"  # it isn't what it had to be
    REFUSED = "refused"
    UNKNOWN = "unknown"  # the remote never answered


@dataclass(frozen=True, slots=True, kw_only=True)
class RefChange:
    """A reference, what it has to be at the remote, and what it becomes; None means absent."""

    ref: str
    expected: str | None
    new: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Pushed:
    """What a push came to.

    Attributes:
        fates: one for each reference that was asked for.
        said: the remote's and git's own words, a line each, credentials left out; data.
        told: whether the remote was told the push option; False where it takes none.
        locked: nothing moved, as another git at the remote keeps one of them locked.
    """

    fates: Mapping[str, Fate]
    said: tuple[str, ...] = ()
    told: bool = False
    locked: bool = False

    def fate(self, ref: str) -> Fate:
        """What became of `ref`."""
        return self.fates[ref]

    @property
    def why(self) -> str:
        """Why something was refused: the remote's own words where it has some, else git's."""
        told = [line.removeprefix("remote:").strip() for line in self.said if "remote:" in line]
        words = [line.removeprefix("lessor:").strip() for line in told if line]
        unpacked = [line for line in self.said if line.startswith(_NOT_UNPACKED)]
        refused = [line.replace("\t", " ") for line in self.said if line.startswith("!")]
        return "\n".join(words or unpacked or refused or self.said) or "it gave no reason."


def push(
    cwd: Path,
    remote: str,
    changes: Sequence[RefChange],
    *,
    atomic: bool = True,
    option: str = "",
    told: bool = True,
    hooks: bool = False,
    timeout_s: float = CHECKOUT_TIMEOUT_S,
) -> Pushed:
    """Move references of `remote`, each only from what it has to be.

    Args:
        cwd: a directory of the repository that has the objects.
        atomic: all of them or none; else each by itself.
        option: a push option; it is told by configuration in the environment, as arguments are
            everybody's to read. A remote that takes no options gets the push without it.
        told: tell it to the remote; False where that is known to take no options, which saves a try.
        hooks: run the repository's own pre-push hook, as `git push` does (git-lfs sends its files
            there).

    Raises:
        RemoteUnreachableError: the remote can't be asked; nothing was sent.
        GitError: it can't take such a push at all (it isn't atomic there); nothing was sent.
    """
    args = [
        *("push", "--porcelain", "--no-follow-tags", "--no-verbose"),
        *(["--atomic"] if atomic else ["--no-atomic"]),
        _submodules(cwd, changes),
        *(f"--force-with-lease={change.ref}:{change.expected or ''}" for change in changes),
        "--",
        remote,
        *(f"{change.new or ''}:{change.ref}" for change in changes),
    ]
    result = _send(
        args, cwd=cwd, remote=remote, option=option, hooks=hooks, timeout_s=timeout_s, told=told
    )
    told = told and bool(option)
    clock = SystemClock()
    until_ms = clock.boottime_ms() + LOCK_PATIENCE_MS
    while result is not None:
        if told and _lacks(result, _NO_OPTIONS):
            told = False
        elif _is_locked(result) and clock.boottime_ms() < until_ms:
            clock.wait(_LOOK_MS)
        else:
            break
        # Git runs pre-push before it finds out: it has run, and let this very push go.
        result = _send(
            args,
            cwd=cwd,
            remote=remote,
            option=option,
            hooks=False,
            timeout_s=timeout_s,
            told=told,
        )
    if result is None:
        return Pushed(fates={change.ref: Fate.UNKNOWN for change in changes})
    found = _fates(result)
    if not found and result.code != 0:
        _refuse_unsent(remote, result)
    return Pushed(
        fates={change.ref: found.get(change.ref, Fate.UNKNOWN) for change in changes},
        said=_said(result),
        told=told,
        locked=_is_locked(result),
    )


def refuse_several_places(cwd: Path, remote: str) -> None:
    """Refuse a name by which git pushes to several places: one may take what another refuses.

    Raises:
        GitError: it has several push URLs.
    """
    places = push_places(cwd, remote)
    if len(places) > 1:
        named = [hide_credentials(place) for place in places]
        raise GitError(
            f"{remote} is pushed to {len(named)} places: nothing makes them take a push together.",
            next_step=f"Name one of them: --remote {named[0]}.",
            remote=remote,
            places=named,
        )


def remote_tips(cwd: Path, remote: str, *refs: str) -> dict[str, str]:
    """The object ids of those of the full names `refs` that the remote shows.

    Raises:
        RemoteUnreachableError: it can't be asked.
    """
    # A pattern also fits below other names: refs/x/refs/heads/main.
    return {name: oid for name, oid in _listed(cwd, remote, *refs) if name in refs}


def tips_below(cwd: Path, remote: str, prefix: str) -> dict[str, str]:
    """The object ids of all references that the remote shows below `prefix`, which ends in a slash.

    Raises:
        RemoteUnreachableError: it can't be asked.
    """
    listed = _listed(cwd, remote, f"{prefix}*")
    return {name: oid for name, oid in listed if name.startswith(prefix)}


def _listed(cwd: Path, remote: str, *patterns: str) -> list[tuple[str, str]]:
    asked = ["ls-remote", "--quiet", "--", pushed_to(cwd, remote), *patterns]
    result = ask(cwd, remote, asked, env=way_to_hosts())
    pairs = (line.split("\t", 1) for line in result.lines if "\t" in line)
    return [(name, oid) for oid, name in pairs]


def ask(cwd: Path, remote: str, args: Sequence[str], *, env: Mapping[str, str]) -> GitResult:
    """Run a git command that only asks a remote.

    Raises:
        RemoteUnreachableError: it can't be asked.
    """
    try:
        result = run_git(args, cwd=cwd, check=False, env=env, timeout_s=ASK_TIMEOUT_S)
    except GitError as late:
        raise RemoteUnreachableError(
            f"{hide_credentials(remote)} didn't answer.",
            next_step="Try again once it does.",
            remote=hide_credentials(remote),
        ) from late
    if result.code != 0:
        raise unreachable(remote, result)
    return result


def _refuse_unsent(remote: str, result: GitResult) -> None:
    """Raise where git says that it has sent nothing."""
    name = hide_credentials(remote)
    for asked, keys in _ASKED_BY_PERSON.items():
        if _lacks(result, f"{_LACKS} {asked}"):
            raise GitError(
                f"{name} takes no {asked}, and your configuration asks for it: nothing was sent.",
                next_step=f"See where it is set: git config --show-origin --get-all {keys}",
                remote=name,
            )
    if _lacks(result, _LACKS):
        raise GitError(
            f"{name} takes no atomic push: what belongs together could come apart there.",
            next_step="Put Lessor's hooks there instead: lessor git install-server-hooks.",
            remote=name,
        )
    words = _last_words(result)
    if result.code == _DIED and _SUBMODULES_LACK in words:  # the other end's farewell may follow
        raise GitError(
            "Submodules have commits that no remote of theirs has: nothing was pushed.",
            next_step="Push them first: git submodule foreach git push.",
            remote=name,
        )
    if result.code == _DIED and any(said in line for line in words[-1:] for said in _NOTHING_SENT):
        raise unreachable(remote, result)


def unreachable(remote: str, result: GitResult) -> RemoteUnreachableError:
    """The error for a remote that couldn't be asked, in git's own words."""
    said = failure(["push"], result).facts["said"]
    words = " ".join(said) if isinstance(said, list) else ""
    name = hide_credentials(remote)
    return RemoteUnreachableError(
        f"{name} can't be reached: {words or 'git gave no reason'}",
        next_step=f"Try `git ls-remote {name}`; once that works, try again.",
        remote=name,
    )


def _submodules(cwd: Path, changes: Sequence[RefChange]) -> str:
    """Whoever wants submodules pushed along is told where one lacks something.

    Git would push them itself, from whatever is checked out, to remotes that no fence is asked at.
    """
    if not any(change.new and change.ref.startswith("refs/heads/") for change in changes):
        return "--recurse-submodules=no"
    asked = ["config", "--get-regexp", r"^(push\.recursesubmodules|submodule\.recurse)$"]
    wanted = run_git(asked, cwd=cwd, check=False).lines
    values = {line.partition(" ")[2].lower() for line in wanted}
    return f"--recurse-submodules={'check' if values - {'no', 'false', 'off', '0'} else 'no'}"


def _send(
    args: Sequence[str],
    *,
    cwd: Path,
    remote: str,
    option: str,
    hooks: bool,
    timeout_s: float,
    told: bool,
) -> GitResult | None:
    """What git said; None where it was stopped and nobody knows what had been sent.

    Args:
        told: tell the option to the remote; else only to hooks that are this machine's processes.
    """
    settings = {**unmirrored(remote), **({"push.pushOption": option} if option and told else {})}
    env = {**way_to_hosts(), **configured(settings), **({PUSH: option} if option else {})}
    try:
        return run_git(args, cwd=cwd, check=False, env=env, timeout_s=timeout_s, hooks=hooks)
    except GitError as stopped:
        if "command" not in stopped.facts:
            raise  # it wasn't even started
        return None


def unmirrored(remote: str) -> dict[str, str]:
    """The configuration for a push that names references: a mirror's names none."""
    is_name = ":" not in remote and not remote.startswith((".", "/"))
    return {f"remote.{remote}.mirror": "false"} if is_name else {}


def configured(settings: Mapping[str, str]) -> dict[str, str]:
    """Configuration for one command, by its environment."""
    env = {"GIT_CONFIG_COUNT": str(len(settings))}
    for n, (key, value) in enumerate(settings.items()):
        env |= {f"GIT_CONFIG_KEY_{n}": key, f"GIT_CONFIG_VALUE_{n}": value}
    return env


def reported(result: GitResult) -> Iterator[tuple[str, str, str]]:
    """Flag, reference and summary out of the lines `<flag> TAB <from>:<to> TAB <summary>` of --porcelain."""
    for line in result.text.split("\n"):
        flag, _, rest = line.partition("\t")
        names, _, summary = rest.partition("\t")
        if len(flag) == 1 and summary:
            # Neither an object id nor a full reference name holds a colon.
            yield flag, names.partition(":")[2], summary


def _fates(result: GitResult) -> dict[str, Fate]:
    unwritten = _UNWRITTEN.search(result.err.decode(errors="replace")) is not None
    found: dict[str, Fate] = {}
    for flag, ref, summary in reported(result):
        fate = _fate(flag, summary, unwritten=unwritten)
        # Of several places that don't agree, nobody can say that it moved or didn't.
        found[ref] = fate if found.get(ref, fate) is fate else Fate.UNKNOWN
    return found


def _fate(flag: str, summary: str, *, unwritten: bool) -> Fate:
    if flag in _MOVED:
        return Fate.MOVED
    if flag == _SAME:
        return Fate.SAME
    if summary.startswith("[remote failure]"):
        return Fate.UNKNOWN
    if "stale info" in summary:  # by this git's own comparison
        return Fate.STALE
    stale = ("cannot lock ref", "failed to update ref", "incorrect old value")
    told = any(words in summary for words in stale)
    return Fate.STALE if told and not unwritten else Fate.REFUSED


def _is_locked(result: GitResult) -> bool:
    moved = Fate.MOVED in _fates(result).values()
    return not moved and _LOCK.search(result.err.decode(errors="replace")) is not None


def _last_words(result: GitResult) -> list[str]:
    """What git itself died of, also at the other end: a hook's words say nothing of what was sent."""
    # At git's own line ends: it marks the other end's lines, and splitlines() knows more of them.
    lines = result.err.decode(errors="replace").lower().split("\n")
    return [line for line in lines if line.startswith(_LAST_WORD)]


def _lacks(result: GitResult, what: str) -> bool:
    # The other end's complaint of the lost line may come after it.
    return any(what in line for line in _last_words(result))


def _said(result: GitResult) -> tuple[str, ...]:
    text = hide_credentials(result.err.decode(errors="replace"))
    lines = [line.rstrip() for line in text.split("\n") if line.strip()]
    lines += [line for line in result.text.split("\n") if line.startswith("!")]
    return tuple(lines[-MOST_SAID:])
