"""Recovery: a worker is killed in the middle of a job and started again; when does the job run again?

With the settings that a library has by itself. Runs beside the peers.
"""

from __future__ import annotations

import asyncio
import time
from typing import Any

from bench import body
from bench.caller import Caller
from bench.fleet import Fleet
from bench.latency import until_up
from bench.place import arguments

NAP = 3.0  # seconds that the job takes
_NUMBER = 7


def recovery(peer: Any, *, patience: float, **_: Any) -> dict[str, Any]:
    with Fleet(peer.workers(1), {"BENCH_DEFAULTS": "1"}) as fleet:
        return asyncio.run(_recovery(peer, fleet, patience))


async def _recovery(peer: Any, fleet: Fleet, patience: float) -> dict[str, Any]:
    async with Caller(peer) as caller:
        await until_up(caller, fleet)
        await asyncio.sleep(1)
        await caller.one(arguments(_NUMBER, time.monotonic_ns(), NAP))
    await _started(1, time.monotonic() + 20)
    await asyncio.sleep(1)
    fleet.kill()
    killed = time.monotonic()
    fleet.start()
    again = await _started(2, killed + patience)
    return {"seconds": round(again / 1e9 - killed, 1)}


async def _started(times: int, until: float) -> int:
    """When the job was started for the n-th time."""
    while time.monotonic() < until:
        found = [started for number, _, started, _ in body.starts() if number == _NUMBER]
        if len(found) >= times:
            return found[times - 1]
        await asyncio.sleep(0.05)
    raise TimeoutError("it did not run again in time" if times > 1 else "it did not run")
