"""The demo's scripted agent: reads its brief, thinks, writes files, commits, says something.

Run as `python -m lessor.demo.agent` by the runner, like any agent. Each file that it has written is
noted in a ledger outside of git, so that the demo can show afterwards that no byte was lost.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from pathlib import Path

from lessor.clock import SystemClock
from lessor.demo.story import Script, Step, script_titled
from lessor.errors import LeaseLostError
from lessor.git.command import run_git

LEDGER = "LESSOR_DEMO_LEDGER"


def main() -> int:
    """Do what the script of this task says; the exit code."""
    brief = Path(os.environ["LESSOR_BRIEF"]).read_text(encoding="utf-8")
    title = brief.partition("\n")[0].partition(": ")[2]
    script = script_titled(title)
    if script.question:
        outbox = Path(os.environ["LESSOR_OUTBOX"])
        (outbox / "question").write_text(script.question, encoding="utf-8")
        _say(script.question)
        return 0
    number = min(int(os.environ["LESSOR_ROUND"]), len(script.rounds))
    for step in script.rounds[number - 1]:
        _take(step)
    _say(f"\n{script.said}")
    return _complete(script) if script.completes else 0


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def _take(step: Step) -> None:
    _say(f"thinking about {step.path}")
    SystemClock().wait(step.think_ms)
    path = Path.cwd() / step.path
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(step.text, encoding="utf-8")
    _note(step)
    if step.commit:
        run_git(["add", "--", step.path], cwd=Path.cwd())
        # Where git knows nobody, the runner says as whom.
        known = ("GIT_AUTHOR_", "GIT_COMMITTER_")
        who = {name: value for name, value in os.environ.items() if name.startswith(known)}
        run_git(["commit", "--quiet", "-m", step.commit], cwd=Path.cwd(), env=who)


def _note(step: Step) -> None:
    entry = {
        "path": step.path,
        "sha256": hashlib.sha256(step.text.encode()).hexdigest(),
        "text": step.text,
        "task": os.environ["LESSOR_NUMBER"],
        "epoch": os.environ["LESSOR_EPOCH"],
    }
    with Path(os.environ[LEDGER]).open("a", encoding="utf-8") as ledger:
        ledger.write(json.dumps(entry) + "\n")


def _complete(script: Script) -> int:
    """Complete the lease by itself, as an eager agent may: fine for a holder, refused for a zombie.

    The first epoch's agent is the one that was frozen; a later one leaves it to its runner.
    """
    if os.environ["LESSOR_EPOCH"] != "1":
        return 0
    from lessor.connect import connect  # noqa: PLC0415 - only this script needs the store
    from lessor.model.grant import Result  # noqa: PLC0415
    from lessor.runner.lease_file import read_holder  # noqa: PLC0415

    lessor = connect(os.environ["LESSOR_STORE"])
    try:
        lessor.leases.complete_one(
            read_holder(Path(os.environ["LESSOR_LEASE_FILE"])), Result(said=script.said)
        )
    except LeaseLostError as lost:
        _say(f"refused: {lost}")
        return lost.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
