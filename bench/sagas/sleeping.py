"""Many sagas asleep: what they cost the worker's memory, how fast they fall asleep, and how fast all wake. Runs beside the peers.

A peer's module has `asleep` (how many are) and, if it can be told that the night is over, `end_night`.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

from bench import body
from bench.caller import Caller
from bench.events.flow import must_live
from bench.fleet import Fleet

_FEW = 100  # sagas, after which a worker has all the memory that it needs for those it runs
_CUT = 400.0  # seconds for each part
_REST = 1.0  # seconds after which a worker is at rest


def sleeping(peer: Any, *, sleepers: int, dawn: float, **_: Any) -> dict[str, Any]:
    with Fleet(peer.workers(1)) as fleet:
        _until(fleet, 1, lambda: len(body.counts()), "workers were up")
        before = _fall_asleep(peer, fleet, _FEW, _FEW)
        asleep = _fall_asleep(peer, fleet, sleepers, sleepers + _FEW)
        gained = max(0.0, asleep["memory"] - before["memory"])
        answer = {
            "gained": gained, "each": 1e3 * gained / sleepers, "before": round(before["memory"], 1),
            "asleep": round(asleep["memory"], 1), "sagas": sleepers, "bedtime": sleepers / asleep["seconds"],
        }  # fmt: skip
        if hasattr(peer, "end_night"):
            answer |= _wake(peer, fleet, sleepers + _FEW, dawn)
        return answer


def _fall_asleep(peer: Any, fleet: Fleet, number: int, upto: int) -> dict[str, float]:
    """The worker's size when all are asleep, in MB, and how long it took from when they were there."""
    if hasattr(peer, "hold"):
        peer.hold()
    asyncio.run(_fill(peer, number))
    if hasattr(peer, "go"):
        peer.go()
    seconds = _until(fleet, upto, peer.asleep, "sagas slept", every=0.1)
    time.sleep(_REST)
    return {"memory": fleet.memory()[0], "seconds": seconds}


async def _fill(peer: Any, number: int) -> None:
    async with Caller(peer) as caller:
        await caller.fill(number)


def _wake(peer: Any, fleet: Fleet, number: int, dawn: float) -> dict[str, Any]:
    """Seconds from when the night was over for all until the last of them had come to its end."""
    sunrise = time.time() + dawn
    peer.end_night(dawn)
    if (late := time.time() - sunrise) > 0:
        raise TimeoutError(f"it was {late:.1f} s late when all knew when to wake: give `dawn` more")
    sizes: list[float] = []

    def done() -> int:
        sizes.append(fleet.memory()[0])
        return sum(body.counts())

    _until(fleet, number, done, "sagas woke", every=0.02)
    _until(fleet, number, lambda: number - peer.left(), "sagas were over", every=0.02)
    return {"woken": time.time() - sunrise, "peak": round(max(sizes), 1)}


def _until(fleet: Fleet, number: int, look: Callable[[], int], what: str, *, every: float = 0.02) -> float:
    """Seconds until so many are seen."""
    begin = time.monotonic()
    while (seen := look()) < number:
        must_live(fleet)
        if time.monotonic() - begin > _CUT:
            raise TimeoutError(f"only {seen} of {number} {what} after {_CUT:g} s")
        time.sleep(every)
    return time.monotonic() - begin
