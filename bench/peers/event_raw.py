"""The raw clients, redis-py and nats-py: what a broker can do by itself, acknowledged after the handler."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from typing import Any

import nats
import redis.asyncio as redis
from nats.js.api import AckPolicy, ConsumerConfig
from redis.exceptions import ResponseError

from bench import body
from bench.peers import event_rows
from bench.peers.event_rows import Rows
from bench.place import broker

SUBJECT, GROUP, BATCH = "orders", "bench", 100


class Redis:
    async def open(self) -> None:
        self._client: Any = redis.from_url(broker())

    async def close(self) -> None:
        await self._client.aclose()

    async def publish(self, message: bytes) -> None:
        await self._client.xadd(SUBJECT, {"body": message})

    async def listen(self, rows: Rows) -> None:
        try:
            await self._client.xgroup_create(SUBJECT, GROUP, id="$", mkstream=True)
        except ResponseError as error:
            if "BUSYGROUP" not in str(error):
                raise
        body.ready()
        name = f"worker-{os.getpid()}"
        while True:
            found = await self._client.xreadgroup(GROUP, name, {SUBJECT: ">"}, count=BATCH, block=1_000)
            for _, messages in found or []:
                await asyncio.gather(*(_handle(rows, fields[b"body"]) for _, fields in messages))
                await self._client.xack(SUBJECT, GROUP, *(mark for mark, _ in messages))


class Nats:
    async def open(self) -> None:
        self._client: Any = await nats.connect(broker())
        self._stream: Any = self._client.jetstream()
        await self._stream.add_stream(name="bench", subjects=[SUBJECT])  # in files, as it comes

    async def close(self) -> None:
        await self._client.close()

    async def publish(self, message: bytes) -> None:
        await self._stream.publish(SUBJECT, message)

    async def listen(self, rows: Rows) -> None:
        config = ConsumerConfig(ack_policy=AckPolicy.EXPLICIT)
        inbox = await self._stream.subscribe(
            SUBJECT, queue=GROUP, durable=GROUP, config=config, manual_ack=True
        )
        body.ready()

        async def listen() -> None:
            async for message in inbox.messages:
                await _handle(rows, message.data)
                await message.ack()

        await asyncio.gather(*(listen() for _ in range(event_rows.HANDLERS if event_rows.WITH_ROWS else 1)))


async def _handle(rows: Rows, message: bytes) -> None:
    job = json.loads(message)
    body.begin(job["sent"], job["number"])
    await rows.write_alone("handled", job)
    body.count()


Client: Any = Redis if broker().startswith("redis") else Nats


class Producer:
    async def open(self) -> None:
        self._rows, self._client = Rows(event_rows.CALLERS), Client()
        await self._rows.open()
        await self._client.open()

    async def close(self) -> None:
        await self._client.close()
        await self._rows.close()

    async def one(self, job: dict[str, Any]) -> int:
        await self._rows.write_alone("placed", job)
        committed = time.monotonic_ns()
        await self._client.publish(json.dumps(job).encode())
        return committed


prepare = event_rows.prepare
if event_rows.WITH_ROWS:
    handled = event_rows.count


def workers(processes: int) -> list[list[str]]:
    return [[sys.executable, "-m", "bench.peers.event_raw"]] * processes


async def serve() -> None:
    rows, client = Rows(event_rows.HANDLERS), Client()
    await rows.open()
    await client.open()
    await client.listen(rows)


if __name__ == "__main__":
    asyncio.run(serve())
