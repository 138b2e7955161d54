"""Starting an agent under its supervisor: what both are told."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from lessor.errors import AgentError, AgentMissingError
from lessor.git.identity import LESSOR, configured_identity, identity
from lessor.git.layout import layout_of
from lessor.runner.agent_store import agent_addresses
from lessor.runner.briefing import Errand, command_line, variables, write_brief
from lessor.runner.desk import Desk
from lessor.runner.environment import foreign_variables
from lessor.runner.keeping import StoreLifeline
from lessor.runner.spec import SupervisorSpec
from lessor.runner.supervised import Supervised

_LIFELINE = "lessor.runner.keeping:open_lifeline"


def launch(desk: Desk, errand: Errand, lifeline: StoreLifeline, *, sent_ms: int) -> Supervised:
    """Write the brief and start a supervisor, which starts the agent.

    Args:
        lifeline: the lease as it is known here; the supervisor renews it from now on.
        sent_ms: when the claim or renewal was sent that the lease lives by.

    Raises:
        AgentError: the supervisor can't be started. That the agent can't be is its event.
        OSError: the run's directory can't be written.
    """
    options = desk.options
    brief = write_brief(errand)
    lease_file = str(lifeline.path)
    spec = SupervisorSpec(
        argv=command_line(options.command, errand=errand, brief=brief),
        cwd=str(errand.worktree),
        log=str(errand.run_dir / "agent.log"),
        report=str(errand.run_dir / f"report-{errand.round}.jsonl"),
        lifeline=_LIFELINE,
        lifeline_argument={
            "store": desk.store_url,
            "listen": desk.listen_dsn,
            "lease_file": lease_file,
        },
        version=lifeline.holder.version,
        sent_ms=sent_ms,
        terms=options.terms,
        host_id=desk.host.id,
        limits=options.limits,
        patience=options.patience,
        env={
            **_identity(errand.worktree),
            **options.env,
            **variables(errand, lease_file=lifeline.path),
            **agent_addresses(desk, errand.grant.lease),
        },
        unset=foreign_variables(),
    )
    try:
        return Supervised.start(spec, clock=desk.clock)
    except FileExistsError as taken:  # the last round's agent can write there, too
        raise AgentError(
            f"{taken.filename} is in the way of the supervisor.",
            next_step="Look what the agent left there, and move it away.",
            path=str(taken.filename),
        ) from taken


def _identity(worktree: Path) -> Mapping[str, str]:
    """Whose commits the agent makes where git knows nobody: else each `git commit` of it would fail."""
    return {} if configured_identity(layout_of(worktree)) else identity(LESSOR)


def refuse_missing_program(command: Sequence[str], worktree: Path) -> None:
    """Refuse an agent whose program would lie in the worktree and doesn't.

    Raises:
        AgentMissingError: most likely it isn't committed, so that no worktree has it.
    """
    program = command[0]
    if "/" in program and "{" not in program and not (worktree / program).exists():
        raise AgentMissingError(
            f"{program} isn't there.",
            next_step="Commit it, so that every worktree has it, or give its whole path.",
            program=program,
        )
