"""What a task was asked for: at first, and what people told it afterwards.

An answer and the words of a retry are appended to the prompt; its history says which part is whose.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lessor.cli.phrases import first_paragraph
from lessor.model.task import Task
from lessor.service.reading import HistoryEntry


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What a person told a task after it was added.

    Attributes:
        question: what it had asked, in its first paragraph; empty where it had asked nothing.
        who: the person's name; empty where nobody said it.
    """

    question: str
    who: str
    text: str


def split_prompt(task: Task, history: Sequence[HistoryEntry]) -> tuple[str, list[Told]]:
    """The prompt as it was at first, and what was appended to it since, oldest first."""
    found: list[Told] = []
    question = ""
    for event in history:
        if event.kind == "asked":
            question = first_paragraph(str(event.facts.get("question") or ""))
        text = str(event.facts.get("reason") or "")
        if event.kind in {"answered", "requeued"} and text:
            asked = question if event.kind == "answered" else ""
            found.append(Told(question=asked, who=str(event.facts.get("actor") or ""), text=text))
    prompt, told = task.prompt, list[Told]()
    for one in reversed(found):
        # A reason that was only kept with the event is no part of what the agent was told.
        rest = prompt.removesuffix(f"\n\n{one.text}")
        if rest != prompt:
            prompt = rest
            told.insert(0, one)
    return prompt.strip(), told
