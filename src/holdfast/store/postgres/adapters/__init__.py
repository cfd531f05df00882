"""Take the caller's own transaction: check it, then run the store's statements in it. It is never committed here."""

from __future__ import annotations

from holdfast.store.postgres.adapters.base import Adopted
from holdfast.store.postgres.adapters.recognise import recognise

__all__ = ["Adopted", "adopt", "adopt_sync"]


async def adopt(tx: object, *, store_id: str) -> Adopted:
    """Accept a connection or session that is in a transaction of this store's database; else WrongConnection."""
    if isinstance(tx, Adopted):  # of one who was given it, such as the handler of an end
        await tx.check(store_id)
        return tx
    adopted = recognise(tx)
    await adopted.check(store_id)
    return adopted


def adopt_sync(tx: object, *, store_id: str) -> Adopted:
    """The same from sync code, for sync connections and sessions."""
    adopted = recognise(tx)
    adopted.check_sync(store_id)
    return adopted
