"""Two versions of the program, deployed in turn: the older one does not know a task, and has one step less."""

from __future__ import annotations

import time

import msgspec

from chaos import settings
from chaos.faults.fault import Fault
from chaos.fleet import Size
from chaos.world import World


class Deploys(Fault):
    """All workers leave in order and the other version takes their places, again and again. The newest stays."""

    name = "two versions in turn"
    newer = frozenset({"novelty"})

    def size(self, usual: Size) -> Size:
        return msgspec.structs.replace(usual, kinds=f"{usual.kinds},novelty,novelty")

    async def inject(self, world: World) -> int:
        began, given = time.monotonic(), world.fleet.given
        given[settings.VERSION] = "1" if given.get(settings.VERSION, "2") == "2" else "2"
        await world.fleet.replace_workers()
        await world.nap(2.0)
        await world.recovered(world.happened(began))
        return 1

    async def heal(self, world: World) -> None:
        world.fleet.given[settings.VERSION] = "2"
        await world.fleet.replace_workers()
