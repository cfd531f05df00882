"""Another program that holds SQLite's write lock: a backup, a shell that somebody left open."""

from __future__ import annotations

import asyncio
import sys
import time

from chaos.faults.fault import Fault
from chaos.settings import LEASE
from chaos.world import World

_HOLD = """
import sys, time, apsw
db = apsw.Connection(sys.argv[1])
db.set_busy_timeout(20_000)
db.execute("BEGIN IMMEDIATE")
time.sleep(float(sys.argv[2]))
db.execute("ROLLBACK")
"""


class HeldLock(Fault):
    """For longer than a lease: nobody can renew, so nobody may go on."""

    name = "write lock held by another program"
    stores = ("sqlite",)

    async def inject(self, world: World) -> int:
        await world.nap(0.7)
        file, began = world.place.url.removeprefix("sqlite:///"), time.monotonic()
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-c", _HOLD, file, str(world.chance.uniform(0.5, LEASE + 2))
        )
        try:
            await process.wait()
        except asyncio.CancelledError:
            process.kill()
            await process.wait()
            raise
        await world.recovered(world.happened(began))
        return 1
