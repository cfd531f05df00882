"""Jobs while their provider is down for three minutes: python -m bench.outage.jobs [SECONDS]. Both stores at once; kept in outage.json.

Jobs come all the time, five a second, before, during and after. It fails when a promise is broken: no job is dead, nobody is
charged while the breaker is open, the calls are within its probes, other jobs never wait, and all is done in a minute.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from rich.console import Console

from bench.outage.__main__ import ROOT, keep
from bench.outage.provider import Provider
from bench.servers import Servers
from holdfast import Holdfast
from holdfast.kernel.codec import encode
from holdfast.kernel.ids import new_id
from holdfast.store.records import JobRecord, NewJob
from tools.processes import Process, environment, worker_command

STORES = ("sqlite", "postgres")
WORKERS, SLOTS = 2, 8
WELL = 10.0  # seconds before
OPENING = 10.0  # seconds until all breakers must have opened
EVERY = 0.2  # seconds between two jobs
LATE = 60.0  # seconds within which all must be done


class Outage:
    """One fleet on one store."""

    def __init__(self, hf: Holdfast, provider: Provider, seconds: float) -> None:
        self._hf, self._provider, self._seconds = hf, provider, seconds
        self._calls: list[str] = []  # ids of jobs
        self._others: list[str] = []

    async def run(self) -> dict[str, Any]:
        putting = asyncio.create_task(self._put())
        try:
            await self._at(WELL + OPENING)
            opened = await self._charged()
            await self._at(WELL + self._seconds - 0.5)
            charged, held = await self._charged(), await self._held()
            others = await self._unfinished(self._others[:-10])
            await self._at(WELL + self._seconds)
        finally:
            putting.cancel()
        done = await self._all_done()
        return self._facts(charged - opened, held, len(others), done) | await self._ends()

    async def _put(self) -> None:
        from bench.outage.program import api, call, other  # noqa: PLC0415  it is told by the environment where the store is

        while True:
            calls = NewJob(id=new_id(), task=call.name, args=encode({}), guard=api.name)
            others = NewJob(id=new_id(), task=other.name, args=encode({}))
            await self._hf.store.jobs.enqueue([calls, others])
            self._calls.append(calls.id)
            self._others.append(others.id)
            await asyncio.sleep(EVERY)

    async def _at(self, moment: float) -> None:
        await asyncio.sleep(max(0.0, moment - self._provider.time()))

    async def _records(self, ids: list[str]) -> list[JobRecord]:
        found = [await self._hf.jobs.get(each) for each in ids]
        return [each for each in found if each is not None]

    async def _unfinished(self, ids: list[str]) -> list[JobRecord]:
        return [each for each in await self._records(ids) if each.state.value != "succeeded"]

    async def _charged(self) -> int:
        """Attempts of jobs that wait for the provider."""
        return sum(each.attempt for each in await self._unfinished([*self._calls]))

    async def _held(self) -> int:
        return sum(each.number for each in await self._hf.store.holds.gated())

    async def _all_done(self) -> float:
        """Seconds from the end of the outage until nothing is left."""
        well = WELL + self._seconds
        while left := await self._unfinished(self._calls):
            if self._provider.time() > well + 2 * LATE:
                raise SystemExit(f"{len(left)} jobs are not done after {2 * LATE:g} s, such as {left[0]}.")
            await asyncio.sleep(0.2)
        return self._provider.time() - well

    async def _ends(self) -> dict[str, Any]:
        found = await self._records(self._calls)
        return {
            "jobs": len(found),
            "dead": sum(each.state.value == "dead" for each in found),
            "attempts": max(each.attempt for each in found),
            "jobs_of_one_attempt": sum(each.attempt == 1 for each in found),
        }

    def _facts(self, charged: int, held: int, others: int, done: float) -> dict[str, Any]:
        from bench.outage.program import COOLDOWN, FAILURES  # noqa: PLC0415  as above

        well = WELL + self._seconds
        answered = [at for at, status in self._provider.calls if at >= well and status == 200]
        return {
            "seconds": self._seconds,
            "calls_while_down": sum(WELL <= at < well for at, _ in self._provider.calls),
            "calls_allowed": WORKERS * (SLOTS + FAILURES) + round(self._seconds / (0.8 * COOLDOWN) + 1),
            "charged_while_open": charged,
            "held": held,
            "others_that_waited": others,
            "first_answer_after": round(answered[0] - well, 1),
            "all_done_after": round(done, 1),
        }


async def measure(store: str, url: str, folder: Path, seconds: float) -> dict[str, Any]:
    provider = Provider(down=(WELL, WELL + seconds), capacity=1000)
    await Holdfast(url).migrate()
    async with Holdfast(url) as hf, _workers(url, folder, provider):
        found = {"store": store} | await Outage(hf, provider, seconds).run()
    _check(found)
    return found


@asynccontextmanager
async def _workers(url: str, folder: Path, provider: Provider) -> AsyncIterator[None]:
    workers: list[Process] = []
    async with provider.open():
        settings = environment([ROOT], BENCH_URL=url, BENCH_PORT=str(provider.port))
        try:
            for number in range(WORKERS):
                command = worker_command("bench.outage.program:hf", "-c", str(SLOTS), lease=30)
                workers.append(Process(command, folder, settings, folder / f"log-{number}"))
            for worker in workers:
                await worker.says("takes jobs from")
            provider.begin()
            yield
        finally:
            for worker in workers:
                worker.destroy()


def _check(found: dict[str, Any]) -> None:
    kept = {
        "no job is dead": found["dead"] == 0,
        "nobody is charged while it is open": found["charged_while_open"] == 0,
        "the calls are within the probes": found["calls_while_down"] <= found["calls_allowed"],
        "other jobs go on": found["others_that_waited"] == 0,
        "all is done in a minute": found["all_done_after"] < LATE,
    }
    if broken := [promise for promise, is_kept in kept.items() if not is_kept]:
        raise SystemExit(f"Broken: {', '.join(broken)}. Found: {found}")


async def main(seconds: float) -> None:
    with Servers() as servers:
        places = {store: servers.folder / f"outage-{store}" for store in STORES}
        for place in places.values():
            place.mkdir()
        urls = {store: servers.fresh(store, place) for store, place in places.items()}
        os.environ["BENCH_URL"] = urls["sqlite"]  # only the names of the program's tasks are used here
        found = await asyncio.gather(*(measure(each, urls[each], places[each], seconds) for each in STORES))
    keep({"jobs": found})
    Console().print(found)


if __name__ == "__main__":
    asyncio.run(main(float(sys.argv[1]) if sys.argv[1:] else 180.0))
