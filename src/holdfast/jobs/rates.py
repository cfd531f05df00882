"""The rate of a task: so many runs a second, in the whole fleet, by a limiter that its gate asks before each run."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import msgspec

from holdfast.guards.guard import Guard
from holdfast.guards.limiter import Limiter
from holdfast.guards.paces import check_rate
from holdfast.kernel.errors import UsageError
from holdfast.kernel.show import show
from holdfast.kernel.templates import Template

NAME = "rate:{}"  # of the gate of a task, and so of what its jobs are held by
_TENTH = 0.1  # seconds: of so much of the rate a fleet makes use between two looks,
_LEAST = 0.2  # or of this part of one run, when the rate is below two a second
_KEYS = 100_000  # of one task, at a time


class Rate(msgspec.Struct, frozen=True):
    """What `rate=` says: runs a second, of each key that `per` makes of the arguments, or of the task."""

    number: float
    per: str | None = None

    @property
    def burst(self) -> float:
        """Runs are spread: this is what may be made up for, not what may wait to come at once."""
        return 1.0 + max(_TENTH * self.number, _LEAST)

    def limiter(self) -> Limiter:
        return Limiter(rate=self.number, burst=self.burst, per=self.per, keys=_KEYS)


def check_rated(given: Any, guard: Guard[Any] | None, arguments: Collection[str]) -> Rate | None:
    """What `@hf.task(rate=…)` says."""
    if given is None:
        return None
    if guard is not None and guard.limiter is not None:
        raise UsageError(
            f"rate={show(given)} and the limiter of guard {guard.name!r} are two rates for one task. Leave out rate=: runs keep to "
            "the limiter's. Or leave out guard= and call the guard inside the task."
        )
    if isinstance(given, tuple | list):
        if len(given) != 2:
            raise _unreadable(given)
        per, number = given
        if not Template("rate", per, arguments).fields:
            raise UsageError(
                f'rate={show(given)} names no argument: write one in braces, as in ("user:{{user_id}}", 10), or the number alone.'
            )
        return Rate(_number(given, number), per)
    return Rate(_number(given, given))


def _number(given: Any, number: Any) -> float:
    if isinstance(number, bool) or not isinstance(number, int | float):
        raise _unreadable(given)
    return check_rate(number)


def _unreadable(given: Any) -> UsageError:
    return UsageError(
        "rate is a number of runs a second, such as 10, or 10 / 60 for ten a minute; or a key and a number, such as "
        f'("user:{{user_id}}", 10); not {show(given)}.'
    )


def gate_of(task: str, limiter: Limiter | None, guard: Guard[Any] | None) -> Guard[Any] | None:
    """What is asked before each run: the guard itself, or the task's limiter, and behind it the guard's other parts."""
    if limiter is None:
        return guard
    if guard is None:
        return Guard(NAME.format(task), limiter=limiter)
    return Guard(NAME.format(task), limiter=limiter, breaker=guard.breaker, bulkhead=guard.bulkhead)


def shared_part(gate: Guard[Any]) -> Guard[Any]:
    """What the fleet shares of it: a guard's own parts are shared under its own name."""
    return Guard(gate.name, limiter=gate.limiter)
