"""Ends a drilled worker when its drill has died: stopped with SIGSTOP it would never notice.

Run as `python -m lessor.demo.drill_watch PID`, with a pipe of the drill's as its stdin.
"""

from __future__ import annotations

import signal
import sys

from lessor.runner.process import send_signal
from lessor.runner.proctable import descendants, process_row, process_table


def main(arguments: list[str]) -> int:
    """Wait for the end of stdin, then kill that very worker and all that it started."""
    worker = process_row(int(arguments[0]))
    if worker is None:
        return 0
    sys.stdin.read()
    now = process_row(worker.pid)
    if now is None or now.start_ticks != worker.start_ticks:
        return 0  # the drill ended it
    # Git first, which is a child: it must not go on when its parent is gone.
    for row in (*descendants(worker.pid, process_table()), worker):
        send_signal(row, signal.SIGKILL)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
