"""The audit: what callers were told, beside what the databases and the provider say in the end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from typing import Any

import msgspec

from chaos import journal, settings
from chaos.announcing import KIND
from chaos.elsewhere import Run
from chaos.heard import Heard
from chaos.place import Place
from holdfast.store.states import State


class Ask(msgspec.Struct):
    """What a caller knows of one thing that it asked for."""

    kind: str
    bare: bool  # enqueued without a row of its own
    said: str
    job: str | None = None


class Findings(msgspec.Struct, kw_only=True):
    """Items, by what is wrong with them: none of these lists may have any."""

    acknowledged: int = 0
    done: int = 0  # of those
    unanswered: int = (
        0  # callers that were killed, or were told that nobody knows: each is there whole, or not at all
    )
    lost: list[str] = []
    doubled: list[str] = []
    ghosts: list[str] = []
    disorder: list[str] = []  # keys; a broker may give out late what it gives out again


class Audit:
    """`replayed`: jobs that a person has run again, out of their order."""

    def __init__(self, place: Place, replayed: Collection[str] = ()) -> None:
        self._place, self._replayed = place, replayed
        self.asks = _asks(place)
        self.runs: list[Run] = place.there.runs()

    async def make(self) -> Findings:
        orders, effects, heard = await self._orders(), await self._effects(), await Heard.read(self._place)
        acknowledged = {item for item, ask in self.asks.items() if ask.said == "acknowledged"}
        expected = acknowledged | orders
        announced = {item for item in expected if self.asks[item].kind == KIND}
        return Findings(
            acknowledged=len(acknowledged),
            done=sum(effects[item] > 0 for item in acknowledged),
            unanswered=sum(ask.said == "unknown" for ask in self.asks.values()),
            lost=sorted([
                *(f"{item}: never done" for item in expected if not effects[item]),
                *(f"{item}: its row is gone" for item in acknowledged if not self.asks[item].bare and item not in orders),
                *await self._absent(acknowledged - announced),
                *await heard.absent({item: self.asks[item].job or "" for item in acknowledged & announced}),
                *heard.unheard(announced),
                *await heard.miscounted(),
            ]),
            doubled=sorted([
                *(f"{item}: done {number} times" for item, number in effects.items() if number > 1),
                *self._run_twice(),
                *heard.heard_twice(),
                *await self._ticked_twice(),
            ]),
            ghosts=sorted(self._ghosts(orders, effects, heard)),
            disorder=[] if self._place.broker else sorted(heard.disorder(self._replayed)),
        )  # fmt: skip

    async def _orders(self) -> set[str]:
        return {item for (item,) in await self._rows("SELECT item FROM orders")}

    async def _effects(self) -> Counter[str]:
        """How often each item was done, wherever its effect is."""
        found: Counter[str] = Counter(item for (item,) in await self._rows("SELECT item FROM parcels"))
        for table in ("tally", "charge"):
            found.update(item for (item,) in self._place.there.fetch(f"SELECT item FROM {table}"))
        found.update(each["name"] for each in journal.read(settings.provider_journal(self._place.folder)))
        return found

    async def _absent(self, acknowledged: Iterable[str]) -> list[str]:
        """Acknowledged jobs that are not there, or have not succeeded."""
        found = []
        for item in acknowledged:
            record = await self._place.hf.jobs.get(self.asks[item].job or "")
            if record is None:
                found.append(f"{item}: its job is gone")
            elif record.state is not State.SUCCEEDED:
                found.append(f"{item}: its job is {record.state}, {record.reason or record.held}")
        return found

    def _run_twice(self) -> list[str]:
        runs = Counter((run.job, run.token) for run in self.runs)
        return [
            f"{job}: run {number} times with token {token}"
            for (job, token), number in runs.items()
            if number > 1
        ]

    async def _ticked_twice(self) -> list[str]:
        sql = "SELECT nominal, count(*) FROM ticks GROUP BY nominal HAVING count(*) > 1"
        return [f"tick {nominal}: {number} times" for nominal, number in await self._rows(sql)]

    def _ghosts(self, orders: set[str], effects: Counter[str], heard: Heard) -> list[str]:
        """Traces of what was never asked for, was rolled back, or was refused with the word that nothing was stored."""
        seen = orders | set(effects) | {run.item for run in self.runs} | heard.items
        found = []
        for item in seen:
            ask = self.asks.get(item)
            if ask is None:
                found.append(f"{item}: nobody asked for it")
            elif ask.said in ("rolled back", "refused"):
                found.append(f"{item}: {ask.said}, and there it is")
            elif not ask.bare and item not in orders:
                found.append(f"{item}: its job is there without its row")
        return found

    async def _rows(self, sql: str) -> list[tuple[Any, ...]]:
        async with self._place.hf.transaction() as tx:
            return await tx.fetch(sql)


def _asks(place: Place) -> dict[str, Ask]:
    """The last word on each item; who was killed between two words does not know."""
    found: dict[str, Ask] = {}
    for each in journal.read(*sorted(place.folder.glob("caller-*.jsonl"))):
        said = "unknown" if each["said"] == "asked" else each["said"]
        found[each["item"]] = Ask(each["kind"], each["bare"], said, each.get("job"))
    return found
