"""Judges a race by the journals of its processes and by raw SQL; the product is never asked.

A rule says what may not have happened, and yields one line for each time that it did.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice

import answer_rules
import holding_rules
import record_rules
from history import History

Rule = Callable[[History], Iterator[str]]

ALWAYS: tuple[Rule, ...] = (
    holding_rules.overlapping_by_fence,
    holding_rules.overlapping_by_journals,
    holding_rules.overtaken_turns,
    holding_rules.overstepped_limits,
    answer_rules.late_writes,
    answer_rules.overtaken_writes,
    answer_rules.lost_grants,
    answer_rules.lost_ends,
    answer_rules.lost_renewals,
    answer_rules.taken_from_others,
    answer_rules.ends_by_nobody,
    answer_rules.second_grants,
    answer_rules.undeclared_refusals,
    record_rules.ends_outside,
    record_rules.disordered_epochs,
    record_rules.disordered_fences,
    record_rules.broken_events,
    record_rules.new_terms,
    record_rules.early_grants,
)
"""What holds at any moment, even while processes play on or have just been killed."""

DRAINED: tuple[Rule, ...] = (record_rules.stuck_tasks, record_rules.leftovers)
"""What holds once healthy workers have finished what was left."""

SHOWN = 5


def find_violations(history: History, *rules: Rule) -> dict[str, list[str]]:
    """The rules that were broken, each with its first violations."""
    found = {rule.__name__: list(islice(rule(history), SHOWN)) for rule in rules}
    return {name: lines for name, lines in found.items() if lines}
