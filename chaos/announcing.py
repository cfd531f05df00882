"""Events of the program: a caller announces an item, a group packs it and says so, another keeps books of all, a view counts them."""

from __future__ import annotations

import asyncio
import os
import time
from typing import Any

import msgspec

from chaos.elsewhere import Elsewhere
from holdfast import Backoff, BlockingTx, Event, Holdfast, Job, Tx

KIND = "announce"
SHELVES = 12  # keys: callers wait for each other, and groups keep an order
VIEW = "shelves"
_BOOKED = "INSERT INTO heard (item, type, key, version, job, at) VALUES ($1, $2, $3, $4, $5, $6)"
_PACKED = "INSERT INTO parcels (item, job, token) VALUES ($1, $2, $3)"


class Item(msgspec.Struct, frozen=True):
    item: str


def shelf(item: str) -> str:
    return f"shelf:{sum(item.encode()) % SHELVES}"


async def announce(hf: Holdfast, item: str, *, tx: Any = None) -> Any:
    return await hf.emit("item.placed", Item(item), key=shelf(item), tx=tx)


def declare(hf: Holdfast, there: Elsewhere, again: Backoff) -> None:
    """The events, who hears them, and the view."""
    hf.event("item.placed", Item)
    hf.event("item.packed", Item)

    @hf.on("item.placed", group="packing", retry=again)
    async def pack(event: Event[Item], job: Job, tx: Tx) -> None:
        """The parcel, the inbox, the next event and the job's success: one commit."""
        run = there.began(job.id, job.token, job.task, event.data.item, os.getpid())
        await asyncio.sleep(0.01)
        await tx.execute(_PACKED, event.data.item, job.id, job.token)
        await hf.emit("item.packed", event.data, key=event.key, tx=tx)
        there.ended(run, "done")

    @hf.on("item.*", group="books", retry=again)
    def book(event: Event[Item], job: Job, tx: BlockingTx) -> None:
        """The same in a thread, of all of them."""
        run = there.began(job.id, job.token, job.task, event.data.item, os.getpid())
        tx.execute(_BOOKED, event.data.item, event.type, event.key, event.version, job.id, time.monotonic())
        there.ended(run, "done")

    @hf.view(VIEW, on="item.*")
    def shelves(row: dict[str, int] | None, event: Event[Item]) -> dict[str, int]:
        found = row or {}
        return {**found, event.type: found.get(event.type, 0) + 1}
