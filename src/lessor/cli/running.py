"""What `run` and `do` share: a desk out of the invocation, and trust."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches

from lessor.cli.invocation import Invocation
from lessor.cli.notes import LineReporter
from lessor.cli.trusting import agree
from lessor.errors import DeniedError, InvalidError
from lessor.git.repository import resolve_commit
from lessor.git.slow import told_when_slow
from lessor.model.lease import HEARTBEAT_TERMS, terms_for
from lessor.project import Project, project_of
from lessor.project.manifest import MANIFEST
from lessor.runner.briefing import BRIEF, PROMPT
from lessor.runner.commands import AGENT_COMMANDS
from lessor.runner.desk import Desk, Plan, RunOptions
from lessor.runner.host import this_host
from lessor.runner.noting import NoteKind
from lessor.runner.progress import ProgressLimits
from lessor.runner.run import Run
from lessor.runner.stopping import Stopping

_WORDS = (BRIEF, PROMPT)


def run_here(invocation: Invocation, options: RunOptions) -> tuple[int, Run]:
    """Run with `options` in the repository around; the exit code, and what became of the tasks."""
    alone = options.task is not None
    reporter = LineReporter(
        invocation, workers=options.workers, alone=alone, own=options.task or ""
    )
    desk = desk_for(invocation, options, reporter)
    stopping = Stopping(
        on_drain=lambda: desk.note(
            NoteKind.DRAINING, "finishing what runs; once more stops it and keeps everything"
        )
    )
    run = Run(desk, stopping)
    told_when_slow.set(invocation.tell_of_runs_slow_git)
    with stopping.by_signals():
        code = run.run()
    return code, run


def desk_for(invocation: Invocation, options: RunOptions, reporter: LineReporter) -> Desk:
    """The run's surroundings."""
    checkout = invocation.standing.checkout_or_refuse()
    repository = invocation.repository
    if repository is None:
        raise InvalidError("Agents run in a repository.", next_step="Run this inside of one.")
    settings = invocation.settings
    plans: dict[str, Plan] = {}

    def plan_at(commit: str) -> Plan:
        if commit not in plans:
            found = project_of(checkout.repository, commit=commit, settings=settings)
            if not found.trusted:
                raise _untrusted(found)
            plans[commit] = Plan(
                check=found.check, setup=found.setup, bring=found.bring, push=found.push
            )
        return plans[commit]

    return Desk(
        lessor=invocation.lessor,
        repo=checkout.repository,
        cwd=checkout.cwd,
        repository=repository,
        store_url=settings.store_url,
        listen_dsn=settings.listen_dsn,
        state_dir=settings.state_dir,
        host=this_host(invocation.host_id),
        clock=invocation.clock,
        options=options,
        plan_at=plan_at,
        reporter=reporter,
    )


def landing_desk(invocation: Invocation) -> Desk:
    """The surroundings of checks that no agent's run is around."""
    reporter = LineReporter(invocation, workers=1, alone=True)
    return desk_for(invocation, RunOptions(command=("land",), agent="land", kind="land"), reporter)


def options_for(
    project: Project,
    *,
    command: Sequence[str],
    agent: str | None,
    workers: int | None,
    queue: str | None,
    base: str | None,
    task: str | None = None,
    anyway: bool = False,
    stay: bool = False,
) -> RunOptions:
    """What the command line and the project ask for together.

    Raises:
        InvalidError: no agent is named and none is installed.
    """
    # A command that somebody gives isn't the agent that happens to be on PATH.
    found_only = project.origins.get("agent") != MANIFEST
    named = None if command and found_only else project.agent
    kind = agent or named or ("agent" if command else None)
    if kind is None:
        raise InvalidError(
            "No agent was found on PATH (claude, codex, gemini).",
            next_step="Give its command at the end: -- CMD ARGS.",
        )
    known = tuple(command) or project.agents.get(kind) or AGENT_COMMANDS.get(kind)
    if known is None:
        raise InvalidError(
            f"How to start the agent {kind!r} isn't known.",
            next_step="Give its command after `--`, or define it in lessor.toml.",
        )
    return RunOptions(
        command=known,
        agent=kind,
        kind=kind,
        workers=workers or project.workers,
        queue=queue or project.queue,
        base=base or project.base,
        rounds=project.rounds,
        task=task,
        anyway=anyway,
        stay=stay,
        terms=terms_for(project.lease_ms) if project.lease_ms else HEARTBEAT_TERMS,
        limits=ProgressLimits(
            quiet_ms=min(project.quiet_ms, project.total_ms), total_ms=project.total_ms
        ),
    )


def from_here(invocation: Invocation, command: tuple[str, ...]) -> tuple[str, ...]:
    """The agent's command with a program that lies here by its whole path.

    The agent starts in a worktree, where a script that isn't committed doesn't exist.

    Raises:
        InvalidError: a word of it is nearly `{brief}` or `{prompt}`, and would be given on as it is.
    """
    for word in command:
        near = get_close_matches(word, _WORDS, n=1) if word[:1] == "{" else []
        if near and word not in _WORDS:
            raise InvalidError(
                f"{word!r} is nothing that is filled in.", next_step=f"Write {near[0]}."
            )
    if not command or "/" not in command[0] or "{" in command[0]:
        return command
    program = invocation.here / command[0]
    return (str(program), *command[1:]) if program.is_file() else command


def project_at_base(invocation: Invocation, base: str | None) -> Project:
    """The project at the commit that work will begin from: never the branch under judgement."""
    checkout = invocation.standing.checkout_or_refuse()
    return invocation.project(commit=resolve_commit(checkout.cwd, base or "HEAD"))


def settle_unlanded(invocation: Invocation, project: Project) -> None:
    """Take over what the repository's own file says about results that haven't landed."""
    registry, repository = invocation.lessor.registry, invocation.repository
    wish = project.unlanded
    if repository and wish and registry.repository(repository).unlanded is not wish:
        registry.set_unlanded(repository, wish)


def ensure_trusted(invocation: Invocation, project: Project) -> None:
    """Show what the repository's files would run and ask once; DeniedError where nobody agrees."""
    if not project.trusted:
        agree(
            invocation,
            project.commands,
            digest=project.digest,
            given=None,
            again="lessor trust",
        )


def _untrusted(project: Project) -> DeniedError:
    listed = "; ".join(f"{what}: {text}" for what, text, _ in project.commands)
    return DeniedError(
        f"This repository's files would run commands that you haven't agreed to: {listed}.",
        next_step="Look at them and agree once: lessor trust.",
        commands=[text for _, text, _ in project.commands],
    )
