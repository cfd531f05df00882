"""What the suites of views share: one view, its lease, and short words for rows and batches."""

from __future__ import annotations

from typing import Any

from holdfast.kernel.ids import new_id
from holdfast.store.ports import Store
from holdfast.store.records import Lease
from holdfast.store.view_records import Checkpoint, NewRow, SetAside, ViewBatch, ViewRow

VIEW = "orders"


async def lead(store: Store, owner: str = "w1") -> Lease:
    lease = await store.leases.acquire(f"view:{VIEW}", owner=owner, ttl=30)
    assert lease is not None, "the lease should be free"
    return lease


async def begin(store: Store, start: int, **options: Any) -> Checkpoint:
    """Where the log still begins there."""
    found = await store.views.begin(VIEW, start=start, **options)
    assert found is not None, f"events behind {start} are gone"
    return found


async def begun(store: Store) -> Lease:
    """A view at position 0, and the lease of who runs it."""
    await store.views.begin(VIEW, start=0)
    return await lead(store)


def batch(*rows: NewRow, after: int = 0, upto: int | None = None, **options: Any) -> ViewBatch:
    """From one checkpoint to the next, which is by itself as far as the newest row."""
    ends = [row.position for row in rows]
    options = {"view": VIEW, "generation": 1, **options}
    return ViewBatch(after=after, upto=max([after, *ends]) if upto is None else upto, rows=rows, **options)


def row(key: str, position: int, data: str | None = "{}", **options: Any) -> NewRow:
    return NewRow(key=key, position=position, data=data, **options)


def aside(position: int, key: str | None = "a", error: str = "ValueError: no") -> SetAside:
    return SetAside(position=position, event_id=new_id(), event='{"id":1}', error=error, key=key)


async def serving(store: Store) -> Checkpoint:
    (found,) = [each for each in await store.views.checkpoints(view=VIEW) if each.state == "serving"]
    return found


async def got(store: Store, key: str) -> ViewRow:
    found = await store.views.get(VIEW, key)
    assert found is not None, f"the row {key!r} should be there"
    return found


async def keys(store: Store, **options: Any) -> list[str]:
    return [each.key for each in await store.views.find(VIEW, **options)]
