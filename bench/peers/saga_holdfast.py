"""Holdfast's sagas: five steps, each with how it is undone or without; or one long sleep.

Its worker: python -m bench.peers.saga_holdfast NUMBER OF.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Sequence
from typing import Any

import asyncpg

from bench import body
from bench.peers import holdfast
from bench.place import url
from bench.sagas import shape
from holdfast import Holdfast
from holdfast.sagas.running import RunningSaga

hf = Holdfast(url())
left = holdfast.left


async def book(place: int) -> int:
    return place


async def cancel(place: int | None) -> None:
    """Nothing fails here, so nobody calls it."""


async def undoable(saga: RunningSaga, number: int, sent: int, nap: float, pad: str, tail: str) -> int:  # noqa: ARG001
    booked = 0
    for place in range(shape.STEPS):
        booked += await saga.step(f"book:{place}", book, place, undo=cancel)
    await body.run_async({"number": number, "sent": sent, "nap": nap})
    return booked


async def plain(saga: RunningSaga, number: int, sent: int, nap: float, pad: str, tail: str) -> int:  # noqa: ARG001
    booked = 0
    for place in range(shape.STEPS):
        booked += await saga.step(f"book:{place}", book, place)
    await body.run_async({"number": number, "sent": sent, "nap": nap})
    return booked


async def sleeping(saga: RunningSaga, number: int, sent: int, nap: float, pad: str, tail: str) -> None:  # noqa: ARG001
    await saga.sleep(shape.NIGHT)
    await body.run_async({"number": number, "sent": sent, "nap": nap})


saga: Any = hf.saga("bench")({"undo": undoable, "plain": plain, "sleep": sleeping}[shape.FORM])


class Producer:
    async def open(self) -> None:
        await hf.__aenter__()

    async def close(self) -> None:
        await hf.__aexit__(None, None, None)

    async def one(self, job: dict[str, Any]) -> None:
        await saga.start(**job)

    async def many(self, jobs: Sequence[dict[str, Any]]) -> None:
        if shape.STARTED:
            shape.note_wanted(len(jobs))
        else:
            await hf.store.sagas.start([saga.new((), job, id=None) for job in jobs])


def prepare() -> None:
    asyncio.run(hf.migrate())


def hold() -> None:
    if not shape.STARTED:
        holdfast.hold()


def go() -> None:
    if shape.STARTED:
        shape.open_door()
    else:
        holdfast.go()


def asleep() -> int:
    return asyncio.run(_asleep())


async def _asleep() -> int:
    async with Holdfast(url()) as other:
        return sum(each.number for each in await other.store.sagas.count() if each.state == "waiting")


def end_night(soon: float) -> None:
    """All wake after so many seconds: their night is moved into the past."""
    asyncio.run(_end_night(soon))


async def _end_night(soon: float) -> None:
    dawn = time.time() + soon
    is_file = url().startswith("sqlite")
    async with Holdfast(url()) as other, other.transaction() as tx:
        for sql, at in zip(_NIGHT[is_file], (dawn - shape.NIGHT, dawn), strict=True):
            await tx.execute(sql, at)
    if not is_file:  # what moved has left dead rows, as no real night does
        connection = await asyncpg.connect(url())
        await connection.execute("VACUUM ANALYZE holdfast.job, holdfast.step, holdfast.saga")
        await connection.close()


_NIGHT = {
    True: ("UPDATE holdfast_step SET first_at = $1", "UPDATE holdfast_queued SET run_at = $1 WHERE held = 'time'"),
    False: (
        "UPDATE holdfast.step SET first_at = to_timestamp($1)",
        "UPDATE holdfast.job SET run_at = to_timestamp($1) WHERE held = 'time'",
    ),
}  # fmt: skip


def workers(processes: int) -> list[list[str]]:
    command = [sys.executable, "-m", "bench.peers.saga_holdfast"]
    return [[*command, str(number), str(processes)] for number in range(processes)]


async def serve(which: int, of: int) -> None:
    async with hf, hf.worker(queues={"default": shape.SLOTS}):
        body.ready()
        if shape.STARTED:
            await shape.start_share(which, of, lambda job: saga.start(**job))
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(serve(*map(int, sys.argv[1:])))
