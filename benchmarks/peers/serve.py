"""A peer as a process that is asked line by line: so its rounds lie between those of the others.

A line in is `{"call": NAME, "arguments": {…}}`, a line out is the answer as JSON. This module and the
scripts that use it run in a peer's environment, which has no Lessor: the standard library alone.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable


def serve(calls: object) -> None:
    """Answer until the other side closes the pipe; what the peer prints itself goes to stderr."""
    out, sys.stdout = sys.stdout, sys.stderr
    for line in sys.stdin:
        asked = json.loads(line)
        try:
            answer = getattr(calls, asked["call"])(**asked["arguments"])
        except Exception as why:  # noqa: BLE001 - a peer's failure is a line of the result
            answer = {"failed": f"{type(why).__name__}: {why}"[:200]}
        out.write(json.dumps(answer) + "\n")
        out.flush()


def rate(count: int, work: Callable[[], None]) -> dict[str, float]:
    """Tasks a second of `work`, which works off `count` of them."""
    began = time.perf_counter()
    work()
    return {"per_s": count / (time.perf_counter() - began)}
