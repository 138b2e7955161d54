"""When a failed attempt is tried again: exponential backoff with full jitter, bounded."""

from __future__ import annotations

from dataclasses import dataclass

from lessor.errors import TermsInvalidError

LONGEST_DELAY_MS = 24 * 60 * 60 * 1000
STEEPEST = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
    """Delays between attempts, in milliseconds.

    Attributes:
        first_ms: the ceiling of the delay after the first failure.
        factor: by how much the ceiling grows with each further failure.
        ceiling_ms: the ceiling's own ceiling.
        same_error_limit: failures with one fingerprint after which the task is quarantined.
    """

    first_ms: int = 10_000
    factor: int = 3
    ceiling_ms: int = 15 * 60_000
    same_error_limit: int = 3

    def __post_init__(self) -> None:
        if not (
            0 <= self.first_ms <= self.ceiling_ms <= LONGEST_DELAY_MS
            and 1 <= self.factor <= STEEPEST
        ):
            raise TermsInvalidError(
                "A retry policy needs 0 <= first_ms <= ceiling_ms <= a day and a factor from 1 to 10.",
                next_step="Give a first delay that is not above the ceiling.",
                first_ms=self.first_ms,
                ceiling_ms=self.ceiling_ms,
                factor=self.factor,
            )

    def delay_ms(self, failures: int, *, chance: float) -> int:
        """How long to wait after the `failures`-th failure; `chance` is drawn from [0, 1).

        Full jitter between half the ceiling and the ceiling, so that tasks which failed together
        don't come back together (AWS, "Exponential Backoff and Jitter", equal jitter).
        """
        exponent = min(max(failures, 1) - 1, 40)
        top = min(self.first_ms * self.factor**exponent, self.ceiling_ms)
        return int(top / 2 + top / 2 * chance)
