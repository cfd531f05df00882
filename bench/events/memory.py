"""The memory of a relay that publishes what has gathered: a process of its own, watched from here while it does."""

from __future__ import annotations

import asyncio
import sys
import time
from typing import Any

import asyncpg

from bench.events.flow import must_live
from bench.fleet import Fleet
from bench.peers import event_holdfast
from bench.place import url

_FEW = 2_000  # events, some batches, after which the relay has all the memory that it needs for them
_CUT = 400.0  # seconds
_EVERY = 0.02  # seconds between two looks at its memory
# All at once: the relay sees none of them before it sees all.
_FILL = """
WITH made AS (
    INSERT INTO holdfast.event_key (key, version)
    SELECT 'order:' || $2 || ':' || n, 1 FROM generate_series(1, $1::int) n)
INSERT INTO holdfast.outbox (id, type, key, version, data)
SELECT gen_random_uuid(), 'order.placed', 'order:' || $2 || ':' || n, 1,
    '{"number":' || n || ',"sent":0,"nap":0.0,"pad":"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx","tail":"0123456789"}'
FROM generate_series(1, $1::int) n"""
_PUBLISHED = "SELECT value FROM holdfast.event_position"


def measure(_measure: str, *, backlog: int, **_: Any) -> dict[str, Any]:
    """MB by which the relay is larger while it publishes a long backlog than after a short one."""
    event_holdfast.prepare()
    with Fleet([[sys.executable, "-m", "bench.peers.event_holdfast", "relay"]]) as fleet:
        return asyncio.run(_measured(fleet, backlog))


async def _measured(fleet: Fleet, backlog: int) -> dict[str, Any]:
    connection = await asyncpg.connect(url())
    try:
        before, _ = await _publish(connection, fleet, "few", _FEW, _FEW)
        peak, seconds = await _publish(connection, fleet, "all", backlog, _FEW + backlog)
    finally:
        await connection.close()
    return {
        "growth": max(0.0, peak - before), "before": round(before, 1), "peak": round(peak, 1),
        "events": backlog, "seconds": round(seconds, 1), "relayed": round(backlog / seconds),
    }  # fmt: skip


async def _publish(connection: Any, fleet: Fleet, name: str, number: int, upto: int) -> tuple[float, float]:
    """The largest size that was seen, in MB, and how long it took from when they were there."""
    await connection.execute(_FILL, number, name, timeout=_CUT)
    begin, peak, looks = time.monotonic(), 0.0, 0
    while True:
        peak = max(peak, fleet.memory()[0])
        if looks % 10 == 0 and await connection.fetchval(_PUBLISHED) >= upto:
            return peak, time.monotonic() - begin
        must_live(fleet)
        if time.monotonic() - begin > _CUT:
            raise TimeoutError(f"the relay was not through {number} events after {_CUT:g} s")
        looks += 1
        await asyncio.sleep(_EVERY)
