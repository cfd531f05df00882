"""Events are emitted and published at once; views run under short leases, and are waited for."""

from __future__ import annotations

import asyncio

from waiting import until

from holdfast.kernel.codec import encode
from holdfast.kernel.ids import new_id
from holdfast.store.event_records import NewEvent
from holdfast.views.projection import Projection
from holdfast.views.projector import Projector
from holdfast.views.view import View


class Bench:
    def __init__(self, store):
        self.store = store
        self.running = []

    # --- events ---

    async def emit(self, kind="order.changed", *, key=None, **data):
        """Stored, and not published."""
        [emitted] = await self.store.outbox.emit(
            [NewEvent(id=new_id(), type=kind, data=encode(data), key=key)]
        )
        return emitted

    async def relay(self):
        """Publish what waits, in order."""
        lease = await self.store.leases.acquire("holdfast:relay", owner="test", ttl=30)
        while waiting := await self.store.outbox.waiting(lease, limit=500):
            await self.store.outbox.stamp(lease, [event.id for event in waiting])
        await self.store.leases.release(lease)

    async def publish(self, kind="order.changed", *, key=None, **data):
        emitted = await self.emit(kind, key=key, **data)
        await self.relay()
        return emitted

    async def publish_many(self, number, *, key=None, **data):
        events = [
            NewEvent(id=new_id(), type="order.changed", data=encode({**data, "n": place}), key=key)
            for place in range(number)
        ]
        await self.store.outbox.emit(events)
        await self.relay()

    # --- views ---

    def view(self, function, name="orders", *, on="order.*", **options):
        return View(Projection(name, function, on=on, **options), lambda: self.store)

    async def run(self, view, *, owner="w1", ttl=1.0):
        projector = Projector(self.store, view.projection, owner=owner, ttl=ttl)
        await projector.start()
        self.running.append(projector)
        return projector

    async def stop(self, projector):
        self.running.remove(projector)
        await projector.stop()

    async def drained(self, view):
        """Wait until it has read all that is published, and no rebuild is under way."""

        async def there():
            checkpoints = await self.store.views.checkpoints(view=view.name)
            newest = (await self.store.outbox.lag()).position
            return [each.position for each in checkpoints] == [newest]

        await until(there)

    async def built(self, view):
        """Run it until it has read everything, and stop it."""
        projector = await self.run(view)
        await self.drained(view)
        await self.stop(projector)

    async def rows(self, view):
        return {entry.key: entry.row for entry in await view.find(limit=1000)}

    async def end(self):
        await asyncio.gather(*(each.stop() for each in self.running))
