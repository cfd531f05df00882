"""A process that schedules and cancels for artists, as the API does: it may be killed at any moment, and another goes on.

Each line of `orders.jsonl` is one wish; what was acknowledged stands in `acks.jsonl`. It ends when there is no wish left.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import msgspec
from publisher.core import hf
from publisher.desk import scheduling
from publisher.desk.refusals import Refusal, TooLate

from holdfast.errors import StoreUnavailable, TransactionEnded

PARALLEL = 8


def read(file: Path) -> list[dict]:
    """Without a last line that was cut off by a kill."""
    text = file.read_text() if file.exists() else ""
    return [msgspec.json.decode(line) for line in text.splitlines(keepends=True) if line.endswith("\n")]


async def fulfil(order: dict) -> str:
    """What the artist is told."""
    artist, post = order["artist"], order["post"]
    try:
        match order["wish"]:
            case "schedule":
                at = await hf.now() if order["at"] is None else order["at"]
                await scheduling.schedule(artist, post, at, jitter=0)
            case "cancel":
                await scheduling.cancel(artist, post)
            case "now":
                await scheduling.publish_now(artist, post)
    except TooLate as refused:
        return f"too late: {refused.state}"
    except Refusal as refused:
        return f"refused: {refused}"
    return "done"


async def fulfilled(order: dict) -> str:
    """Where the wire is cut nothing was stored, so it is asked again."""
    for _ in range(20):
        try:
            return await fulfil(order)
        except (TransactionEnded, StoreUnavailable):
            await asyncio.sleep(0.2)
    return await fulfil(order)


async def main(folder: Path) -> None:
    acknowledged = {(each["wish"], each["post"]) for each in read(folder / "acks.jsonl")}
    orders = [
        each for each in read(folder / "orders.jsonl") if (each["wish"], each["post"]) not in acknowledged
    ]
    room = asyncio.Semaphore(PARALLEL)
    with (folder / "acks.jsonl").open("ab", buffering=0) as acks:

        async def one(order: dict) -> None:
            async with room:
                told = await fulfilled(order)
            acks.write(msgspec.json.encode(order | {"told": told}) + b"\n")

        async with hf:
            await asyncio.gather(*map(one, orders))


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
