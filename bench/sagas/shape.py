"""What a saga of the bench is, for all systems alike. Only the standard library: it also runs beside the peers."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from typing import Any

from bench.place import arguments, folder

STEPS = 5
SLOTS = 100  # sagas at once, in each process
CALLERS = 100  # that start sagas at once, in each process
NIGHT = 86_400.0  # seconds for which a saga sleeps that is to sleep
FORM = os.environ.get("BENCH_FORM", "undo")  # undo, plain, sleep
STARTED = bool(os.environ.get("BENCH_STARTED"))  # by the processes that run them, not before


def note_wanted(number: int) -> None:
    """How many are to be started, by those who will run them."""
    with (folder() / "wanted").open("ab") as wanted:
        wanted.write(b"." * number)


def open_door() -> None:
    (folder() / "go").touch()


async def start_share(which: int, of: int, start: Callable[[dict[str, Any]], Awaitable[Any]]) -> None:
    """Once the door is open: every so many-th is this process's, many callers at once."""
    while not (folder() / "go").exists():
        await asyncio.sleep(0.005)
    numbers = iter(range(which, (folder() / "wanted").stat().st_size, of))

    async def call() -> None:
        for number in numbers:
            await start(arguments(number))

    await asyncio.gather(*(call() for _ in range(CALLERS)))
