"""One name for one remote, however its URL is written, and its place on this machine."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import urlsplit

from lessor.git.command import run_git

_DEFAULT_PORTS = {"ssh": 22, "https": 443, "http": 80, "git": 9418}
_SYNONYMS = {"git+ssh": "ssh", "ssh+git": "ssh", "git+https": "https", "git+http": "http"}

# `host:path` as scp writes it. Git reads it so only when no slash stands before the colon; a host
# of one letter is a drive.
_SCP = re.compile(r"(?:[^/@\s]+@)?(\[[0-9A-Fa-f:.]+\]|[^/:@\s]{2,}):(?!:)(.+)", re.DOTALL)


def canonical_remote(url: str) -> str | None:
    """`host/path` for a remote's URL, the same for each way to write it; None for a local path.

    `git@h:a/b.git`, `https://h/a/b` and `ssh://git@h:22/a/b.git` are one repository. Credentials
    are dropped, the host is lower-cased and the path is not: some hosts tell paths by case. A port
    that isn't the scheme's own stays, since another service may answer there.
    """
    text = url.strip()
    if "://" in text:
        host, path = _from_url(text)
    else:
        match = _SCP.fullmatch(text)
        host, path = (match[1], match[2]) if match else ("", "")
    path = path.strip("/").removesuffix(".git").rstrip("/")
    return f"{host.lower()}/{path}" if host and path else None


def place_of(cwd: Path, remote: str) -> Path | None:
    """The directory of a remote that is on this machine, as a push from `cwd` reaches it; else None.

    Raises:
        GitError: git can't be asked.
    """
    asked = run_git(["remote", "get-url", "--push", remote], cwd=cwd, check=False)
    url = asked.text if asked.code == 0 else remote
    place = cwd / url.removeprefix("file://")
    try:
        return place.resolve() if place.is_dir() else None
    except OSError:  # a URL may be longer than any name of a file
        return None


def _from_url(text: str) -> tuple[str, str]:
    try:
        parts = urlsplit(text)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        return "", ""
    scheme = _SYNONYMS.get(parts.scheme.lower(), parts.scheme.lower())
    if scheme not in _DEFAULT_PORTS:
        return "", ""
    host = f"[{host}]" if ":" in host else host
    if port is not None and port != _DEFAULT_PORTS[scheme]:
        host = f"{host}:{port}"
    return host, parts.path
