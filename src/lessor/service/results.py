"""A run's result as the text that is kept with its lease, and back."""

from __future__ import annotations

from lessor.errors import InvalidError
from lessor.model.grant import Result
from lessor.model.task import Stage
from lessor.service.rows import pack_facts, unpack
from lessor.service.wording import LONGEST_TEXT, check_text

MOST_FACTS = 100


def pack_result(result: Result) -> str:
    """`result` as text, checked.

    Raises:
        InvalidError: a text is too long or can't be kept, or there are more than a hundred facts.
    """
    for name in ("said", "base", "commit", "no_change", "error"):
        value = getattr(result, name)
        if value is not None:
            check_text(value, name.replace("_", " "), longest=LONGEST_TEXT)
    if len(result.facts) > MOST_FACTS:
        raise InvalidError(
            f"A result can have {MOST_FACTS} facts, not {len(result.facts)}.",
            next_step="Leave some out.",
        )
    for key, value in result.facts.items():
        check_text(key, "fact's name", longest=LONGEST_TEXT, empty=False)
        if isinstance(value, str):
            check_text(value, f"fact {key}", longest=LONGEST_TEXT)
        elif value is not None and not isinstance(value, int | float):
            raise InvalidError(
                f"The fact {key!r} is neither text nor a number.", next_step="Give one of them."
            )
    return pack_facts(
        stage=Stage(result.stage),
        said=result.said,
        base=result.base,
        commit=result.commit,
        no_change=result.no_change,
        error=result.error,
        facts=dict(sorted(result.facts.items())),
    )


def read_result(text: str) -> Result:
    """What `pack_result` made."""
    kept = unpack(text)
    return Result(
        stage=Stage(kept["stage"]),
        said=kept["said"],
        base=kept["base"],
        commit=kept["commit"],
        no_change=kept["no_change"],
        error=kept["error"],
        facts=kept["facts"],
    )
