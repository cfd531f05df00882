"""Whoever is cancelled at any of its waits leaves all of a session or nothing, on both stores."""

from __future__ import annotations

import asyncio

import sqlalchemy as sa
from models import Order


class Cut:
    """Cancels the task at its n-th wait."""

    def __init__(self, work, number):
        self._work, self._number, self.waits = work, number, 0

    def __await__(self):
        work = self._work.__await__()
        answer, error = None, None
        while True:
            try:
                step = work.throw(error) if error is not None else work.send(answer)
            except StopIteration as over:
                return over.value
            self.waits += 1
            if self.waits == self._number:
                asyncio.current_task().cancel()
            answer, error = None, None
            try:
                answer = yield step
            except BaseException as raised:
                error = raised


async def order(shop):
    async with shop.session() as session, session.begin():
        await session.execute(sa.select(Order))
        session.add(Order(name="a"))
        await session.flush()
        async with session.begin_nested():
            await shop.greet.options(tx=session).enqueue("ada")
        rows = await session.stream_scalars(sa.select(Order.name).execution_options(yield_per=1))
        assert [name async for name in rows] == ["a"]


async def test_cancelled_at_every_wait(shop, names, queued):
    await order(shop)  # connections and identities are there
    async with shop.transaction() as tx:
        await tx.execute("DELETE FROM orders")
    jobs, number = await queued(shop), 0
    while True:
        number += 1

        async def cut(number=number):
            await Cut(order(shop), number)

        task = asyncio.create_task(cut())
        await asyncio.wait([task], timeout=20)
        assert task.done()
        there, more = await asyncio.wait_for(names(shop), 10), await queued(shop) - jobs
        assert len(there) == more, f"cancelled at wait {number}"
        jobs += more
        async with shop.transaction() as tx:
            await tx.execute("DELETE FROM orders")
        if not task.cancelled():
            break
    assert number > 5
    assert shop.sqlalchemy().pool.checkedout() == 0
