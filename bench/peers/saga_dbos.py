"""DBOS on PostgreSQL: workflows of five steps, from its queue or by start_workflow; or one long sleep.

Its worker: python -m bench.peers.saga_dbos NUMBER OF.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from typing import Any

from dbos import DBOS

from bench import body
from bench.peers import dbos
from bench.sagas import shape

left, prepare = dbos.left, dbos.prepare
_MANY = 1_000_000  # a workflow that sleeps keeps its place in the queue


@DBOS.step(name="book")
async def book(place: int) -> int:
    return place


@DBOS.step(name="cancel")
async def cancel(place: int) -> None:
    """Nothing fails here, so nobody calls it."""


@DBOS.workflow(name="saga")
async def saga(job: dict[str, Any]) -> int:
    """How its manual writes a saga: what was done is undone by steps, in the handler of the error."""
    booked: list[int] = []
    try:
        for place in range(shape.STEPS):
            booked.append(await book(place))
        await body.run_async(job)
    except Exception:
        for place in reversed(booked):
            await cancel(place)
        raise
    return sum(booked)


@DBOS.workflow(name="sleeping")
async def sleeping(job: dict[str, Any]) -> None:
    await DBOS.sleep_async(shape.NIGHT)
    await body.run_async(job)


class Producer(dbos.Producer):
    workflow = "sleeping" if shape.FORM == "sleep" else "saga"

    def many(self, jobs: Sequence[dict[str, Any]]) -> None:
        if shape.STARTED:
            shape.note_wanted(len(jobs))
        else:
            super().many(jobs)


if shape.STARTED:

    def hold() -> None:
        """The door is closed until it is opened."""

    go = shape.open_door


def asleep() -> int:
    return dbos.count("SELECT count(*) FROM dbos.operation_outputs WHERE function_name = 'DBOS.sleep'")


def workers(processes: int) -> list[list[str]]:
    command = [sys.executable, "-m", "bench.peers.saga_dbos"]
    return [[*command, str(number), str(processes)] for number in range(processes)]


async def serve(which: int, of: int) -> None:
    body.ready()
    if shape.STARTED:
        await shape.start_share(which, of, _start)
    await asyncio.Event().wait()


async def _start(job: dict[str, Any]) -> None:
    """It has no other bound on how many run at once than that its callers wait."""
    handle = await DBOS.start_workflow_async(saga, job)
    await handle.get_result()


if __name__ == "__main__":
    dbos.launch(f"executor-{sys.argv[1]}", concurrency=_MANY if shape.FORM == "sleep" else shape.SLOTS)
    asyncio.run(serve(*map(int, sys.argv[1:])))
