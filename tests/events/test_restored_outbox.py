"""An older copy of the database takes its place: what the broker took for delivered is given to it again."""

from __future__ import annotations

import apsw

from holdfast import Event, Holdfast, Tx
from holdfast.testing import drain
from holdfast.testing.memory import MemoryBroker, MemoryTransport


def program(file, broker):
    hf = Holdfast(f"sqlite:///{file}", transport=MemoryTransport(broker))

    @hf.on("order.*", group="billing")
    async def bill(event: Event, tx: Tx) -> None:
        await tx.execute("INSERT INTO bills (id, version) VALUES ($1, $2)", event.data, event.version)

    return hf


async def bills(hf):
    async with hf.transaction() as tx:
        return await tx.fetch("SELECT id, version FROM bills ORDER BY id")


async def test_what_was_handled_after_the_copy_is_handled_in_it_too(tmp_path):
    file, copy, broker = tmp_path / "shop.db", tmp_path / "copy.db", MemoryBroker()
    async with program(file, broker) as hf:
        async with hf.transaction() as tx:
            await tx.execute("CREATE TABLE bills (id INTEGER, version INTEGER)")
        await hf._inside.bus.make_known("t")
        for number in (1, 2):
            await hf.emit("order.placed", number, key="order:1")
        lease = await hf.store.leases.acquire("holdfast:relay", owner="t", ttl=60)
        assert await hf._inside.bus.relay("t").turn(lease)
        await hf.store.leases.release(lease)
        await hf.emit("order.placed", 3, key="order:1")
    source = apsw.Connection(str(file))
    source.execute("VACUUM INTO ?", (str(copy),))
    source.close()
    async with program(file, broker) as hf:
        await drain(hf)
        assert await bills(hf) == [(1, 1), (2, 2), (3, 3)]
    for each in tmp_path.glob("shop.db*"):
        each.unlink()
    copy.rename(file)
    async with program(file, broker) as hf:
        await hf.store.raise_epoch()
        await hf.outbox.redrive(after=0)
        await drain(hf)
        assert await bills(hf) == [(1, 1), (2, 2), (3, 3)]
