"""One of the processes of a stampede: many readers of one key at once, when a file says so. Run by test_stampede.py."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path

from holdfast import Holdfast
from holdfast.views import cache_place

URL, REDIS, FOLDER, NAME, READERS = (*sys.argv[1:3], Path(sys.argv[3]), sys.argv[4], int(sys.argv[5]))
cache_place.PATIENCE = 120.0  # on a busy machine a slow answer is not a dead place

hf = Holdfast(URL, cache=REDIS or None)


@hf.cached(fresh=36_000, stale=72_000, key="crowd:{name}", lease=120, wait=240)
async def crowd(name: str) -> list[int]:
    with (FOLDER / "loads").open("a") as file:
        file.write(f"{os.getpid()}\n")
    number = len((FOLDER / "loads").read_text().splitlines())
    await asyncio.sleep(0.3)
    return [number]


async def told(name):
    while not (FOLDER / name).exists():
        await asyncio.sleep(0.01)


def tell(name, text=""):
    """All of it at once."""
    (FOLDER / f".{name}").write_text(text)
    (FOLDER / f".{name}").rename(FOLDER / name)


async def main():
    async with hf:
        for turn in ("first", "second"):
            tell(f"ready-{turn}-{NAME}")
            await told(f"go-{turn}")
            found = await asyncio.gather(*(crowd("all") for _ in range(READERS)))
            tell(f"done-{turn}-{NAME}", json.dumps([each[0] for each in found]))
        await told("end")


asyncio.run(main())
