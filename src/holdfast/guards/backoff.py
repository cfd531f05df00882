"""Backoff: how often a task or a call may run, and how long to wait in between."""

from __future__ import annotations

import msgspec

from holdfast.kernel.errors import UsageError
from holdfast.kernel.names import check_int, check_seconds
from holdfast.kernel.options import NamedStruct
from holdfast.kernel.randomness import random
from holdfast.kernel.show import show


class Backoff(NamedStruct, frozen=True, kw_only=True):
    """At most `attempts` runs; after the n-th failure a wait of 0 to `first` · 2ⁿ⁻¹ seconds, at most `ceiling`.

    The whole wait is drawn by chance (full jitter), so that a thousand jobs that failed together do not come back
    together. An error of a type in `never` is not tried again.
    """

    attempts: int = 8
    first: float = 2.0
    ceiling: float = 600.0
    never: tuple[type[Exception], ...] = ()

    def __post_init__(self) -> None:
        check_int("attempts", self.attempts, 1, 1_000)
        for name in ("first", "ceiling"):
            msgspec.structs.force_setattr(self, name, check_seconds(name, getattr(self, name)))
        if self.first > self.ceiling:
            raise UsageError(
                f"first={self.first:g} is above ceiling={self.ceiling:g}: lower it, or raise the ceiling."
            )
        check_errors("never", self.never)

    def delay(self, attempt: int) -> float:
        """Seconds to wait after this attempt has failed."""
        return random() * self.longest(attempt)

    def longest(self, attempt: int) -> float:
        """The most that `delay` can be after this attempt."""
        return min(self.ceiling, self.first * 2.0 ** min(attempt - 1, 60))

    def allows(self, attempt: int, error: BaseException) -> bool:
        """Whether there is another run after this attempt has failed with this error."""
        return attempt < self.attempts and not isinstance(error, self.never)


def check_errors(name: str, kinds: object) -> None:
    if not isinstance(kinds, tuple) or not all(
        isinstance(kind, type) and issubclass(kind, Exception) for kind in kinds
    ):
        raise UsageError(f"{name} is a tuple of exception types, such as (ValueError,); not {show(kinds)}.")
