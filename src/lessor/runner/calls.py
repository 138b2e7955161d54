"""The heartbeat's calls to the store, on a thread of their own.

A store that hangs must not keep the supervisor from freezing the agent at its deadline, so nothing
waits for an answer. One thread makes all calls, one at a time.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from queue import Empty, SimpleQueue

from lessor.errors import LeaseLostError, LessorError
from lessor.runner.lifeline import Lifeline, Renewal, Watch


class Ask(StrEnum):
    """What the store is asked."""

    RENEW = "renew"
    WATCH = "watch"
    END_GONE = "end_gone"


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One question; `sent_ms` is what a renewal's answer counts from."""

    ask: Ask
    sent_ms: int = 0
    proof: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What came of a call.

    Attributes:
        result: the answer, where there is one to this question.
        refusal: why it was refused: the lease is not, or no longer, ours.
        silence: why nobody answered.
    """

    call: Call
    result: Renewal | Watch | None = None
    refusal: str = ""
    silence: str = ""


class StoreCalls:
    """Makes the calls; `submit` and `answers` belong to one thread, the caller's."""

    def __init__(self, lifeline: Lifeline, *, wake: Callable[[], None]) -> None:
        self._lifeline = lifeline
        self._wake = wake
        self._asked: SimpleQueue[Call] = SimpleQueue()
        self._answered: SimpleQueue[Answer] = SimpleQueue()
        self._serving = False
        self.busy = False

    def submit(self, call: Call) -> None:
        """Make a call; only when not `busy`."""
        self.busy = True
        self._asked.put(call)
        if not self._serving:
            self._serving = True
            # A daemon: a call that never returns must not keep a supervisor that is done.
            threading.Thread(target=self._serve, name="store", daemon=True).start()

    def answer(self) -> Answer | None:
        """The answer, once it is there."""
        try:
            answer = self._answered.get_nowait()
        except Empty:
            return None
        self.busy = False
        return answer

    def _serve(self) -> None:
        while self._serving:
            call = self._asked.get()
            # A lifeline that fails in a way it shouldn't ends this thread, with its traceback on
            # stderr. It counts as silence, and the next call gets a new thread.
            answer, self._serving = Answer(call=call, silence="the lifeline failed"), False
            try:
                answer, self._serving = self._ask(call), True
            finally:
                self._answered.put(answer)
                self._wake()

    def _ask(self, call: Call) -> Answer:
        try:
            return Answer(call=call, result=self._result(call))
        except LeaseLostError as error:
            return Answer(call=call, refusal=str(error))
        except LessorError as error:
            return Answer(call=call, silence=str(error))

    def _result(self, call: Call) -> Renewal | Watch | None:
        if call.ask is Ask.RENEW:
            return self._lifeline.renew()
        if call.ask is Ask.WATCH:
            return self._lifeline.watch()
        self._lifeline.end_gone(call.proof)
        return None
