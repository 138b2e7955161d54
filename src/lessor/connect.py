"""From a URL to Lessor over the store that it names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lessor.errors import InvalidError, StoreUnsupportedError

if TYPE_CHECKING:
    # Only named here: `import lessor` reads this module, and must cost a hook or a command nothing.
    from pathlib import Path

    from lessor.clock import Clock
    from lessor.model.retry import RetryPolicy
    from lessor.service.lessor import Lessor
    from lessor.store import Store


def connect(
    url: str,
    *,
    clock: Clock | None = None,
    policy: RetryPolicy | None = None,
    host_id: str = "",
    listen_dsn: str | None = None,
) -> Lessor:
    """Open the store at `url`, made and brought up to date where needed; its directory never is made.

    Args:
        url: `sqlite:///absolute/path`, a plain path, `:memory:`, or `postgresql://…`.
        host_id: this host's id; a SQLite store then ends the leases of its earlier boots.
        listen_dsn: a direct connection for LISTEN where `url` goes through a pooler.

    Raises:
        InvalidError: the URL is of no known kind.
        StoreError: one of its kinds, with what to do.
    """
    from lessor.service.lessor import Lessor  # noqa: PLC0415 - see above

    return Lessor(
        open_store(url, clock=clock, host_id=host_id, listen_dsn=listen_dsn),
        clock=clock,
        policy=policy,
    )


def open_store(
    url: str, *, clock: Clock | None = None, host_id: str = "", listen_dsn: str | None = None
) -> Store:
    """The store alone; drivers are imported only for the kind that is asked for."""
    scheme, mark, rest = url.partition("://")
    if not mark:
        scheme, rest = "sqlite", url
    if not _names_a_store(scheme, rest):
        raise InvalidError(
            f"{url!r} names no store.", next_step="Use sqlite:///path or postgresql://…"
        )
    if scheme == "sqlite":
        from lessor.store.sqlite import SqliteStore  # noqa: PLC0415 - only the driver that is needed

        return SqliteStore(str(sqlite_file(url) or ":memory:"), clock=clock, host_id=host_id)
    if scheme in {"postgresql", "postgres"}:
        try:
            from lessor.store.postgres import PostgresStore  # noqa: PLC0415 - an extra
        except ModuleNotFoundError:
            raise StoreUnsupportedError(
                "This Lessor was installed without PostgreSQL.",
                next_step='Install it: pip install "lessor[postgres]".',
            ) from None
        return PostgresStore(url, listen_dsn=listen_dsn, clock=clock)
    raise InvalidError(
        f"{scheme}:// is no kind of store.", next_step="Use sqlite:///path or postgresql://…"
    )


def sqlite_file(url: str) -> Path | None:
    """The absolute path of the file that `url` names; None for another kind and for `:memory:`."""
    from pathlib import Path  # noqa: PLC0415 - see above

    scheme, mark, rest = url.partition("://")
    rest = rest if mark else url
    if (mark and scheme != "sqlite") or rest == ":memory:":
        return None
    # Three slashes and four mean the same absolute path; SQLAlchemy's users write four.
    place = f"/{rest.lstrip('/')}" if rest.startswith("/") else rest
    return Path(place).expanduser().absolute()


def _names_a_store(scheme: str, rest: str) -> bool:
    """Whether what follows the scheme can be a place: a mistyped URL must not become a file's name."""
    if not rest or not rest.isprintable():
        return False  # control characters, and bytes that no text encodes
    return scheme != "sqlite" or not ("?" in rest or rest.startswith("sqlite:"))
