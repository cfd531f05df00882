"""What the database says in the end: nothing lost, nothing doubled, no parcel without an order."""

from __future__ import annotations

import msgspec

from holdfast.runtime.app import Holdfast

TABLES = (
    "CREATE TABLE orders (id INTEGER PRIMARY KEY)",
    "CREATE TABLE parcels (order_id INTEGER NOT NULL, token INTEGER NOT NULL)",
)
_LOST = "SELECT count(*) FROM orders WHERE id NOT IN (SELECT order_id FROM parcels)"
_DOUBLED = (
    "SELECT count(*) FROM (SELECT order_id FROM parcels GROUP BY order_id HAVING count(*) > 1) AS twice"
)
_GHOSTS = "SELECT count(*) FROM parcels WHERE order_id NOT IN (SELECT id FROM orders)"


class Audit(msgspec.Struct, frozen=True):
    orders: int
    parcels: int
    lost: int
    doubled: int
    ghosts: int

    @property
    def clean(self) -> bool:
        return not (self.lost or self.doubled or self.ghosts)


async def count(hf: Holdfast) -> Audit:
    async with hf.transaction() as tx:
        numbers = [
            (await tx.fetch(sql))[0][0]
            for sql in (
                "SELECT count(*) FROM orders",
                "SELECT count(*) FROM parcels",
                _LOST,
                _DOUBLED,
                _GHOSTS,
            )
        ]
    return Audit(*numbers)
