"""What events cost the database: so many statements on PostgreSQL, so many commits on SQLite, however many events there are."""

from __future__ import annotations

from contextlib import contextmanager

import pytest

from holdfast import Event
from holdfast.events import consumer as consuming
from holdfast.store.postgres import connection as postgres
from holdfast.store.sqlite.connection import Db


@contextmanager
def counted(monkeypatch, hf):
    """Statements and commands that were sent; on SQLite transactions."""
    sent = []

    def counting(kind, verb):
        original = getattr(kind, verb)

        def call(self, sql, *args, **named):
            if (
                sql != postgres.RESET and "pg_notify" not in sql
            ):  # what is done beside, for whoever is in need of it
                sent.append(sql)
            return original(self, sql, *args, **named)

        patch.setattr(kind, verb, call)

    with monkeypatch.context() as patch:
        if hf._inside.location.kind == "sqlite":
            counting(Db, "begin")
        else:
            for verb in ("fetch", "execute", "executemany"):
                counting(postgres.Connection, verb)
        yield sent


@pytest.fixture
async def parts(hf):
    """A reader of a group that hears them and one of a group that does not, and a relay."""
    hf.event("order.placed", unheard=True)
    hf.event("order.paid", unheard=True)

    @hf.on("order.placed", group="billing")
    async def bill(event: Event) -> None: ...

    @hf.on("order.paid", group="mail")
    async def mail(event: Event) -> None: ...

    readers = []
    for group in hf._inside.bus.groups:
        lease = await hf.store.leases.acquire(f"holdfast:group:{group.name}", owner="t", ttl=600)
        reader = hf._inside.bus.consumer(group, "t")
        await reader.subscribe()
        readers.append((reader, lease))
    return *readers, (
        hf._inside.bus.relay("t"),
        await hf.store.leases.acquire("holdfast:relay", owner="t", ttl=600),
    )


async def costs(hf, parts, monkeypatch, number, key):
    hears, does_not, relay = parts
    figures = {}
    async with hf.transaction() as tx:
        with counted(monkeypatch, hf) as sent:
            await hf.emit_many([("order.placed", n, key and f"{key}:{n % 7}") for n in range(number)], tx=tx)
    figures["emit_many"] = len(sent)
    for name, (part, lease) in {"relay": relay, "hears": hears, "does not": does_not}.items():
        with counted(monkeypatch, hf) as sent:
            assert await part.turn(lease)
        figures[name] = len(sent)
    return figures


MOST = {
    "sqlite": {"emit_many": 0, "relay": 2, "hears": 2, "does not": 1},
    "postgres": {"emit_many": 1, "relay": 2, "hears": 8, "does not": 1},
}


@pytest.mark.parametrize("key", [None, "order"])
async def test_the_number_of_statements_does_not_grow_with_the_number_of_events(hf, parts, monkeypatch, key):
    monkeypatch.setattr(consuming, "_MOVE_EVERY", 3_600.0)
    await costs(hf, parts, monkeypatch, 1, key)  # the first cursors are written
    most = dict(MOST[hf._inside.location.kind])
    if key and most["emit_many"]:
        most["hears"] += 2  # the locks of the turns
    for number in (5, 90):
        found = await costs(hf, parts, monkeypatch, number, key)
        assert all(found[name] <= most[name] for name in most), (number, found)
