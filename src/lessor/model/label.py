"""The label: one line that says whose work something is, written by the service alone.

`owner=agent-07;branch=feature/search-copy;env=preview-b;task=412;epoch=3`

It is data that travels (a column, a variable, a worktree's lock reason, a commit's trailer) and
no authority: whoever reads one checks it against the store.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from lessor.errors import LabelInvalidError
from lessor.model.branch import is_branch
from lessor.model.path import quoted

LABEL_CHARS = 1000
NONE = "none"
MAX_EPOCH = 2**63 - 1

_FIELDS = ("owner", "branch", "env", "task", "epoch")
_FORM = "owner=<agent>;branch=<type>/<description>;env=<environment>;task=<task>;epoch=<number>"
_VALUE = re.compile(r"[A-Za-z0-9._@:/-]+")
_EPOCH = re.compile(r"[1-9][0-9]{0,18}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Label:
    """The fields of a label; one that can't be written and read back can't be made.

    Owner, env and task consist of ASCII letters and digits and `. _ - @ : /`, so that no value
    can end a field, start another or break the line.

    Attributes:
        owner: the agent that holds the lease.
        branch: the task's branch, of whatever type, or "none" for a task without a repository.
        env: the environment, or "none".
        task: the task's id.
        epoch: the claim generation, from 1.

    Raises:
        LabelInvalidError: a value is empty or outside its alphabet, the epoch is below 1 or above
            63 bits, or the label would have more than 1000 characters.
    """

    owner: str
    branch: str
    env: str
    task: str
    epoch: int

    def __post_init__(self) -> None:
        for name, value in (("owner", self.owner), ("env", self.env), ("task", self.task)):
            if not _VALUE.fullmatch(value):
                raise _refusal(
                    f"A label's {name} can't be {quoted(value)}.",
                    "Use ASCII letters, digits and . _ - @ : / only.",
                )
        if self.branch != NONE and not is_branch(self.branch):
            raise _refusal(
                f"A label's branch can't be {quoted(self.branch)}.",
                "Use <type>/<description>, such as claude/14-billing-retry.",
            )
        if not 1 <= self.epoch <= MAX_EPOCH:
            raise _refusal("A label's epoch is out of range.", "Epochs count claims, from 1.")
        if len(format_label(self)) > LABEL_CHARS:
            raise _refusal(
                f"A label has at most {LABEL_CHARS} characters.", "Shorten the owner's name."
            )


def format_label(label: Label) -> str:
    """The label as text; `parse_label` gives the same label back."""
    return (
        f"owner={label.owner};branch={label.branch};env={label.env}"
        f";task={label.task};epoch={label.epoch:d}"
    )


def parse_label(text: str) -> Label:
    """The label that `format_label` wrote as `text`, and nothing that merely resembles one.

    Raises:
        LabelInvalidError: a field is missing, unknown, doubled, out of order or empty, a value is
            outside its alphabet, the epoch isn't a plain number, or the text is too long.
    """
    if len(text) > LABEL_CHARS:
        raise _refusal(f"A label has at most {LABEL_CHARS} characters.", f"Its form is {_FORM}.")
    fields = [field.partition("=") for field in text.split(";")]
    if tuple(name for name, _, _ in fields) != _FIELDS:
        raise _refusal(f"{quoted(text)} is no label.", f"Its form is {_FORM}.")
    owner, branch, env, task, epoch = (value for _, _, value in fields)
    if not _EPOCH.fullmatch(epoch):
        raise _refusal(
            f"A label's epoch can't be {quoted(epoch)}.",
            "Write it in digits, without a zero first.",
        )
    return Label(owner=owner, branch=branch, env=env, task=task, epoch=int(epoch))


def _refusal(message: str, next_step: str) -> LabelInvalidError:
    return LabelInvalidError(message, next_step=next_step)
