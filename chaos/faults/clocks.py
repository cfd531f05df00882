"""Clocks of workers that are wrong and jump by hours and days. The store's clock decides, and stays.

There is no library here that shifts a process's clock as a whole, so Python's own `time.time` is shifted, before anything else
is imported. On SQLite the machine's clock is the store's, and nothing would be shifted but that one.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from time import monotonic

from chaos.faults.fault import Fault
from chaos.place import Place
from chaos.world import World

SHIFTED = """
import os, time
from pathlib import Path

_true = time.time

def _shifted():
    try:
        return _true() + float(Path(os.environ["CHAOS_CLOCK"]).read_text() or 0)
    except OSError:
        return _true()

time.time = _shifted
time.time_ns = lambda: int(_shifted() * 1e9)
"""
_OFFSETS = (3600.0, -3600.0, 86_400.0, -7.0, 0.0, 59.0)


class Clocks(Fault):
    name = "workers' clocks jump"
    stores = ("postgres",)
    _file: Path

    @asynccontextmanager
    async def around(self, place: Place) -> AsyncIterator[None]:
        (place.folder / "sitecustomize.py").write_text(SHIFTED)
        self._file = place.folder / "clock"
        yield

    async def inject(self, world: World) -> int:
        fleet = world.fleet
        if not fleet.given:
            fleet.given["CHAOS_CLOCK"], fleet.folders = str(self._file), [world.place.folder]
            await fleet.replace_workers()
        began = monotonic()
        self._file.write_text(str(world.chance.choice(_OFFSETS)))
        await world.nap(2.0)
        world.happened(began)
        return 1
