"""What waits for what has no circles."""

from __future__ import annotations

from collections.abc import Sequence

from lessor.errors import CycleError, InvalidError


def check_acyclic(needs: Sequence[Sequence[int]]) -> None:
    """Refuse a batch whose tasks wait for each other.

    Args:
        needs: for each task the places of those that it needs.

    Raises:
        InvalidError: a place outside the batch.
        CycleError: names the places of one circle.
    """
    for place, row in enumerate(needs):
        for need in row:
            if isinstance(need, bool) or not isinstance(need, int) or not 0 <= need < len(needs):
                raise InvalidError(
                    f"Task {place + 1} of the batch needs place {str(need)[:20]}, which isn't in it.",
                    next_step="Name tasks of this batch by position, others by id.",
                )
    done: set[int] = set()
    for start in range(len(needs)):
        path: list[int] = []
        on_path: set[int] = set()
        # An explicit stack: a chain of ten thousand tasks is deeper than Python recurses.
        stack: list[tuple[int, bool]] = [(start, False)]
        while stack:
            place, leaving = stack.pop()
            if leaving:
                on_path.discard(path.pop())
                done.add(place)
            elif place in on_path:
                circle = [*path[path.index(place) :], place]
                raise CycleError(
                    f"Tasks wait for each other: {' -> '.join(str(p + 1) for p in circle)}.",
                    next_step="Take one of these needs out.",
                    places=[str(p + 1) for p in circle],
                )
            elif place not in done:
                path.append(place)
                on_path.add(place)
                stack.append((place, True))
                stack.extend((need, False) for need in needs[place])
