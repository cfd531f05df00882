"""Time single calls, bare and guarded, in turns. Only the standard library: it also runs beside the peers."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any

Call = Callable[[], Awaitable[Any]]
Made = Callable[[Call], Call]  # a guard around a call


async def at_once() -> int:
    """It never waits."""
    return 1


async def in_a_while() -> int:
    """It waits once, for the next turn of the loop: whoever bounds its time must set a timer."""
    await asyncio.sleep(0)
    return 1


def measurer(**made: Made) -> Callable[..., dict[str, Any]]:
    """The function `measure` of a peer's program; each name is a kind of guard."""

    def measure(_measure: str, *, calls: int, laps: int, **_: Any) -> dict[str, Any]:
        return asyncio.run(_measured(made, calls, laps))

    return measure


async def _measured(made: dict[str, Made], calls: int, laps: int) -> dict[str, Any]:
    kinds: dict[str, Call] = {"bare": at_once, "bare_waiting": in_a_while}
    for kind, make in made.items():
        kinds[kind] = make(at_once)
    if "all" in made:
        kinds["all_waiting"] = made["all"](in_a_while)
    times: dict[str, list[int]] = {kind: [] for kind in kinds}
    for lap in range(laps + 1):
        for kind, call in kinds.items():
            found = await _lap(call, calls)
            if lap:  # the first one warms up
                times[kind] += found
    return {kind: {"p50": _at(found, 0.5), "p99": _at(found, 0.99)} for kind, found in times.items()}


async def _lap(call: Call, calls: int) -> list[int]:
    clock, found = time.perf_counter_ns, [0] * calls
    for number in range(calls):
        began = clock()
        await call()
        found[number] = clock() - began
    return found


def _at(found: list[int], share: float) -> float:
    """Microseconds below which this share of the calls was."""
    return sorted(found)[min(len(found) - 1, int(len(found) * share))] / 1_000
