"""`rate=` in `drain`: under a manual clock runs keep to it, by limiters of this process; time must be turned for more."""

from __future__ import annotations

from typing import Any
from weakref import WeakKeyDictionary

from holdfast.guards.guard import Guard
from holdfast.guards.limiter import Limiter
from holdfast.jobs.gating import guard_of, is_under, key_of
from holdfast.kernel.world import World, current
from holdfast.runtime.app import Holdfast
from holdfast.runtime.inside import inside
from holdfast.store.ports import Store
from holdfast.store.records import Claim
from holdfast.store.states import Held
from holdfast.testing.clock import ManualClock

_PART = 1000  # keys of one question


class Rates:
    """Of one store, under one clock. They begin as those of a program that has not run for long."""

    def __init__(self, world: World) -> None:
        self.world = world
        self._limiters: dict[str, Limiter] = {}

    async def let_go(self, hf: Holdfast) -> None:
        """Held jobs, as many of each key as may run now."""
        gates = {gate.name: gate for gate in _rated(hf)}
        if not gates:
            return
        numbers: dict[str, int] = {}
        for text in await hf.store.holds.gates(limit=_PART):
            if (gate := guard_of(text, gates)) is not None:
                numbers[text] = int(self._of(hf, gate).allowance(key=key_of(gate, text)).remaining)
        if wanted := {text: number for text, number in numbers.items() if number > 0}:
            await hf.store.holds.open_gates(wanted)

    async def admits(self, hf: Holdfast, claim: Claim) -> bool:
        """Whether it may run now; else it is held."""
        task = inside(hf).registry.get(claim.task)
        gate = None if task is None or task.declaration.rate is None else task.declaration.gate
        if gate is None or not is_under(gate, claim.guard):
            return True
        if self._of(hf, gate).try_take(key=key_of(gate, claim.guard)):
            return True
        await hf.store.holds.hold([claim], Held.GUARD)
        return False

    def _of(self, hf: Holdfast, gate: Guard[Any]) -> Limiter:
        if gate.name not in self._limiters:
            [rate] = {
                each.declaration.rate for each in inside(hf).registry.tasks if each.declaration.gate is gate
            }
            assert rate is not None
            self._limiters[gate.name] = rate.limiter()
        return self._limiters[gate.name]


_known: WeakKeyDictionary[Store, Rates] = WeakKeyDictionary()


def rates_of(hf: Holdfast) -> Rates | None:
    """None: the clock is the real one, and a test would have to wait."""
    world = current()
    if not isinstance(world, ManualClock):
        return None
    if (found := _known.get(hf.store)) is None or found.world is not world:
        found = _known[hf.store] = Rates(world)
    return found


def _rated(hf: Holdfast) -> list[Guard[Any]]:
    return [
        each.declaration.gate
        for each in inside(hf).registry.tasks
        if each.declaration.rate is not None and each.declaration.gate is not None
    ]
