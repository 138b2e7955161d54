"""What waits for what has no circles."""

from __future__ import annotations

from collections.abc import Sequence

from lessor.errors import CycleError, InvalidError


def check_acyclic(needs: Sequence[Sequence[object]]) -> None:
    """Refuse a batch whose tasks wait for each other.

    Args:
        needs: for each task the places of those that it needs.

    Raises:
        InvalidError: a place outside the batch.
        CycleError: names the places of one circle.
    """
    checked = [
        [_place(need, place=place, size=len(needs)) for need in row]
        for place, row in enumerate(needs)
    ]
    done: set[int] = set()
    for start in range(len(checked)):
        _walk(start, checked, done)


def _place(need: object, *, place: int, size: int) -> int:
    if isinstance(need, bool) or not isinstance(need, int) or not 0 <= need < size:
        raise InvalidError(
            f"Task {place + 1} of the batch needs place {str(need)[:20]}, which isn't in it.",
            next_step="Name tasks of this batch by position, others by id.",
        )
    return need


def _walk(start: int, needs: Sequence[Sequence[int]], done: set[int]) -> None:
    """Follow needs depth first, on a stack of its own: ten thousand are deeper than Python recurses."""
    path: list[int] = []
    on_path: set[int] = set()
    stack: list[tuple[int, bool]] = [(start, False)]
    while stack:
        place, leaving = stack.pop()
        if leaving:
            on_path.discard(path.pop())
            done.add(place)
        elif place in on_path:
            raise _circle([*path[path.index(place) :], place])
        elif place not in done:
            path.append(place)
            on_path.add(place)
            stack.append((place, True))
            stack.extend((need, False) for need in needs[place])


def _circle(places: Sequence[int]) -> CycleError:
    shown = [str(place + 1) for place in places]
    return CycleError(
        f"Tasks wait for each other: {' -> '.join(shown)}.",
        next_step="Take one of these needs out.",
        places=shown,
    )
