"""The agents on this machine with their versions, remembered as long as their programs stay."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

from lessor.cli.invocation import Invocation
from lessor.errors import AgentError
from lessor.project.agents import installed_agents

PATIENCE_MS = 5_000
_VERSION = re.compile(r"\d+(?:\.\d+)+[\w.+-]*")


def agent_versions(invocation: Invocation) -> dict[str, str | None]:
    """Each known agent's version; empty where its program doesn't say, None where it isn't there."""
    kept_in = invocation.settings.state_dir / "agents.json"
    known = _read(kept_in)
    found: dict[str, str | None] = {}
    fresh: dict[str, str] = {}
    for agent in installed_agents():
        if agent.path is None:
            found[agent.name] = None
            continue
        key = _mark(agent.path)
        if key not in known:
            known[key] = _ask(invocation, agent.path)
        found[agent.name] = fresh[key] = known[key]
    _write(kept_in, fresh)
    return found


def _mark(path: str) -> str:
    # An upgrade replaces what the path leads to: another size or another time.
    real = os.path.realpath(path)
    status = Path(real).stat()
    return f"{real}:{status.st_mtime_ns}:{status.st_size}"


def _ask(invocation: Invocation, path: str) -> str:
    from lessor.runner.process import run_command

    log = invocation.settings.state_dir / f"version-{os.getpid()}.log"
    try:
        result = run_command(
            [path, "--version"],
            cwd="/",
            env=os.environ,
            log=str(log),
            timeout_ms=PATIENCE_MS,
            clock=invocation.clock,
        )
    except AgentError:
        return ""
    finally:
        log.unlink(missing_ok=True)
    version = _VERSION.search(result.tail)
    return version[0] if version and result.code == 0 else ""


def _read(path: Path) -> dict[str, str]:
    try:
        kept = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return kept if isinstance(kept, dict) else {}


def _write(path: Path, versions: dict[str, str]) -> None:
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        draft.write_text(json.dumps(versions), encoding="utf-8")
        draft.replace(path)
    except OSError:  # only a memory: the next page asks again
        draft.unlink(missing_ok=True)
