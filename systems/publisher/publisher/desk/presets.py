"""Price presets of the sale queue: a price, or a range of which each post gets one. One of them may be the usual one."""

from __future__ import annotations

from dataclasses import dataclass

from holdfast import Tx
from holdfast.errors import UniqueViolation
from publisher.core import hf
from publisher.desk.checks import of_name
from publisher.desk.refusals import Fault, Invalid, NotHere
from publisher.domain.prices import LEAST, MOST
from publisher.ids import new_id

MOST_PRESETS = 100  # of an artist


@dataclass(frozen=True)
class PresetRow:
    """In cents; equal ones are a fixed price."""

    id: str
    name: str
    low: int
    high: int
    is_default: bool
    made_at: float

    @property
    def words(self) -> str:
        low = f"USD {self.low / 100:,.2f}"
        return low if self.low == self.high else f"{low} to {self.high / 100:,.2f}"


async def listing(artist_id: str) -> list[PresetRow]:
    async with hf.transaction() as tx:
        rows = await tx.fetch(
            "SELECT id, name, low, high, is_default, made_at FROM presets WHERE artist_id = $1 ORDER BY name, id",
            artist_id,
        )
    return [
        PresetRow(preset_id, name, low, high, bool(is_default), made_at)
        for preset_id, name, low, high, is_default, made_at in rows
    ]


async def get(artist_id: str, preset_id: str) -> PresetRow:
    found = next((each for each in await listing(artist_id) if each.id == preset_id), None)
    if found is None:
        raise NotHere("price")
    return found


async def make(artist_id: str, name: str, low: int, high: int, *, is_default: bool = False) -> str:
    """Its id."""
    name = _checked(name, low, high)
    preset_id = new_id()
    try:
        async with hf.transaction() as tx:
            [(number,)] = await tx.fetch("SELECT count(*) FROM presets WHERE artist_id = $1", artist_id)
            if number >= MOST_PRESETS:
                raise Invalid([Fault("name", f"There are {MOST_PRESETS} prices: delete one first.")])
            await _only_default(tx, artist_id, is_default)
            await tx.execute(
                "INSERT INTO presets (id, artist_id, name, low, high, is_default, made_at) VALUES ($1, $2, $3, $4, $5, $6, $7)",
                preset_id,
                artist_id,
                name,
                low,
                high,
                is_default,
                await hf.now(),
            )
    except UniqueViolation:
        raise _taken(name) from None
    return preset_id


async def change(
    artist_id: str, preset_id: str, name: str, low: int, high: int, *, is_default: bool = False
) -> None:
    """Entries that are in the queue keep their price."""
    name = _checked(name, low, high)
    try:
        async with hf.transaction() as tx:
            await _only_default(tx, artist_id, is_default)
            changed = await tx.execute(
                "UPDATE presets SET name = $1, low = $2, high = $3, is_default = $4 WHERE id = $5 AND artist_id = $6",
                name,
                low,
                high,
                is_default,
                preset_id,
                artist_id,
            )
            if not changed:
                raise NotHere("price")
    except UniqueViolation:
        raise _taken(name) from None


async def delete(artist_id: str, preset_id: str) -> None:
    """Automations that sell by it sell no more; entries in the queue keep their price."""
    async with hf.transaction() as tx:
        if not await tx.execute("DELETE FROM presets WHERE id = $1 AND artist_id = $2", preset_id, artist_id):
            raise NotHere("price")


async def _only_default(tx: Tx, artist_id: str, is_default: bool) -> None:
    if is_default:
        await tx.execute("UPDATE presets SET is_default = $1 WHERE artist_id = $2", False, artist_id)


def _checked(name: str, low: int, high: int) -> str:
    faults = list(of_name("name", name))
    for field, value in (("low", low), ("high", high)):
        if not LEAST <= value <= MOST:
            told = f"A price is from USD {LEAST / 100:.2f} to {MOST / 100:,.2f}; this is {value / 100:,.2f}."
            faults.append(Fault(field, told))
    if not faults and high < low:
        faults.append(Fault("high", f"The highest price is no lower than the lowest, {low / 100:,.2f}."))
    if faults:
        raise Invalid(faults)
    return name.strip()


def _taken(name: str) -> Invalid:
    return Invalid([Fault("name", f"You have a price that is called “{name}”. Choose another name.")])
