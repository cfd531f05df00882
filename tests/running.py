"""Run a job and hear of its end."""

from __future__ import annotations

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
