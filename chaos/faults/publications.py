"""Publications to a service without idempotency keys, while workers are killed at random and around the call."""

from __future__ import annotations

import msgspec

from chaos import arming
from chaos.faults.deaths import Kills
from chaos.fleet import Size
from chaos.world import World

_AROUND = ("effect.begun", "effect.called")


class Publications(Kills):
    """The provider accepts and does not answer, accepts late, refuses, hangs up. It goes on until all were asked for."""

    name = "publications, killed around the call"

    def __init__(self, number: int) -> None:
        self._number = number

    def size(self, usual: Size) -> Size:
        kinds = "publish,publish,publish,publish_blindly"
        return msgspec.structs.replace(usual, kinds=kinds, callers=1, rate=16.0, count=self._number)

    def is_over(self, world: World, injections: int, wanted: int) -> bool:
        return not world.fleet.asks

    async def inject(self, world: World) -> int:
        armed = [
            world.fleet.start_worker(**{arming.VARIABLE: f"{point}:{world.chance.randint(1, 3)}"})
            for point in _AROUND
        ]
        killed = await super().inject(world)
        for process in armed:
            if process.alive:
                process.destroy()
            killed += 1
        world.kills += len(armed)
        return killed

    def _hits_callers(self) -> bool:
        """Its one caller counts what was acknowledged."""
        return False
