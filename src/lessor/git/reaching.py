"""How git of Lessor's reaches a remote: as this machine does, where a push goes, and without a question."""

from __future__ import annotations

import os
from pathlib import Path

from lessor.errors import GitError
from lessor.git.command import run_git

# How this machine reaches hosts, and which it may reach, is a fact like HOME, not part of somebody's
# session (git(1), git-config(1) under `http`).
_WAY_TO_HOSTS = (
    *("GIT_SSH", "GIT_SSH_COMMAND", "GIT_SSH_VARIANT", "GIT_ASKPASS", "GIT_PROXY_COMMAND"),
    *("GIT_ALLOW_PROTOCOL", "GIT_PROTOCOL_FROM_USER"),
    *("GIT_SSL_CAINFO", "GIT_SSL_CAPATH", "GIT_SSL_CERT", "GIT_SSL_KEY", "GIT_SSL_NO_VERIFY"),
    *("GIT_PROXY_SSL_CAINFO", "GIT_PROXY_SSL_CERT", "GIT_PROXY_SSL_KEY"),
    "GIT_HTTP_PROXY_AUTHMETHOD",
)
_PLACES = r"^(remote\..*\.(push)?url|url\..*)$"
_LEADS_ELSEWHERE = r"^(remote\..*\.pushurl|url\..*\.pushinsteadof)$"


def way_to_hosts() -> dict[str, str]:
    """How hosts are reached, without ever asking a question on the terminal.

    Git runs in a process group of its own: an ssh that asked for a passphrase would only be stopped.
    """
    kept = {name: os.environ[name] for name in _WAY_TO_HOSTS if name in os.environ}
    askpass = os.environ.get("SSH_ASKPASS") or "false"
    return {**kept, "SSH_ASKPASS": askpass, "SSH_ASKPASS_REQUIRE": "force"}


def push_places(cwd: Path, remote: str) -> list[str]:
    """The URLs that a push to a remote's name goes to; none where it is no name.

    Raises:
        GitError: one holds a line end, so that nobody can tell where it ends.
    """
    asked = ["remote", "get-url", "--push", "--all", "--", remote]
    places = run_git(asked, cwd=cwd, check=False).lines
    if len(places) > 1:  # git tells them by the line
        _refuse_line_ends(cwd, remote)
    return places


def pushed_to(cwd: Path, remote: str) -> str:
    """By what to ask the place that a push to `remote` goes to: `pushurl` may lead elsewhere.

    Raises:
        GitError: as `push_places`.
    """
    elsewhere = run_git(["config", "--get-regexp", _LEADS_ELSEWHERE], cwd=cwd, check=False)
    places = push_places(cwd, remote) if elsewhere.out else []
    return places[0] if places else remote


def _refuse_line_ends(cwd: Path, remote: str) -> None:
    settings = run_git(["config", "-z", "--get-regexp", _PLACES], cwd=cwd, check=False).records
    # A record is the key, a line end, and the value.
    if any("\n" in setting.partition("\n")[2] for setting in settings):
        raise GitError(
            f"A URL in git's configuration of {remote} holds a line end.",
            next_step=f"Give it one without: git remote set-url {remote} URL.",
            remote=remote,
        )
