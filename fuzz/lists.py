"""Lists of tasks that `lessor import` reads, and what their lines wait for."""

from __future__ import annotations

from fuzz.promise import asked, unicode
from lessor.model.task import NewTask
from lessor.project.checklist import read_checklist
from lessor.project.jsonlines import read_jsonlines
from lessor.project.wish import Wish, resolve_waits
from lessor.service.checking import check_tasks


def one(data: bytes) -> None:
    """One input."""
    said = unicode(data)
    for read in (read_checklist, read_jsonlines):
        wishes = asked(lambda read=read: read(said, file="plan"))
        if wishes is None:
            continue
        assert wishes
        lines = said.count("\n") + 1
        assert all(1 <= wish.line <= lines and wish.title.strip() for wish in wishes)
        waits = asked(lambda wishes=wishes: resolve_waits(wishes, file="plan"))
        for wait in waits or []:
            assert all(0 <= place < len(wishes) for place in wait.places)
        for wish in wishes[:16]:
            asked(lambda wish=wish: check_tasks([_task(wish)]))


def _task(wish: Wish) -> NewTask:
    return NewTask(
        title=wish.title,
        prompt=wish.prompt,
        scopes=wish.scopes,
        reads=wish.reads,
        strict=wish.strict,
        priority=wish.priority,
        unique_key=wish.key("plan"),
        check=wish.check,
        agent=wish.agent,
        limit_key=wish.limit_key,
    )
