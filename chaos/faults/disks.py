"""A disk that is full: the SQLite file stands on a small tmpfs, and something else takes the rest of it."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from pathlib import Path

from chaos.faults.fault import Fault
from chaos.world import World

SMALL = "CHAOS_DISK"  # a folder with a small file system of its own


class FullDisk(Fault):
    name = "disk full (tmpfs)"
    stores = ("sqlite",)

    async def inject(self, world: World) -> int:
        await world.nap(1.0)
        began, ballast = time.monotonic(), Path(os.environ[SMALL], "ballast")
        _fill(ballast)
        await world.nap(3.0, shortest=1.0)
        ballast.unlink()
        await world.recovered(world.happened(began))
        return 1


def _fill(file: Path) -> None:
    """With the last byte that fits."""
    with file.open("wb", buffering=0) as ballast, suppress(OSError):
        while True:
            ballast.write(bytes(4096))
