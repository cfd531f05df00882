"""Events between real processes: a worker that leaves when nothing is left, and programs that hear each other."""

from __future__ import annotations

import sys

from waiting import until

from holdfast import Holdfast
from tools.processes import Process, environment

SHOP = '''
"""Hears orders, and bills them in two steps."""
from holdfast import Event, Holdfast, Tx

hf = Holdfast()
hf.event("order.placed")


@hf.on("order.placed", group="billing")
async def bill(event: Event, tx: Tx) -> None:
    await tx.execute("INSERT INTO bills (id) VALUES ($1)", event.data)
    await hf.emit("order.billed", event.data, key=event.key, tx=tx)


@hf.on("order.billed", group="shipping")
def ship(event: Event, tx) -> None:
    tx.execute("INSERT INTO parcels (id) VALUES ($1)", event.data)
'''


def start(folder, url, *options, verb="worker"):
    (folder / "shop.py").write_text(SHOP)
    command = [sys.executable, "-m", "holdfast", verb, "shop:hf", *options]
    return Process(
        command, folder, environment([], HOLDFAST_URL=url), folder / f"log{len(list(folder.iterdir()))}"
    )


async def tables(hf):
    async with hf.transaction() as tx:
        for name in ("bills", "parcels"):
            await tx.execute(f"DROP TABLE IF EXISTS {name}")
            await tx.execute(f"CREATE TABLE {name} (id INTEGER)")


async def rows(hf, table):
    async with hf.transaction() as tx:
        return sorted(number for (number,) in await tx.fetch(f"SELECT id FROM {table}"))


async def test_a_burst_leaves_when_no_event_is_on_its_way(hf, url, tmp_path):
    """Also those that handlers emit are handled before it leaves."""
    await tables(hf)
    hf.event("order.placed", unheard=True)
    for number in range(5):
        await hf.emit("order.placed", number, key=f"order:{number}")
    worker = start(tmp_path, url, "--burst")
    try:
        assert await worker.ended(60) == 0, worker.log
    finally:
        worker.destroy()
    assert await rows(hf, "bills") == await rows(hf, "parcels") == [0, 1, 2, 3, 4], worker.log


async def test_what_one_process_emits_others_handle_once(hf, url, tmp_path):
    """Three workers: one of them publishes, one reads for each group, all of them handle."""
    await tables(hf)
    hf.event("order.placed", unheard=True)
    workers = [start(tmp_path, url) for _ in range(3)]
    try:
        for number in range(60):
            await hf.emit("order.placed", number, key=f"order:{number % 7}")

        async def all_there():
            return len(await rows(hf, "parcels")) >= 60

        await until(all_there, 60)
        assert await rows(hf, "bills") == await rows(hf, "parcels") == list(range(60))
    finally:
        for worker in workers:
            worker.destroy()


async def test_a_program_on_another_database_hears_over_a_broker(hf, tmp_path, valkey):
    """The shop emits on its database, and the warehouse handles on a SQLite file of its own."""
    topic = f"{valkey.url}?topic={tmp_path.name}"
    seen = []
    shop = Holdfast(str(url_of(hf)), transport=topic)
    shop.event("order.placed", unheard=True)
    warehouse = Holdfast(f"sqlite:///{tmp_path / 'warehouse.db'}", transport=topic)

    @warehouse.on("order.*", group="warehouse")
    async def pick(event) -> None:
        seen.append((event.id, event.key, event.version, event.data))

    async with shop, warehouse, warehouse.worker(), shop.worker():
        emitted = [await shop.emit("order.placed", n, key="order:1") for n in range(3)]
        await until(lambda: len(seen) == 3, 30)
    assert seen == [(each.id, "order:1", each.version, n) for n, each in enumerate(emitted)]


def url_of(hf):
    location = hf._inside.location
    return f"sqlite:///{location.address}" if location.kind == "sqlite" else location.address
