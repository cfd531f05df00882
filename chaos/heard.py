"""What became of events: how far they are, and in the end which were lost, heard twice, out of order, or are not in the view."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping
from typing import Any

import msgspec

from chaos.announcing import VIEW
from chaos.place import Place


async def on_their_way(place: Place) -> int:
    """Events that are not published, not booked or not in the view, and those that will follow from what is not packed yet."""
    lag = await place.hf.outbox.lag()
    outbox = "holdfast.outbox" if place.store == "postgres" else "holdfast_outbox"
    [[placed]] = await _rows(place, f"SELECT count(*) FROM {outbox} WHERE type = 'item.placed'")
    [[booked]] = await _rows(place, "SELECT count(*) FROM heard")
    checkpoints = await place.hf.store.views.checkpoints(view=VIEW)
    unread = [lag.position - each.position for each in checkpoints if each.state == "serving"]
    return lag.waiting + max(0, 2 * int(placed) - int(booked)) + sum(unread)


class Heard:
    """All that was announced and heard, as the databases have it."""

    def __init__(self, place: Place, heard: list[tuple[Any, ...]]) -> None:
        self._place, self._heard = place, heard

    @classmethod
    async def read(cls, place: Place) -> Heard:
        sql = "SELECT item, type, key, version, job FROM heard ORDER BY at"
        return cls(place, await _rows(place, sql))

    @property
    def items(self) -> set[str]:
        return {row[0] for row in self._heard}

    async def absent(self, events: Mapping[str, str]) -> list[str]:
        """Acknowledged events, by item, that the outbox does not have."""
        found = {item: await self._place.hf.outbox.get(event) for item, event in events.items()}
        return [f"{item}: its event is gone" for item, event in found.items() if event is None]

    def unheard(self, items: Collection[str]) -> Iterator[str]:
        heard = {row[:2] for row in self._heard}
        for item in items:
            yield from (
                f"{item}: nobody heard {each}"
                for each in ("item.placed", "item.packed")
                if (item, each) not in heard
            )

    def heard_twice(self) -> list[str]:
        times = Counter(row[:2] for row in self._heard)
        return [f"{item}: {type_} was heard {n} times" for (item, type_), n in times.items() if n > 1]

    def disorder(self, replayed: Collection[str]) -> list[str]:
        """Keys of which a group heard a later version first, where nobody has replayed one."""
        versions: dict[str, list[int]] = defaultdict(list)
        by_hand = {row[2] for row in self._heard if row[4] in replayed}
        for _, _, key, version, _ in self._heard:
            versions[key].append(version)
        return [
            f"{key}: was heard out of order, {found}"
            for key, found in versions.items()
            if key not in by_hand and found != sorted(found)
        ]

    async def miscounted(self) -> list[str]:
        """Rows of the view that are not what was heard."""
        wanted: dict[str, Counter[str]] = defaultdict(Counter)
        for _, type_, key, _, _ in self._heard:
            wanted[key][type_] += 1
        rows = {row.key: row.data or "{}" for row in await self._place.hf.store.views.find(VIEW, limit=1000)}
        found = {key: Counter(msgspec.json.decode(row)) for key, row in rows.items()}
        return [
            f"{key}: the view has {dict(found.get(key, {}))}, and heard was {dict(counts)}"
            for key, counts in wanted.items()
            if found.get(key) != counts
        ]


async def _rows(place: Place, sql: str) -> list[tuple[Any, ...]]:
    async with place.hf.transaction() as tx:
        return await tx.fetch(sql)
