"""Whether a live lease may have these paths: covered, taken now, or whose they are.

The one rule of every gate. A path outside of the scope takes its natural scope, else itself alone,
where nobody else holds it or took it since the lease began; a confined task takes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple

from lessor.errors import InvalidError, LessorError, NotFoundError, ScopeInvalidError
from lessor.model.lease import Holder, is_live
from lessor.model.path import PathRules, path_key
from lessor.model.scope import Mode, Scope, covers, natural_scope, parse_scope
from lessor.service.blockers import stored_scope
from lessor.service.naming import Naming
from lessor.service.proof import guard, held
from lessor.service.refusing import lease_lost
from lessor.service.rows import pack
from lessor.service.wording import check_several
from lessor.store import Store

MOST_PATHS = 1_000_000


class Admission(NamedTuple):
    """What came of asking; where anything is refused, nothing was taken.

    Attributes:
        taken: the scopes that the lease was widened over.
        refused: by path, the refusal that says why: who holds it, or which rule forbids it.
    """

    taken: tuple[str, ...]
    refused: Mapping[str, LessorError]


def no_packages() -> Collection[str]:
    """For a repository that has none."""
    return ()


def admit(
    store: Store,
    naming: Naming,
    holder: Holder,
    paths: Sequence[str],
    *,
    packages: Callable[[], Collection[str]] = no_packages,
    verb: str = "committed",
) -> Admission:
    """Admit `paths` to the holder's lease, all or none; writes only where the lease is widened.

    Args:
        paths: as git reports them; none asks for the lease alone.
        packages: the repository's packages, looked up only where a path lies outside.
        verb: what is tried, for the refusal.

    Raises:
        LeaseLostError: the caller isn't the live holder.
        InvalidError, NotFoundError: it is no holder, or none of this store's.
    """
    named = check_several(paths, "paths", most=MOST_PATHS)
    if not all(isinstance(path, str) for path in named):
        raise InvalidError("A path has to be a text.", next_step="Give paths as git reports them.")
    lease_id = _refuse_lost(store, naming, holder, verb=verb)
    if not named:
        return Admission((), {})
    repository = int(store.read("lease", lease_id=lease_id)[0][2])
    rules = _rules(store, repository)
    outside, refused = _outside(store, lease_id, named, rules)
    if refused or not outside:
        return Admission((), refused)

    # Not needed, and not imported, by a commit inside its scope, which is nearly every one.
    from lessor.service.reading import read_tasks  # noqa: PLC0415
    from lessor.service.scopes import confined, widen_all  # noqa: PLC0415

    task = read_tasks(store, naming, [naming.task_row(holder.task)])[0]
    if task.strict:
        return Admission((), {path: confined(task, [path]) for path in outside})
    wanted = _natural(outside, packages(), rules)
    return held(
        store,
        naming,
        holder,
        lambda tx: Admission(*widen_all(tx, naming, holder, wanted, repository=repository)),
        verb="widened",
    )


def uncovered(
    store: Store, naming: Naming, lease: str, paths: Sequence[str]
) -> tuple[list[str], dict[str, LessorError]]:
    """The paths that a lease doesn't cover for writing, and those that no tree may hold; reads only.

    Raises:
        NotFoundError: there is no such lease, or it has no repository.
    """
    row = naming.lease_row(lease)
    found = store.read("lease", lease_id=row)
    rules = _rules(store, int(found[0][2]) if found else 0)
    return _outside(store, row, paths, rules)


def _refuse_lost(store: Store, naming: Naming, holder: Holder, *, verb: str) -> int:
    """The live lease's row."""
    rows = store.read("holder_lease", **guard(naming, holder))
    if rows:
        lease_id, _, expires_ms, _, ended_ms, _, _, now = rows[0]
        if is_live(now=now, expires_ms=expires_ms, ended_ms=ended_ms):
            return int(lease_id)
    raise lease_lost(
        store,
        naming,
        holder,
        verb=verb,
        mine=bool(rows),
        end_reason=rows[0][5] if rows else None,
        expired=bool(rows),
    )


def _rules(store: Store, repository: int) -> PathRules:
    found = store.read("repository_by_id", repository_id=repository)
    if not found or not repository:
        raise NotFoundError(
            "The task has no repository, so its lease has no paths.", next_step="Name no paths."
        )
    return PathRules(fold_case=bool(found[0][3]), normalize=bool(found[0][4]))


def _outside(
    store: Store, lease_id: int, paths: Sequence[str], rules: PathRules
) -> tuple[list[str], dict[str, LessorError]]:
    """The paths that the lease doesn't cover for writing, and those that no tree may hold."""
    plain: set[str] = set()
    globs: list[Scope] = []
    for _, _, _, key, mode, pattern, _ in store.read("lease_scopes", leases=pack([lease_id])):
        if Mode(mode) is not Mode.WRITE:
            continue
        if pattern is None:
            plain.add(key)
        else:
            globs.append(stored_scope(key, mode, pattern))
    outside: list[str] = []
    refused: dict[str, LessorError] = {}
    for path in paths:
        try:
            key = path_key(path, rules=rules)
        except ScopeInvalidError as invalid:
            refused[path] = invalid
            continue
        # A literal scope covers all below it, so that it is one of the key's own beginnings.
        ends = (place + 1 for place, letter in enumerate(key) if letter == "/")
        if not any(key[:end] in plain for end in ends) and not any(
            covers(scope, path, rules=rules) for scope in globs
        ):
            outside.append(path)
    return outside, refused


def _natural(
    outside: Sequence[str], packages: Collection[str], rules: PathRules
) -> dict[str, tuple[Scope, ...]]:
    """For each path what is asked for, the best first: its natural scope, and the file alone."""
    wanted: dict[str, tuple[Scope, ...]] = {}
    for path in outside:
        asked = [parse_scope(natural_scope(path, packages=packages), rules=rules)]
        with suppress(ScopeInvalidError):  # a name that no scope can be written with
            asked.append(parse_scope(f"path:{path}", rules=rules))
        wanted[path] = tuple(asked)
    return wanted
