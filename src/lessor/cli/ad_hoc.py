"""Tasks that only stand for paths which were acquired or held: they end with their lease."""

from __future__ import annotations

from lessor.cli.invocation import Invocation
from lessor.errors import TransitionRefusedError
from lessor.model.lifecycle import TaskState
from lessor.service.acquiring import QUEUE


def end_lapsed(invocation: Invocation, *, repository: str | None) -> None:
    """Cancel the ones whose lease has run out: nobody asked for that work, so nobody may claim it."""
    tasks = invocation.lessor.tasks
    over = [
        task.id
        for task in tasks.open_tasks(repository=repository)
        if task.queue == QUEUE and task.state is TaskState.QUEUED
    ]
    for task in over:
        try:
            tasks.cancel([task], actor=invocation.person, reason="its lease ran out")
        except TransitionRefusedError:  # somebody acquires it in this very moment, or has ended it
            continue
