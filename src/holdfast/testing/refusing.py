"""Jobs that the guard of a step has refused, in `drain`: they go on as soon as it would let them through."""

from __future__ import annotations

from typing import Any
from weakref import WeakKeyDictionary

from holdfast.guards.guard import Guard
from holdfast.jobs.gating import guard_of, is_closed, key_of
from holdfast.kernel.clock import monotonic
from holdfast.kernel.outcomes import Snooze
from holdfast.runtime.app import Holdfast
from holdfast.runtime.inside import inside
from holdfast.store.ports import Store

_PART = 1000  # keys of one question
_TRIES = 3  # of a job whose guard would let it through and does not, at one moment


# By store: keys under which a step was refused here. Such a guard may stand before a task, too.
_known: WeakKeyDictionary[Store, set[str]] = WeakKeyDictionary()


def remember(store: Store, ending: object) -> None:
    """How a run has ended."""
    if isinstance(ending, Snooze) and ending.guard is not None:
        _known.setdefault(store, set()).add(ending.guard)


class TurnedAway:
    """Of one drain. A key is not let go again and again at one moment: what it waits for may be another process."""

    def __init__(self) -> None:
        self._tried: dict[
            str, tuple[float, int, int]
        ] = {}  # by key: when, how often in vain, and how many were held

    async def let_go(self, hf: Holdfast) -> None:
        """As many of each key as its guard would let through now."""
        held = await hf.store.holds.gated(limit=_PART)
        if not held:
            return
        guards, known = inside(hf).registry.known_guards, _known.get(hf.store, set())
        gates = {guard.name for guard in inside(hf).registry.guards}  # what they hold is left alone
        wanted: dict[str, int] = {}
        for each in held:
            guard = None if each.guard is None else guard_of(each.guard, guards)
            if guard is None or each.guard is None or not (guard.name not in gates or each.guard in known):
                continue
            number = room(guard, key_of(guard, each.guard))
            if number > 0 and self._may_try(each.guard, each.number):
                wanted[each.guard] = number
        if wanted:
            await hf.store.holds.open_gates(wanted)

    def _may_try(self, key: str, number: int) -> bool:
        now = monotonic()
        when, tries, before = self._tried.get(key, (now, 0, number))
        tries = tries + 1 if when == now and number >= before else 1
        self._tried[key] = now, tries, number
        return tries <= _TRIES


def room(guard: Guard[Any], key: str) -> int:
    """How many jobs of a key would pass now."""
    number = _PART if guard.limiter is None else int(guard.limiter.allowance(key=key).remaining)
    if guard.bulkhead is not None:
        number = min(number, guard.bulkhead.room)
    if guard.breaker is not None and not is_closed(guard):
        number = min(number, int(guard.breaker.retry_in() == 0.0))
    return number
