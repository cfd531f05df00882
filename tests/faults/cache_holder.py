"""A process that loads the value of a key, and does not end until a file says so. Run by test_cache_faults.py."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from holdfast import Holdfast
from holdfast.kernel.telemetry import subscribe

URL, REDIS, FOLDER = sys.argv[1], sys.argv[2], Path(sys.argv[3])
hf = Holdfast(URL, cache=REDIS or None)


def say(*words):
    sys.stdout.write(f"{words}\n")
    sys.stdout.flush()


subscribe(lambda name, fields: name.startswith("cache.") and say(name, fields))


@hf.cached(fresh=0.001, stale=60, key="held:{user}", tags=("user:{user}",), lease=2, wait=0)
async def held(user: int) -> str:
    (FOLDER / "loading").touch()
    while not (FOLDER / "let-go").exists():
        await asyncio.sleep(0.01)
    return "theirs"


async def main():
    async with hf:
        say("got", await held(7))
        while not (FOLDER / "let-go").exists() or hf.cache.flights._all:
            await asyncio.sleep(0.01)
        say("over")


asyncio.run(main())
