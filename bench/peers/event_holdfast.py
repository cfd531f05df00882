"""Holdfast's events: emitted with a row in one transaction, handled with a row and the inbox in another.

Its worker: python -m bench.peers.event_holdfast; its relay alone: with the word `relay`.
"""

from __future__ import annotations

import asyncio
import sys
import time
from typing import Any

import msgspec

from bench import body
from bench.place import broker, url
from holdfast import Event, Holdfast, Tx
from holdfast.runtime.relay_process import run_relay

SLOTS = 100
CALLERS, HANDLERS = 20, 10  # connections, as the peers have
TABLES = (
    "CREATE TABLE placed (number BIGINT NOT NULL, pad TEXT NOT NULL)",
    "CREATE TABLE handled (number BIGINT NOT NULL, pad TEXT NOT NULL)",
)


class Order(msgspec.Struct):
    number: int
    sent: int
    nap: float
    pad: str
    tail: str


_pool = (
    f"?pool_size={HANDLERS if __name__ == '__main__' else CALLERS}" if url().startswith("postgres") else ""
)
hf = Holdfast(url() + _pool, transport=broker() or None)
placed = hf.event("order.placed", Order)


@hf.on("order.placed", group="bench")
async def handle(event: Event[Order], tx: Tx) -> None:
    order = event.data
    body.begin(order.sent, order.number)
    await tx.execute("INSERT INTO handled (number, pad) VALUES ($1, $2)", order.number, order.pad)
    body.count()


class Producer:
    async def open(self) -> None:
        await hf.__aenter__()

    async def close(self) -> None:
        await hf.__aexit__(None, None, None)

    async def one(self, job: dict[str, Any]) -> int:
        order = Order(**job)
        async with hf.transaction() as tx:
            await tx.execute("INSERT INTO placed (number, pad) VALUES ($1, $2)", order.number, order.pad)
            await hf.emit(placed, order, key=f"order:{order.number}", tx=tx)
        return time.monotonic_ns()


def prepare() -> None:
    asyncio.run(_prepare())


async def _prepare() -> None:
    await hf.migrate()
    async with hf, hf.transaction() as tx:
        for table in TABLES:
            await tx.execute(table)


async def handled() -> int:
    async with hf.transaction() as tx:
        [(number,)] = await tx.fetch("SELECT count(*) FROM handled")
    return int(number)


def workers(processes: int) -> list[list[str]]:
    return [[sys.executable, "-m", "bench.peers.event_holdfast"]] * processes


async def serve() -> None:
    async with hf, hf.worker(queues={"default": SLOTS}):
        body.ready()
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(run_relay(hf) if sys.argv[1:] == ["relay"] else serve())
