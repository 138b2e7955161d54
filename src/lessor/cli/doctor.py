"""`lessor doctor`: whether everything is as it has to be, and what is weaker on this machine."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from lessor.cli.invocation import Invocation
from lessor.cli.options import command, pass_invocation
from lessor.cli.text import Line
from lessor.errors import LessorError
from lessor.store import Store
from lessor.store.address import public

LITTLE_SPACE = 2 * 1024**3
LEAST_ROOM = 256 * 1024**2
ALMOST_FULL = 16 * 1024**2
SKEW_MS = 5_000
FAILED = 1


class Grade(StrEnum):
    """How a check came out."""

    GOOD = "ok"
    WEAKER = "weaker"
    BAD = "bad"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One check."""

    what: str
    grade: Grade
    sentence: str


@command("doctor")
@pass_invocation
def doctor(invocation: Invocation) -> int:
    """Check the store, git, this machine's abilities, permissions and disk. Exits with 1 if one is bad."""
    findings = list(_examine(invocation))
    invocation.answer_all(
        [{"what": f.what, "grade": f.grade, "sentence": f.sentence} for f in findings],
        lambda: _lines(findings, invocation.columns),
    )
    return FAILED if any(f.grade is Grade.BAD for f in findings) else 0


def _examine(invocation: Invocation) -> Iterator[Finding]:
    yield from _store(invocation)
    yield _git()
    yield from _host()
    yield from _state(invocation.settings.state_dir, invocation.settings.tokens_dir)
    yield _disk(invocation.settings.state_dir)
    yield _agents()


def _store(invocation: Invocation) -> Iterator[Finding]:
    from lessor.store.sqlite import SqliteStore

    settings = invocation.settings
    try:
        store = invocation.lessor.store
    except LessorError as error:
        yield _bad("store", f"{error} (from {settings.store_origin})")
        return
    path = store.path if isinstance(store, SqliteStore) else None
    where = path or f"PostgreSQL at {public(settings.store_url)}"
    yield _good("store", f"{where}, from {settings.store_origin}; it can be written")
    yield _size(store, path)
    yield _good("schema", f"version {_schema(store.dialect)}, this Lessor's own")
    if isinstance(store, SqliteStore):
        faults = store.check()
        yield (
            _bad("integrity", f"{'; '.join(faults[:3])}. Restore a backup: lessor restore FILE.")
            if faults
            else _good("integrity", "SQLite's full check found nothing")
        )
    yield from _durability(store)
    yield from _failover(store)
    skew = invocation.lessor.now_ms() - invocation.clock.wall_ms()
    yield (
        _weaker(
            "clock", f"the store's clock is {skew / 1000:+.1f} s from this machine's; it decides"
        )
        if abs(skew) > SKEW_MS
        else _good("clock", "the store's clock and this machine's agree")
    )


def _durability(store: Store) -> Iterator[Finding]:
    """Whether the server keeps what it has committed; a file's own settings are Lessor's."""
    if store.dialect != "postgres":
        return
    off = [str(row[0]) for row in store.read("unkept_promises")]
    yield (
        _weaker(
            "durability",
            f"{' and '.join(off)} {'is' if len(off) == 1 else 'are'} off at the server: a power cut may "
            "take back what was granted, or damage the store. Set them on.",
        )
        if off
        else _good("durability", "a commit is on the server's disk before it is answered")
    )


def _failover(store: Store) -> Iterator[Finding]:
    """Whether a promoted standby or a restored server is told from the one before."""
    if store.dialect != "postgres":
        return
    from lessor.store.postgres import PostgresStore

    if not isinstance(store, PostgresStore):
        return
    said = store.lineage
    if said.standby:
        yield _bad(
            "failover", "the server is a standby: nothing can be claimed until it is promoted"
        )
    elif not said.timeline:
        yield _weaker(
            "failover",
            "the role may not ask for the server's timeline (pg_current_wal_lsn, pg_walfile_name): "
            "after a failover or a restore, run `lessor restore --new-term`",
        )
    elif not said.cluster:
        yield _weaker(
            "failover",
            "the role may not ask which cluster it is (pg_control_system): a failover is told by its "
            "timeline; after moving to another server, run `lessor restore --new-term`",
        )
    else:
        yield _good("failover", f"would be told by the server's timeline, now {said.timeline}")


