"""A fleet with a cache in virtual time: processes, a place in trouble, data that changes, and everything that is seen."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from dataclasses import dataclass, field

from holdfast.kernel.clock import monotonic, sleep
from holdfast.kernel.errors import StoreUnavailable
from holdfast.views.cache import Caches
from holdfast.views.cache_memory import MemoryCache
from holdfast.views.cache_place import Place

FRESH, STALE, LEASE, WAIT = 20.0, 100.0, 4.0, 30.0
LONGEST = 5.0  # seconds of a load


class LoadFailed(Exception):
    """What the data's owner says now and then."""


class Trouble:
    """The way to the shared place: slow, and in bad times it fails, hangs, or loses the answer to what it has done."""

    def __init__(self, shared, chance, *, faults):
        self._shared, self._chance, self._faults = shared, chance, faults
        self.is_dead = False

    def check_free(self):
        """There are no transactions."""

    def __getattr__(self, verb):
        async def asked(*args, **options):
            await sleep(self._chance.uniform(0, 0.05))
            fate = self._chance.random() if self._faults(monotonic()) else 1.0
            if self.is_dead or fate < 0.3:
                raise StoreUnavailable("cut off")
            if fate < 0.4:
                await sleep(1000)
            answer = await getattr(self._shared, verb)(*args, **options)
            if fate < 0.6:
                raise StoreUnavailable("the answer is lost")
            await sleep(self._chance.uniform(0, 0.05))
            return answer

        return asked


@dataclass
class Served:
    process: int
    key: str
    asked: float
    got: float
    version: int
    loaded: float  # when the load had ended


@dataclass
class Seen:
    served: list[Served] = field(default_factory=list)
    errors: list[BaseException] = field(default_factory=list)
    loads: list[tuple[int, str, float, float]] = field(default_factory=list)  # process, key, began, ended
    running: Counter = field(default_factory=Counter)
    most_in_process: int = 0
    most_in_fleet: int = 0
    invalidated: list[tuple[str, float, int]] = field(
        default_factory=list
    )  # key, when it was done, the version since
    owed: list[tuple[int, str, float, int]] = field(default_factory=list)  # by which process, and the same
    longest_wait: float = 0.0


class Process:
    def __init__(self, number, fleet, *, failing):
        self.number, self._fleet, self._failing = number, fleet, failing
        self.way = Trouble(fleet.shared, fleet.chance, faults=fleet.faults)
        self.caches = Caches()
        self.caches._places["store"] = Place("store", self.way)
        self.data = self.caches.declare(
            fresh=FRESH,
            stale=STALE,
            key="k:{name}",
            tags=("t:{name}",),
            lease=LEASE,
            wait=WAIT,
            timeout=60,
            on="store",
        )(self._load())

    def _load(self):
        seen, chance, fleet, number = self._fleet.seen, self._fleet.chance, self._fleet, self.number

        async def data(name: str) -> tuple[int, float]:
            began, version = monotonic(), fleet.versions[name]
            for place in ((number, name), name):
                seen.running[place] += 1
            seen.most_in_process = max(seen.most_in_process, seen.running[number, name])
            seen.most_in_fleet = max(seen.most_in_fleet, seen.running[name])
            try:
                await sleep(chance.uniform(0.01, LONGEST))
                if chance.random() < self._failing:
                    raise LoadFailed(name)
                return version, monotonic()
            finally:
                for place in ((number, name), name):
                    seen.running[place] -= 1
                seen.loads.append((number, name, began, monotonic()))

        return data

    async def read(self, name):
        asked, seen = monotonic(), self._fleet.seen
        try:
            version, loaded = await self.data(name)
        except Exception as error:
            seen.errors.append(error)
        else:
            seen.served.append(Served(self.number, name, asked, monotonic(), version, loaded))
        seen.longest_wait = max(seen.longest_wait, monotonic() - asked)

    async def die(self):
        """As by kill -9: what it was doing ends, and tells nobody."""
        self.way.is_dead = True
        await self.caches.stop()


class Fleet:
    """`plan` says what happens; `seen` is what did."""

    def __init__(self, seed, *, processes=3, failing=0.0, faults=lambda _: False):
        self.chance = random.Random(f"fleet:{seed}")
        self.shared, self.faults, self.seen = MemoryCache(), faults, Seen()
        self.versions = Counter()
        self.processes = [Process(number, self, failing=failing) for number in range(processes)]

    async def run(self, *, readers, seconds, writes=0.0, deaths=0, refreshes=0, names="ab"):
        async with asyncio.TaskGroup() as group:
            for _ in range(readers):
                group.create_task(self._reader(seconds, names))
            for _ in range(refreshes):
                group.create_task(self._refresher(seconds, names))
            if writes:
                group.create_task(self._writer(seconds, writes, names))
            for number in range(deaths):
                group.create_task(self._death(number, seconds))
        for process in self.processes:
            await process.caches.stop()
        return self.seen

    def _living(self):
        return self.chance.choice([each for each in self.processes if not each.way.is_dead])

    async def _reader(self, seconds, names):
        await sleep(self.chance.uniform(0, seconds))
        await self._living().read(self.chance.choice(names))

    async def _refresher(self, seconds, names):
        await sleep(self.chance.uniform(0, seconds))
        name, asked = self.chance.choice(names), monotonic()
        process, version = self._living(), self.versions[name]
        try:
            found = await process.data.refresh(name)
        except LoadFailed as error:
            self.seen.errors.append(error)
        else:
            assert found[0] >= version
            assert found[1] >= asked

    async def _writer(self, seconds, every, names):
        """Change the data, then invalidate. So seldom that no flight is outdated more than twice."""
        while monotonic() < seconds:
            await sleep(self.chance.uniform(every, 2 * every))
            name, process = self.chance.choice(names), self._living()
            self.versions[name] += 1
            version = self.versions[name]
            way = (
                process.data.invalidate(name)
                if self.chance.random() < 0.5
                else process.caches.invalidate_tags(f"t:{name}")
            )
            if await way:
                self.seen.invalidated.append((name, monotonic(), version))
            else:
                self.seen.owed.append((process.number, name, monotonic(), version))

    async def _death(self, number, seconds):
        await sleep(self.chance.uniform(0, seconds))
        await self.processes[number].die()
