"""The repository on this host that a command about workspaces works on, and its workspaces."""

from __future__ import annotations

from lessor.cli.finding import find_task
from lessor.cli.invocation import Invocation
from lessor.errors import InvalidError, NotFoundError
from lessor.model.task import Task
from lessor.model.workspace import Workspace
from lessor.runner.host import this_host
from lessor.runner.site import Site


def site_here(invocation: Invocation) -> Site:
    """The site of the repository around, or of the one that --repo names.

    Raises:
        NotARepositoryError: no clone of it is known on this host.
        InvalidError: the command is about tasks without a repository.
    """
    checkout = invocation.standing.checkout_or_refuse()
    repository = invocation.repository
    if repository is None:
        raise InvalidError(
            "Workspaces belong to a repository.", next_step="Run this inside of one."
        )
    return Site(
        lessor=invocation.lessor,
        repo=checkout.repository,
        repository=repository,
        state_dir=invocation.settings.state_dir,
        host=this_host(invocation.host_id),
    )


def workspaces_of(invocation: Invocation, site: Site, name: str) -> tuple[Task, list[Workspace]]:
    """A task as it is called, and its workspaces on this host, oldest first.

    Raises:
        NotFoundError: it has none here.
    """
    task = find_task(invocation, name)
    everywhere = site.lessor.workspaces.of_task(task.id)
    found = [workspace for workspace in everywhere if workspace.host_id == site.host.id]
    if not found:
        elsewhere = " on this machine" if everywhere else ""
        raise NotFoundError(
            f"#{task.number} has no workspace{elsewhere}.",
            next_step="List them: lessor workspace list.",
            number=task.number,
        )
    return task, found
