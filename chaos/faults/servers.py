"""PostgreSQL itself: killed, its backends ended, read-only, held up by others."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import asyncpg
import msgspec

from chaos.faults.fault import Fault
from chaos.fleet import Size
from chaos.place import Place
from chaos.settings import LEASE, SCAN
from chaos.world import World


class ServerFault(Fault):
    stores = ("postgres",)


class Postmaster(ServerFault):
    """SIGKILL to the postmaster, and a new one as soon as it can be."""

    name = "postmaster killed"

    async def inject(self, world: World) -> int:
        await world.nap(1.0)
        began, server = time.monotonic(), world.place.its_server
        server.kill()
        await asyncio.to_thread(server.start_again)
        await world.recovered(world.happened(began))
        return 1


class Backends(ServerFault):
    """Every session of the database is ended by its administrator, in whatever transaction it is."""

    name = "backends terminated"

    async def inject(self, world: World) -> int:
        await world.nap(0.7)
        began = time.monotonic()
        ended = await end_backends(world)
        world.happened(began)
        return ended


class ReadOnly(ServerFault):
    """A fail-over to a standby that takes no writes, and back."""

    name = "read-only fail-over"

    async def inject(self, world: World) -> int:
        began, server = time.monotonic(), world.place.its_server
        await server.set_read_only("on")
        await world.nap(LEASE + 1, shortest=0.5)
        await server.set_read_only("off")
        await world.recovered(world.happened(began))
        return 1

    async def heal(self, world: World) -> None:
        await world.place.its_server.set_read_only("off")


class Snapshot(ServerFault):
    """A session that stays in a transaction: nothing that dies meanwhile can be cleared away."""

    name = "idle snapshot held open"

    async def inject(self, world: World) -> int:
        idle = await asyncpg.connect(world.place.url)
        began = time.monotonic()
        await idle.execute("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM holdfast.job")
        await asyncio.sleep(4 * LEASE)
        await idle.close()
        await world.recovered(world.happened(began))
        return 1


class Pool(ServerFault):
    """One connection for each process, and transactions that keep it for longer than a lease.

    A job then waits for the transaction before it, which may take a lease and more.
    """

    name = "pool of 1, slow transactions"
    limit = 3 * LEASE + SCAN

    def size(self, usual: Size) -> Size:
        return msgspec.structs.replace(usual, kinds=f"{usual.kinds},hold,hold")

    @asynccontextmanager
    async def around(self, place: Place) -> AsyncIterator[None]:
        place.way = f"{place.url}?pool_size=1"
        yield

    async def inject(self, world: World) -> int:
        """Callers bring slow transactions all the time."""
        began = time.monotonic()
        await asyncio.sleep(LEASE)
        world.happened(began)
        return 1


async def end_backends(world: World) -> int:
    return await _ask(
        world.place.its_server.url(),
        "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE datname = $1",
        world.place.url.rpartition("/")[2],
    )


async def _ask(url: str, sql: str, *values: str) -> int:
    connection = await asyncpg.connect(url)
    try:
        return int(await connection.fetchval(sql, *values))
    finally:
        await connection.close()
