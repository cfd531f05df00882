"""A member of a group in a process of its own, to be killed: it fetches messages, says so, and never acknowledges them.

python -m holdfast.testing.conformance.transport_member URL GROUP MEMBER REDELIVER_AFTER COUNT
"""

from __future__ import annotations

import asyncio
import sys

from holdfast.testing.conformance.transport_kit import take
from holdfast.transport.url import open_transport


async def main(url: str, group: str, member: str, redeliver_after: float, count: int) -> None:
    transport = open_transport(url)
    await transport.open()
    consumer = await transport.consumer(group, member, redeliver_after=redeliver_after)
    found = await take(consumer, count)
    print(f"holds {len(found)}", flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], sys.argv[3], float(sys.argv[4]), int(sys.argv[5])))
