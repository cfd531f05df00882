"""What goes wrong: kills, freezes past the lease, a wire that is cut, a desk that is restarted, and every fault of the outside in turn."""

from __future__ import annotations

import asyncio

from proof_world import LEASE, World

from tools.proving.crew import Member

FROZEN = LEASE + 1.5
# Endpoint, kind, share of the calls, and how long a block lasts: a hundredth of what is usual, too.
OUTSIDE = (
    (("stash/publish", "lost", 0.12, 0), ("stash/submit", "user-429", 0.05, 1.0)),
    (("stash/publish", "silent", 0.04, 0), ("stash/submit", "server-error", 0.08, 0)),
    (("stash/publish", "blank", 0.10, 0), ("stash/publish", "expire-token", 0.05, 0)),
    (("stash/publish", "half", 0.02, 0), ("stash/submit", "blank", 0.05, 0)),
    (("stash/publish", "html-504", 0.05, 0), ("gallery/all", "server-error", 0.30, 0)),
    (("stash/submit", "app-429", 0.01, 0.5), ("stash/publish", "server-error", 0.05, 0)),
    (("stash/publish", "user-429", 0.05, 1.0), ("stash/submit", "refused", 0.05, 0)),
    (("stash/publish", "refused", 0.05, 0), ("stash/submit", "html-504", 0.05, 0)),
)
TURN = 2.0  # seconds of each


class Trouble:
    """`begin` and `end`; what was done is counted."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._tasks: list[asyncio.Task[None]] = []
        self.kills = self.freezes = self.cuts = self.restarts = self.api_restarts = 0
        self._heard = 0  # wishes that were fulfilled when a desk was killed last

    def begin(self) -> None:
        size = self._world.size
        every = [
            (size.kills_every, self._kill),
            (size.freezes_every, self._freeze),
            (1.0, self._restart_desk),
        ]
        if size.apis > 1:
            every.append((8.0, self._restart_api))
        if self._world.place.wire is not None:
            every.append((size.cuts_every, self._cut))
        self._tasks = [asyncio.create_task(self._again(*each)) for each in every]
        self._tasks.append(asyncio.create_task(self._outside()))

    async def end(self) -> None:
        for task in self._tasks:
            task.cancel()
        for found in await asyncio.gather(*self._tasks, return_exceptions=True):
            if isinstance(found, Exception):
                raise found
        await self._world.ask("DELETE", "faults")

    async def _again(self, every: float, act) -> None:
        while True:
            await asyncio.sleep(every * self._world.place.chance.uniform(0.5, 1.5))
            await act()

    async def now(self) -> None:
        """One more of each, in the moment in which there is most to do."""
        await asyncio.sleep(0.5)
        await self._kill()
        self._tasks.append(asyncio.create_task(self._freeze()))

    def _ready(self) -> list[Member]:
        """Workers that take jobs. A busy machine starts new ones slowly: most are there at any time, or nothing would go on."""
        found = [each for each in self._world.crew.of("worker") if each.name is not None]
        return found if len(found) > self._world.size.workers // 2 else []

    async def _kill(self) -> None:
        if workers := self._ready():
            self._world.crew.kill(self._world.place.chance.choice(workers))
            self.kills += 1

    async def _freeze(self) -> None:
        if workers := self._ready():
            self.freezes += 1
            await self._world.crew.freeze(self._world.place.chance.choice(workers), FROZEN)

    async def _restart_desk(self) -> None:
        """In the middle of its work: not before it has done something."""
        file = self._world.folder / "acks.jsonl"
        done = len(file.read_bytes().splitlines()) if file.exists() else 0
        for desk in self._world.crew.of("desk"):
            if done >= self._heard + 10:
                self._world.crew.kill(desk)
                self.restarts += 1
                self._heard = done

    async def _restart_api(self) -> None:
        """One after the other, when the one before has left, and another answers in its place."""
        members = self._world.crew.of("api")
        ready = all("Uvicorn running" in each.process.log and not each.returns for each in members)
        if ready and len(members) == self._world.size.apis:
            self._world.crew.restart(members[self.api_restarts % len(members)])
            self.api_restarts += 1

    async def _cut(self) -> None:
        wire = self._world.place.wire
        match self.cuts % 3:
            case 0:
                wire.hang_up()
            case 1:
                wire.lose_answer_to(b"COMMIT\0")
            case _:
                wire.lose_request(b"COMMIT\0")
        self.cuts += 1

    async def _outside(self) -> None:
        turn = 0
        while True:
            await self._world.ask("DELETE", "faults")
            for endpoint, kind, share, seconds in OUTSIDE[turn % len(OUTSIDE)]:
                fault = {"endpoint": endpoint, "kind": kind, "share": share, "seconds": seconds}
                await self._world.ask("PUT", "faults", fault)
            turn += 1
            await asyncio.sleep(TURN)
