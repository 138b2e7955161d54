"""How the drills are shown: each step as it comes, and what they came to."""

from __future__ import annotations

from dataclasses import asdict

from lessor.cli.invocation import Invocation
from lessor.cli.output import Record, write_lines, write_record
from lessor.cli.phrases import next_lines
from lessor.cli.text import Line, Piece, Tone, shown, width, wrap
from lessor.demo.drill import Drill
from lessor.demo.drilled import Step
from lessor.demo.remote_drill import RemoteDrill, Verdict
from lessor.errors import InvalidError, NotARepositoryError

_MARKS = {
    True: Piece(" ✓ ", Tone.GOOD),
    False: Piece(" ✗ ", Tone.BAD),
    None: Piece(" · ", Tone.FAINT),
}


class _Steps:
    """Steps, written as they come for people and kept for programs."""

    def __init__(self, invocation: Invocation) -> None:
        self._invocation = invocation
        self._kept: list[Step] = []

    def begin(self, where: str) -> None:
        if self._invocation.for_people:
            write_lines([[Piece("Lessor drill", Tone.STRONG), f" {where}"], []])

    def say(self, step: Step) -> None:
        self._kept.append(step)
        if self._invocation.for_people:
            detail = shown(step.detail)
            fits = width(f"   {step.text}   {detail}") <= self._invocation.columns
            lines: list[Line] = [[_MARKS[step.passed], step.text]]
            if detail and fits:
                lines = [[*lines[0], Piece(f"   {detail}", Tone.FAINT)]]
            elif detail:
                told = wrap(detail, self._invocation.columns - 5)
                lines += [[Piece(f"     {text}", Tone.FAINT)] for text in told]
            write_lines(lines)

    def end(self, verdict: str, *, passed: bool, more: list[Line], record: Record) -> int:
        if self._invocation.for_people:
            tone = Tone.GOOD if passed else Tone.BAD
            write_lines([[], [Piece(verdict, tone)], *more])
        else:
            told = {"passed": passed, "verdict": verdict, **record}
            steps = [asdict(step) for step in self._kept]
            write_record({**told, "steps": steps}, self._invocation.output)
        return 0 if passed else 1


def drill_at_store(invocation: Invocation) -> int:
    """The drill on the store that is configured."""
    steps, settings = _Steps(invocation), invocation.settings
    steps.begin(f"on {settings.store_origin}")
    passed = Drill(
        invocation.lessor, store_url=settings.store_url, clock=invocation.clock, say=steps.say
    ).run()
    verdict = (
        "The paused worker could change nothing."
        if passed
        else "The paused worker got through: don't rely on this store."
    )
    return steps.end(verdict, passed=passed, more=[], record={})


def drill_at_remote(invocation: Invocation, named: str) -> int:
    """The drill at a remote; empty means the one that the repository names."""
    from lessor.cli.remotes import named_remote, usual_remote

    checkout = invocation.standing.checkout_or_refuse()
    repository = invocation.repository
    if repository is None:
        raise NotARepositoryError("Only a repository has a remote.", next_step="Run this in one.")
    remote = named_remote(checkout, named) if named else usual_remote(invocation, checkout)
    _refuse_another(invocation, repository, remote)
    steps = _Steps(invocation)
    steps.begin(f"at {remote}, on {invocation.settings.store_origin}")
    verdict = RemoteDrill(
        invocation.lessor,
        store_url=invocation.settings.store_url,
        clock=invocation.clock,
        say=steps.say,
        repository=repository,
        clone=checkout.repository,
        remote=remote,
    ).run()
    record = {
        "remote": remote,
        "refused": verdict.refused,
        "fenceReferences": verdict.protection.fence,
        "serverHooks": verdict.protection.hooks,
        "next": verdict.next_step or None,
    }
    words = _words(verdict, remote)
    return steps.end(words, passed=verdict.passed, more=_protects(verdict), record=record)


def _refuse_another(invocation: Invocation, repository: str, remote: str) -> None:
    fenced_at = invocation.lessor.registry.repository(repository).fence_remote
    if fenced_at not in {None, remote}:
        raise InvalidError(
            f"The repository is fenced at {fenced_at}: nothing compares a push to {remote}.",
            next_step=f"Try the one that it is fenced at: lessor drill --remote {fenced_at}.",
            remote=remote,
            fence_remote=fenced_at,
        )


def _words(verdict: Verdict, remote: str) -> str:
    if verdict.refused is None:
        return f"It didn't come to a late push: nothing is shown about {remote}."
    if not verdict.refused:
        return f"{remote} takes a late push: nothing there compares it with a lease."
    if not verdict.passed:
        return f"{remote} refused the late push, and a step failed."
    return f"{remote} refused every late push, and holds the newer result."


def _protects(verdict: Verdict) -> list[Line]:
    return [
        [],
        [Piece(" fence references  ", Tone.FAINT), shown(verdict.protection.fence)],
        [Piece(" server hooks      ", Tone.FAINT), shown(verdict.protection.hooks)],
        *(next_lines([verdict.next_step]) if verdict.next_step else []),
    ]
