"""A person at a terminal: the real program as a process of its own, in a repository of its own."""

from __future__ import annotations

import json
import os
import pty
import select
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lessor import connect
from lessor.service.lessor import Lessor

REMOTE = "git@github.com:acme/shop.git"
KEY = "github.com/acme/shop"
MANIFEST = 'check = "true"\n'


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """What one command printed, and how it ended."""

    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[str]:
        return self.out.splitlines()

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def problem(self) -> dict[str, Any]:
        return json.loads(self.err)


@dataclass(frozen=True, slots=True, kw_only=True)
class Person:
    """Runs `lessor` in a directory, with a home and a state directory of their own."""

    home: Path
    cwd: Path
    env: Mapping[str, str] = field(default_factory=dict)

    @property
    def state(self) -> Path:
        return self.home / ".local" / "state" / "lessor"

    @property
    def store(self) -> Path:
        return self.state / "lessor.db"

    def command(self, *args: str | os.PathLike[str]) -> list[str]:
        return [sys.executable, "-m", "lessor", *map(os.fspath, args)]

    def environment(self) -> dict[str, str]:
        kept = {n: v for n, v in os.environ.items() if not n.startswith(("GIT_", "LESSOR_"))}
        return kept | {
            "HOME": str(self.home),
            "PATH": os.environ["PATH"],
            "USER": "dana",
            "LOGNAME": "dana",
            "COLUMNS": "80",
            "GIT_CONFIG_GLOBAL": "/dev/null",
            "GIT_CONFIG_SYSTEM": "/dev/null",
            "PYTHONWARNINGS": "error",
            **self.env,
        }

    def run(
        self, *args: str | os.PathLike[str], stdin: bytes | str = b"", cwd: Path | None = None
    ) -> Said:
        given = stdin.encode() if isinstance(stdin, str) else stdin
        done = subprocess.run(
            self.command(*args),
            cwd=cwd or self.cwd,
            env=self.environment(),
            input=given,
            capture_output=True,
            timeout=120,
            check=False,
        )
        said = Said(
            code=done.returncode,
            out=done.stdout.decode("utf-8", "surrogateescape"),
            err=done.stderr.decode("utf-8", "surrogateescape"),
        )
        assert "Traceback" not in said.err, said.err
        return said

    def ok(self, *args: str | os.PathLike[str], **how: Any) -> Said:
        said = self.run(*args, **how)
        assert said.code == 0, f"{args}: {said.code}\n{said.out}\n{said.err}"
        return said

    def answers(self, *args: str, asked: bytes, answer: str) -> int:
        """Answer the question that a command puts on a terminal; its exit code.

        Args:
            asked: what stands there before the question.
        """
        master, slave = pty.openpty()
        asking = subprocess.Popen(
            self.command(*args),
            cwd=self.cwd,
            env=self.environment() | {"TERM": "dumb"},
            stdin=slave,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
        )
        os.close(slave)
        seen = b""
        while b"[y/N]" not in seen:
            assert select.select([master], [], [], 60)[0], seen
            seen += os.read(master, 65_536)
        assert asked in seen
        os.write(master, f"{answer}\n".encode())
        code = asking.wait(timeout=60)
        os.close(master)
        return code

    def add(self, title: str, *args: str) -> dict[str, Any]:
        return self.ok("add", title, *args, "-o", "json").json

    def claim(self, *args: str) -> dict[str, Any]:
        return self.ok("claim", *args, "-o", "json").json[0]

    def open(self) -> Lessor:
        """The same store, opened by this process."""
        self.state.mkdir(parents=True, exist_ok=True)
        return connect(f"sqlite://{self.store}")


def git(cwd: Path, *args: str) -> str:
    done = subprocess.run(
        ["git", "-c", "user.name=Agent", "-c", "user.email=agent@example.org", *args],
        cwd=cwd,
        capture_output=True,
        check=True,
    )
    return os.fsdecode(done.stdout).rstrip("\n")


def names(records: Sequence[Mapping[str, Any]], key: str = "title") -> list[Any]:
    return [record[key] for record in records]