def _size(store: Store, path: str | None) -> Finding:
    """How large the store is, and what is free beside it; only the server knows its own disk."""
    from lessor.store.sqlite.place import free_bytes, mount_point

    size = int(store.read("store_size")[0][0])
    free = None if path in {None, ":memory:"} else free_bytes(Path(str(path)))
    if free is None:
        return _good("size", f"the store takes {_amount(size)}")
    mount = mount_point(Path(str(path)))
    said = f"the store takes {_amount(size)}; {_amount(free)} free on {mount}"
    # A backup is as large as the store, and the write-ahead log grows beside both.
    needed = max(LEAST_ROOM, 2 * size)
    if free < ALMOST_FULL:
        return _bad("size", f"{said}: writes will be refused soon. Free some space there.")
    if free < needed:
        return _weaker("size", f"{said}: less than the {_amount(needed)} that it should have")
    return _good("size", said)


def _amount(count: int) -> str:
    """Bytes as people say them."""
    for unit, size in (("GB", 1024**3), ("MB", 1024**2)):
        if count >= size:
            return f"{count / size:.1f} {unit}"
    return f"{count // 1024} kB"


def _schema(dialect: str) -> int:
    from lessor.store.migrations import load_migrations

    # An open store has exactly the schema that this Lessor knows: opening brought it there.
    return load_migrations(dialect)[-1].version


def _git() -> Finding:
    from lessor.git.command import require_git

    try:
        version = require_git()
    except LessorError as error:
        return _bad("git", str(error))
    return _good("git", ".".join(str(part) for part in version))


def _host() -> Iterator[Finding]:
    from lessor.runner.host import abilities

    found = abilities()
    for what, ability in (
        ("subreaper", found.subreaper),
        ("cgroup", found.cgroup),
        ("pidfd", found.pidfd),
        ("boot clock", found.boottime),
    ):
        yield Finding(
            what=what,
            grade=Grade.GOOD if ability.available else Grade.WEAKER,
            sentence=ability.sentence,
        )


def _state(state_dir: Path, tokens_dir: Path) -> Iterator[Finding]:
    if not state_dir.is_dir():
        yield _good("state", f"{state_dir} isn't there yet")
        return
    found = state_dir.stat()
    mode = stat.S_IMODE(found.st_mode)
    if found.st_uid != os.getuid():
        yield _bad("state", f"{state_dir} belongs to another user")
    elif mode & 0o077:
        yield _bad("state", f"others can look into {state_dir}: chmod 700 {state_dir}")
    else:
        yield _good("state", f"{state_dir}, yours alone")
    open_ones = [
        path.name
        for path in (tokens_dir.iterdir() if tokens_dir.is_dir() else ())
        if stat.S_IMODE(path.lstat().st_mode) & 0o077
    ]
    if open_ones:
        yield _bad("tokens", f"others can read {open_ones[0]}: chmod 600 {tokens_dir}/*")
    else:
        yield _good("tokens", "lease tokens are readable by you alone")


def _disk(state_dir: Path) -> Finding:
    place = next(path for path in (state_dir, *state_dir.parents) if path.is_dir())
    free = shutil.disk_usage(place).free
    said = f"{_amount(free)} free for worktrees and logs in {state_dir}"
    return _weaker("disk", said) if free < LITTLE_SPACE else _good("disk", said)


def _agents() -> Finding:
    from lessor.project.agents import installed_agents

    names = [agent.name for agent in installed_agents() if agent.path]
    if not names:
        return _weaker(
            "agents", "none on PATH: give a command, lessor run -- CMD, or name one in lessor.toml"
        )
    return _good("agents", ", ".join(names))


def _good(what: str, sentence: str) -> Finding:
    return Finding(what=what, grade=Grade.GOOD, sentence=sentence)


def _weaker(what: str, sentence: str) -> Finding:
    return Finding(what=what, grade=Grade.WEAKER, sentence=sentence)


def _bad(what: str, sentence: str) -> Finding:
    return Finding(what=what, grade=Grade.BAD, sentence=sentence)


def _lines(findings: Sequence[Finding], columns: int) -> list[Line]:
    from lessor.cli.phrases import next_lines
    from lessor.cli.text import Piece, Tone, pad, shown, wrap

    marks = {
        Grade.GOOD: Piece("✓ ", Tone.GOOD),
        Grade.WEAKER: Piece("! ", Tone.WARN),
        Grade.BAD: Piece("✗ ", Tone.BAD),
    }
    lines: list[Line] = []
    for finding in findings:
        for n, text in enumerate(wrap(shown(finding.sentence), columns - 14)):
            mark = marks[finding.grade] if n == 0 else "  "
            lines.append([mark, Piece(pad("" if n else finding.what, 12), Tone.FAINT), text])
    bad = sum(finding.grade is Grade.BAD for finding in findings)
    weaker = sum(finding.grade is Grade.WEAKER for finding in findings)
    said = (
        f"{bad} to mend, {weaker} weaker here" if bad or weaker else "everything is as it should be"
    )
    return [*lines, [], [Piece(said, Tone.STRONG)], *next_lines(["lessor"])]
