"""FastStream on Redis Streams or NATS JetStream, as the broker's URL says: acknowledged by hand, no outbox and no inbox."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
import time
from typing import Any

from faststream import AckPolicy, FastStream

from bench import body
from bench.peers import event_rows
from bench.peers.event_rows import Rows
from bench.place import broker as address

SUBJECT, GROUP = "orders", "bench"
SLOTS = 90  # each may acknowledge at once, and redis-py has at most 100 connections
rows = Rows(event_rows.HANDLERS)

if address().startswith("redis"):
    from faststream.redis import RedisBroker, RedisStreamMessage, StreamSub

    broker: Any = RedisBroker(address(), logger=None)
    _where: Any = {
        "stream": StreamSub(SUBJECT, group=GROUP, consumer=f"worker-{os.getpid()}", max_records=SLOTS)
    }
    _to: Any = {"stream": SUBJECT}
    Message: Any = RedisStreamMessage
else:
    from faststream.nats import JStream, NatsBroker, NatsMessage

    broker = NatsBroker(address(), logger=None)
    _stream = JStream("bench", subjects=[SUBJECT], declare=True)  # in files, as it comes
    _where = {"subject": SUBJECT, "stream": _stream, "queue": GROUP, "durable": GROUP}
    _to = {"subject": SUBJECT, "stream": "bench"}
    Message = NatsMessage


@broker.subscriber(**_where, ack_policy=AckPolicy.MANUAL, max_workers=SLOTS)
async def handle(job: dict[str, Any], message: Message) -> None:
    body.begin(job["sent"], job["number"])
    await rows.write("handled", job)
    await message.ack()
    body.count()


class Producer:
    async def open(self) -> None:
        self._rows = Rows(event_rows.CALLERS)
        await self._rows.open()
        await broker.connect()

    async def close(self) -> None:
        await broker.stop()
        await self._rows.close()

    async def one(self, job: dict[str, Any]) -> int:
        await self._rows.write("placed", job)
        committed = time.monotonic_ns()
        await broker.publish(job, **_to)
        return committed


prepare = event_rows.prepare
if event_rows.WITH_ROWS:
    handled = event_rows.count


def workers(processes: int) -> list[list[str]]:
    return [[sys.executable, "-m", "bench.peers.event_faststream"]] * processes


async def serve() -> None:
    await rows.open()
    program = FastStream(broker, logger=None)
    program.after_startup(body.ready)
    await program.run()


if __name__ == "__main__":
    logging.disable(logging.INFO)
    asyncio.run(serve())
