"""What goes wrong, in turn: each part is killed, frozen or cut off, and the outside misbehaves all the time."""

from __future__ import annotations

import asyncio
from collections import Counter

from portal_world import LEASE, World

FAULTS = {
    "stripe": (
        ("unavailable", 0.08),
        ("lost", 0.06),
        ("server-error", 0.04),
        ("429", 0.02),
    ),  # a fifth of all calls
    "smtp": (("451", 0.05), ("lost", 0.05), ("refused", 0.05)),
    "clamd": (("error", 0.05), ("refused", 0.05)),
}
ENDPOINTS = {"stripe": "*", "smtp": "data", "clamd": "scan"}
FROZEN = 2.5  # seconds of a part outside: short of the time-out, and past it


class Trouble:
    """`begin` and `end`; what was done is counted."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._task: asyncio.Task[None] | None = None
        self._frozen: set[asyncio.Task[None]] = set()
        self.done: Counter[str] = Counter()

    async def begin(self) -> None:
        for name, faults in FAULTS.items():
            for kind, share in faults:
                fault = {"endpoint": ENDPOINTS[name], "kind": kind, "share": share}
                await self._world.ask(name, "PUT", "faults", fault)
        self._task = asyncio.create_task(self._go_on())

    async def end(self) -> None:
        assert self._task is not None
        self._task.cancel()
        [found] = await asyncio.gather(self._task, return_exceptions=True)
        if isinstance(found, Exception):
            raise found
        await asyncio.gather(*self._frozen)
        for name in FAULTS:
            await self._world.ask(name, "DELETE", "faults")

    async def _go_on(self) -> None:
        acts = [
            self._kill("worker"),
            self._kill("api"),
            self._freeze("worker", LEASE + 1.5),
            self._kill("clamd"),
        ]
        acts += [
            self._freeze("stripe", FROZEN),
            self._cut(),
            self._freeze("smtp", FROZEN),
            self._freeze("api", FROZEN),
        ]
        turn = 0
        while True:
            await asyncio.sleep(self._world.size.every * self._world.place.chance.uniform(0.5, 1.5))
            await acts[turn % len(acts)]()
            turn += 1

    def _kill(self, role: str):
        async def act() -> None:
            members = self._world.crew.of(role)
            if members:
                self._world.crew.kill(self._world.place.chance.choice(members))
                self.done[f"{role} killed"] += 1

        return act

    def _freeze(self, role: str, seconds: float):
        async def act() -> None:
            members = self._world.crew.of(role)
            if members:
                self.done[f"{role} frozen"] += 1
                member = self._world.place.chance.choice(members)
                self._frozen.add(asyncio.create_task(self._world.crew.freeze(member, seconds)))

        return act

    def _cut(self):
        async def act() -> None:
            wire = self._world.place.wire
            if wire is None:
                return
            match self.done["wire cut"] % 3:
                case 0:
                    wire.hang_up()
                case 1:
                    wire.lose_answer_to(b"COMMIT\0")
                case _:
                    wire.lose_request(b"COMMIT\0")
            self.done["wire cut"] += 1

        return act
