"""Run a job and hear of its end; run something in a forked child."""

from __future__ import annotations

import asyncio
import os

from waiting import until

from holdfast import Backoff

QUICK = Backoff(attempts=3, first=0.01, ceiling=0.02)


async def result_of(hf, task, *args, seconds=10, **options):
    handle = await task.options(**options).enqueue(*args)
    return await handle.result(seconds)


async def record_of(hf, task, *args, state):
    handle = await task.enqueue(*args)

    async def there():
        record = await handle.record()
        return record if record.state == state else None

    return await until(there)


def in_child(action):
    """What a forked child says: its event loop is a new one, everything else is inherited."""
    reading, writing = os.pipe()
    if (child := os.fork()) == 0:
        try:
            asyncio._set_running_loop(None)
            try:
                said = asyncio.run(action())
            except BaseException as error:
                said = f"{type(error).__name__}: {error}"
            os.write(writing, str(said).encode())
        finally:
            os._exit(0)
    os.close(writing)
    os.waitpid(child, 0)
    with os.fdopen(reading) as answer:
        return answer.read()
