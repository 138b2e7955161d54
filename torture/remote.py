"""What the remote's own reflogs say about the pushes: their order, and that each came to what was told."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from torture.log import Call, History


def disordered_moves(history: History) -> Iterator[str]:
    """Each place's branch moved in the order of the fences that its pushes were made under."""
    fences = {call.asked["commit"]: (tuple(call.asked["fence"]), call) for call in _pushes(history)}
    last: dict[str, tuple[tuple[int, ...], Call]] = {}
    for move in history.moves:
        if move.new not in fences:
            yield f"{move.ref} moved to {move.new[:12]}, which no worker had asked for"
            continue
        fence, call = fences[move.new]
        if move.ref in last and fence < last[move.ref][0]:
            yield f"{move.ref} took fence {fence} of {call.who} after {last[move.ref][0]} of {last[move.ref][1].who}"
        last[move.ref] = (fence, call)


def lost_pushes(history: History) -> Iterator[str]:
    """A push that was acknowledged is in the reflog, and one that was refused isn't."""
    there = {move.new for move in history.moves}
    for call in _pushes(history):
        commit = call.asked["commit"]
        if call.ok is not None and commit not in there:
            yield f"{call.who} was told that {commit[:12]} moved {call.asked['ref']}, and it never was there"
        if call.no in {"push_refused", "conflict", "scope_held"} and commit in there:
            yield f"{call.who} was told that {commit[:12]} was refused ({call.no}), and it is at the remote"


def unknown_pushes(history: History) -> Iterator[str]:
    """In the end every push that was announced is settled, by what the remote has."""
    if history.last is None:
        return
    there: dict[str, bool] = defaultdict(bool, {move.new: True for move in history.moves})
    for intent in history.last["intents"]:
        moved = there[intent["commit"]]
        if intent["outcome"] is None:
            yield f"nobody knows what became of {intent['commit'][:12]} of {intent['task']}"
        elif (intent["outcome"] == "done") != moved:
            yield f"{intent['commit'][:12]} is settled as {intent['outcome']}, and the remote {'has' if moved else 'never had'} it"


def _pushes(history: History) -> Iterator[Call]:
    return (call for call in history.calls if call.op == "push")
