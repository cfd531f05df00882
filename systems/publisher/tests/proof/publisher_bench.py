"""The publisher's bench: posts a second that its workers sustain when DeviantArt answers at once, what one costs, and their memory."""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path

import psutil
from proof_world import MAIN, SMALL, TIMES, WHOLE, World

from holdfast.vault import new_key
from tools.processes import Process
from tools.proving.crew import Crew
from tools.proving.figures import Findings
from tools.proving.place import Place, ports
from tools.waiting import until

AT_ONCE = {"user_calls": 10**9, "app_calls": 10**9, "answers_in": 0.0}  # settings of the simulator
POSTS, SMALL_POSTS = 600, 60  # of each round
ROUNDS = (1, 2)  # worker processes
SLOTS = "10"
PATIENT = {"PUBLISHER_CALL_TIMEOUT_S": "30"}


async def prove(place: Place) -> Findings:
    place.way = place.url  # no wire between: it is a process of its own that would be measured, too
    world = World(place, SMALL if place.is_small else WHOLE, Crew(place.folder))
    try:
        os.environ["PUBLISHER_KEYS"] = new_key("bench")
        await world.start_simulator()
        await world.ask("PUT", "settings", AT_ONCE)
        os.environ.update({"DATABASE_URL": place.url} | world.told() | PATIENT)
        from publisher.program import hf
        from publisher.tables import Base

        await hf.migrate()
        async with hf:
            async with hf.sqlalchemy().begin() as connection:
                await connection.run_sync(Base.metadata.create_all)
            return await Bench(world).all()
    finally:
        await world.crew.end()


class Bench:
    def __init__(self, world: World) -> None:
        self.world, self.findings = world, Findings()

    async def all(self) -> Findings:
        import proof_people as people

        place, size = self.world.place, self.world.size
        load = os.getloadavg()[0]
        place.tell(
            f"{place.store}: {size.artists} artists, {SLOTS} slots in a worker, DeviantArt answers at once"
        )
        place.tell(" ".join(f"{name}={value}" for name, value in TIMES.items()))
        place.tell(f"{os.cpu_count()} cores, load of others before it begins: {load:.1f}")
        self.findings.line["load_before"] = f"{load:.1f}"
        artists = await people.artists(size.artists)
        number = SMALL_POSTS if place.is_small else POSTS
        for turn, workers in enumerate(ROUNDS):
            await self._round(workers, await people.drafts(artists, number, turn * number))
        return self.findings

    async def _round(self, workers: int, drafts) -> None:
        """All are due before it begins; the clock runs from the first upload to the last receipt."""
        from publisher.core import PUBLISHING, hf
        from publisher.desk import scheduling

        await hf.queues.pause(PUBLISHING)
        now = await hf.now()
        for artist, post in drafts:
            await scheduling.schedule(artist.id, post, now, jitter=0)
        running = await self._workers(workers)
        simulator = psutil.Process(self.world.crew.of("simulator")[0].process.pid)
        before = [_cpu(each) for each in (*running, simulator)]
        began = time.monotonic()
        await hf.queues.resume(PUBLISHING)
        await until(self._all_out, 300)
        took = time.monotonic() - began
        spent = [_cpu(each) - earlier for each, earlier in zip((*running, simulator), before, strict=True)]
        memory = max(each.memory_info().rss for each in running)
        self._tell(workers, len(drafts), took, spent, memory)
        self.findings.must(
            "workers that ended by an error",
            [code for code in await self.world.crew.leave(["worker"]) if code],
        )
        self._check(await self.world.ask("GET", "ledger"))

    async def _workers(self, number: int) -> list[psutil.Process]:
        free = ports(number)

        def start(place: int, log: Path) -> Process:
            given = PATIENT | {"HEALTH_CHECK_PORT": str(free[place]), "PUBLISHER_CONCURRENCY": SLOTS}
            return self.world.process([*MAIN, "worker"], log, **given)

        self.world.crew.role("worker", number, start)
        await until(lambda: sum(each.name is not None for each in self.world.crew.of("worker")) == number, 60)
        return [psutil.Process(each.process.pid) for each in self.world.crew.of("worker")]

    async def _all_out(self) -> bool:
        from proof_count import open_posts

        await asyncio.sleep(0.1)
        states = await open_posts()
        return not states["scheduled"] and not states["publishing"]

    def _tell(self, workers: int, posts: int, took: float, spent: list[float], memory: int) -> None:
        *own, outside = spent
        rate, name = posts / took, f"{workers} worker{'s' if workers > 1 else ''}"
        self.findings.add(f"{name}: posts a second", f"{rate:.1f}", f"{posts} in {took:.1f} s")
        self.findings.add("  CPU of the workers for each", f"{1000 * sum(own) / posts:.1f} ms")
        self.findings.add("  CPU of the simulator for each", f"{1000 * outside / posts:.1f} ms")
        self.findings.add("  memory of a worker, at its end", f"{memory / 2**20:.0f} MB")
        self.findings.line[f"posts_per_s_{workers}"] = f"{rate:.1f}"

    def _check(self, ledger: list[dict]) -> None:
        titles = [each["title"] for each in ledger if each["kind"] == "published"]
        self.findings.must("published twice", sorted({each for each in titles if titles.count(each) > 1}))


def _cpu(process: psutil.Process) -> float:
    times = process.cpu_times()
    return times.user + times.system
