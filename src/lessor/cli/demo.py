"""`demo` and `drill`: Lessor shown, and tried on one's own store."""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

import click

from lessor.cli.invocation import Invocation
from lessor.cli.options import command, pass_invocation
from lessor.cli.output import write_lines
from lessor.cli.text import Line, Piece, Tone


@command("demo")
@click.option(
    "--in",
    "folder",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Where to make it; else a new temporary directory.",
)
@pass_invocation
def demo(invocation: Invocation, *, folder: Path | None) -> int:
    """Watch three scripted agents on a real repository; one is killed, one is frozen.

    No model, no network, under a minute. Exits with 1 if a byte was lost, a zombie got through, or a
    task ended otherwise than it should.
    """
    from lessor.demo.play import play
    from lessor.demo.telling import Teller

    place = folder.absolute() if folder else Path(tempfile.mkdtemp(prefix="lessor-demo-")) / "demo"
    write_lines(
        [
            [
                Piece("Lessor demo", Tone.STRONG),
                " - scripted agents, a real git repository, no model, no network",
            ],
            [],
        ]
    )
    ended = play(place, clock=invocation.clock, teller=Teller(sys.stdout, invocation.clock))
    proof = ended.proof
    lost = f"{len(proof.missing)} files lost" if proof.missing else "0 bytes lost"
    tone = Tone.GOOD if proof.holds else Tone.BAD
    asked, verified = ended.counts.get("needs_person", 0), ended.counts.get("succeeded", 0)
    others = sum(ended.counts.values()) - asked - verified
    lines: list[Line] = [
        [],
        [
            Piece(" result    ", Tone.FAINT),
            f"{verified} verified · {asked} needs you · {ended.took_ms // 1000} s",
            Piece(f" · {others} ended otherwise than they should", Tone.BAD) if others else "",
        ],
        [
            Piece(" proof     ", Tone.FAINT),
            Piece(
                f"{lost} ({proof.compared} files compared) · {_count(len(proof.refused), 'stale write')} refused",
                tone,
            ),
        ],
    ]
    lines += [[Piece(" refused   ", Tone.FAINT), line] for line in proof.refused]
    lines += [[Piece(" lost      ", Tone.BAD), line] for line in proof.missing]
    lines += _look_further(ended.repo, ended.store)
    write_lines(lines)
    return 0 if proof.holds and not others else 1


def _look_further(repo: Path, store: Path) -> list[Line]:
    """The same facts, by tools that don't know Lessor."""
    sql = "select n, kind, epoch, facts from event where task_id = 3"
    return [
        [],
        [Piece(" by git    ", Tone.FAINT), f"git -C {repo} log --oneline --graph --all"],
        [Piece("           ", Tone.FAINT), f"git -C {repo} for-each-ref refs/lessor/salvage"],
        [Piece(" by SQL    ", Tone.FAINT), f'sqlite3 "file:{store}?mode=ro" "{sql}"'],
        [
            Piece(" look      ", Tone.FAINT),
            f"{_lessor()} show 3 --repo {repo} --store sqlite:///{store}",
        ],
        [Piece(" yours     ", Tone.FAINT), f"cd your/repo && {_lessor()}"],
    ]


def _lessor() -> str:
    """How this very program is called from a shell."""
    return "lessor" if shutil.which("lessor") else str(Path(sys.argv[0]).absolute())


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


@command("drill")
@click.option(
    "--remote",
    is_flag=False,
    flag_value="",
    metavar="[NAME]",
    help="At a remote: it has to refuse a late push. Without NAME, the fenced one, else origin.",
)
@pass_invocation
def drill(invocation: Invocation, *, remote: str | None) -> int:
    """Pause a worker, let another recover its task, resume the first: it must not get through.

    Runs on the store that is configured, in a queue of its own. With --remote the worker is paused
    in the middle of a push to your own remote, on a scratch branch that is taken away again; your
    branches and worktrees aren't touched. Exits with 1 if any step fails.
    """
    from lessor.cli.drills import drill_at_remote, drill_at_store

    return drill_at_store(invocation) if remote is None else drill_at_remote(invocation, remote)
