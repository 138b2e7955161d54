"""A run's result as the text that is kept with its lease, and back."""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite

from lessor.errors import InvalidError
from lessor.model.grant import Failure, Result
from lessor.model.task import Stage
from lessor.service.rows import damaged, pack_facts, unpack
from lessor.service.wording import LONGEST_TEXT, check_flag, check_note, check_text

MOST_FACTS = 100
_STAGES = frozenset(Stage)


def pack_result(result: Result) -> str:
    """`result` as text, checked.

    Raises:
        InvalidError: a text is too long or can't be kept, the stage is none, or there are more than
            a hundred facts, or one that is neither text nor a number.
    """
    if type(result) is not Result or not isinstance(result.facts, Mapping):
        raise InvalidError("A result has to be a Result.", next_step="Make one with Result(…).")
    if result.stage not in _STAGES:
        raise InvalidError(
            f"{str(result.stage)[:40]!r} is no stage of a result.",
            next_step=f"One of: {', '.join(Stage)}.",
        )
    check_note(result.said, "said")
    if result.base is not None:
        check_note(result.base, "base")
    if result.commit is not None:
        check_note(result.commit, "commit")
    if result.no_change is not None:
        check_note(result.no_change, "no change")
    if result.error is not None:
        check_note(result.error, "error")
    if result.facts:
        _check_facts(result.facts)
    return pack_facts(
        stage=result.stage,
        said=result.said,
        base=result.base,
        commit=result.commit,
        no_change=result.no_change,
        error=result.error,
        facts=dict(sorted(result.facts.items())) if result.facts else {},
    )


def check_failure(failure: Failure) -> None:
    """Refuse a failure whose parts can't be meant; InvalidError."""
    if type(failure) is not Failure:
        raise InvalidError(
            "A failure has to be a Failure.", next_step="Make one with Failure(error=…)."
        )
    check_note(failure.error, "error")
    check_note(failure.fingerprint, "fingerprint")
    check_flag(failure.retry, "retry")
    check_flag(failure.credential, "credential")


def _check_facts(facts: Mapping[str, object]) -> None:
    if len(facts) > MOST_FACTS:
        raise InvalidError(
            f"A result can have {MOST_FACTS} facts, not {len(facts)}.",
            next_step="Leave some out.",
        )
    for key, value in facts.items():
        check_text(key, "fact's name", longest=LONGEST_TEXT, empty=False)
        if isinstance(value, str):
            check_note(value, f"fact {key[:40]}")
        elif value is not None and not (isinstance(value, int | float) and isfinite(value)):
            raise InvalidError(
                f"The fact {key[:40]!r} is neither text nor a finite number.",
                next_step="Give one of them.",
            )


def read_result(text: str) -> Result:
    """What `pack_result` made; StoreCorruptError where it isn't that any more."""
    kept = unpack(text)
    try:
        return Result(
            stage=Stage(kept["stage"]),
            said=kept["said"],
            base=kept["base"],
            commit=kept["commit"],
            no_change=kept["no_change"],
            error=kept["error"],
            facts=kept["facts"],
        )
    except (KeyError, TypeError, ValueError) as error:
        raise damaged(text) from error
