"""Who a commit says made it."""

from __future__ import annotations

from collections.abc import Mapping

from lessor.git.layout import Layout

LESSOR = ("Lessor", "lessor@localhost")


def identity(
    author: tuple[str, str], *, committer: tuple[str, str] | None = None
) -> Mapping[str, str]:
    """Git's variables for `author` as (name, e-mail); the committer is the author unless given."""
    name, email = author
    by_name, by_email = committer or author
    return {
        "GIT_AUTHOR_NAME": name,
        "GIT_AUTHOR_EMAIL": email,
        "GIT_COMMITTER_NAME": by_name,
        "GIT_COMMITTER_EMAIL": by_email,
    }


def configured_identity(layout: Layout) -> tuple[str, str] | None:
    """The name and e-mail that this worktree's configuration gives; None when one is missing.

    Git would make one up from the host's name, and with `user.useConfigOnly` refuse.
    """
    values = [
        layout.git(["config", "--get", f"user.{key}"], check=False).text
        for key in ("name", "email")
    ]
    return (values[0], values[1]) if all(values) else None
