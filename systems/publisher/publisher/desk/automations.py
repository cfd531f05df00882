"""Automations as their artist sees and changes them: what they are, when they run next, what they would choose, what they did."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from holdfast import Tx
from publisher.core import hf
from publisher.desk.automation_runs import Trial, log, trial, upcoming
from publisher.desk.automation_wishes import Wishes, wishes_of
from publisher.desk.checks import NAME_MOST
from publisher.desk.refusals import Changed, Fault, Invalid, NotHere
from publisher.ids import new_id
from publisher.recipes import (
    IntervalTold,
    RuleTold,
    packed_defaults,
    packed_rules,
    unpacked_defaults,
    unpacked_rules,
)
from publisher.work.pools import recipe_of

__all__ = [
    "AutomationRow", "Trial", "change", "delete", "duplicate", "get", "listing", "log", "make", "next_run", "reorder", "toggle", "trial",
]  # fmt: skip
MOST_AUTOMATIONS = 50  # of an artist
_FIELDS = (
    "name", "description", "colour", "selection", "agreement", "jitter_low", "jitter_high", "only_stash", "preset_id", "rules", "defaults",
)  # fmt: skip
_NEEDS_RULE = "Add a rule that is on: without one it would never run."


@dataclass(frozen=True)
class AutomationRow:
    """`next_run` is the next nominal time of one that is on."""

    id: str
    position: int
    is_on: bool
    wishes: Wishes
    note: str
    version: int
    made_at: float
    looked_until: float
    next_run: float | None = None


_COLUMNS = f"id, position, is_on, note, version, made_at, looked_until, {', '.join(_FIELDS)}"


async def listing(artist_id: str) -> list[AutomationRow]:
    """In the order that their artist has given them."""
    now = await hf.now()
    async with hf.transaction() as tx:
        rows = await tx.fetch(
            f"SELECT {_COLUMNS} FROM automations WHERE artist_id = $1 ORDER BY position, made_at, id",  # noqa: S608  our own columns
            artist_id,
        )
        return [await _with_next(tx, artist_id, _row(row), now) for row in rows]


async def get(artist_id: str, automation_id: str) -> AutomationRow:
    now = await hf.now()
    async with hf.transaction() as tx:
        return await _with_next(tx, artist_id, await _one(tx, artist_id, automation_id), now)


async def make(artist_id: str, told: Mapping[str, Any]) -> str:
    """A new one, which is off. Its id."""
    wishes, now = wishes_of(told), await hf.now()
    async with hf.transaction() as tx:
        await _check_preset(tx, artist_id, wishes)
        return await _insert(tx, artist_id, _counted_from(wishes, (), now), now)


async def change(
    artist_id: str, automation_id: str, told: Mapping[str, Any], version: int | None = None
) -> AutomationRow:
    """What is not said stays. With `version`, only if nobody has changed it since."""
    now = await hf.now()
    async with hf.transaction() as tx:
        found = await _one(tx, artist_id, automation_id)
        if version is not None and version != found.version:
            raise Changed("Somebody has changed this automation since you opened it.")
        wishes = _counted_from(wishes_of(told, found.wishes), found.wishes.rules, now)
        if found.is_on and not _has_rule(wishes):
            raise Invalid([Fault("rules", "It is on, and needs a rule that is on. Switch it off first.")])
        await _check_preset(tx, artist_id, wishes)
        await _update(tx, found, wishes, now)
        return await _with_next(tx, artist_id, await _one(tx, artist_id, automation_id), now)


async def toggle(artist_id: str, automation_id: str, *, is_on: bool) -> None:
    """Switched on it begins from now; what it has scheduled stays scheduled when it is switched off."""
    now = await hf.now()
    async with hf.transaction() as tx:
        found = await _one(tx, artist_id, automation_id)
        if is_on and not _has_rule(found.wishes):
            raise Invalid([Fault("rules", _NEEDS_RULE)])
        if is_on != found.is_on:
            await tx.execute(
                "UPDATE automations SET is_on = $1, looked_until = $2, note = '', version = version + 1 WHERE id = $3",
                is_on,
                now,
                automation_id,
            )


async def duplicate(artist_id: str, automation_id: str) -> str:
    """The copy is off. Its id."""
    now = await hf.now()
    async with hf.transaction() as tx:
        found = await _one(tx, artist_id, automation_id)
        name = f"{found.wishes.name[: NAME_MOST - 7]} (copy)"
        return await _insert(tx, artist_id, msgspec.structs.replace(found.wishes, name=name), now)


async def reorder(artist_id: str, automation_ids: Sequence[str]) -> None:
    """These first, in this order; the others behind them, as they were."""
    async with hf.transaction() as tx:
        rows = await tx.fetch(
            "SELECT id FROM automations WHERE artist_id = $1 ORDER BY position, made_at, id", artist_id
        )
        known = [row[0] for row in rows]
        if not set(automation_ids) <= set(known):
            raise NotHere("automation")
        for position, each in enumerate(dict.fromkeys((*automation_ids, *known))):
            await tx.execute("UPDATE automations SET position = $1 WHERE id = $2", position, each)


async def delete(artist_id: str, automation_id: str) -> None:
    """With its log. What it has scheduled stays scheduled."""
    async with hf.transaction() as tx:
        if not await tx.execute(
            "DELETE FROM automations WHERE id = $1 AND artist_id = $2", automation_id, artist_id
        ):
            raise NotHere("automation")


async def next_run(artist_id: str, automation_id: str) -> float | None:
    """None: it is off, or its rules never come true together."""
    return (await get(artist_id, automation_id)).next_run


# --- rows ---


def _row(values: Sequence[Any]) -> AutomationRow:
    id_, position, is_on, note, version, made_at, looked_until, *told = values
    fields = dict(zip(_FIELDS, told, strict=True))
    fields["only_stash"] = bool(fields["only_stash"])
    fields["rules"], fields["defaults"] = (
        unpacked_rules(fields["rules"]),
        unpacked_defaults(fields["defaults"]),
    )
    return AutomationRow(id_, position, bool(is_on), Wishes(**fields), note, version, made_at, looked_until)


async def _one(tx: Tx, artist_id: str, automation_id: str) -> AutomationRow:
    rows = await tx.fetch(
        f"SELECT {_COLUMNS} FROM automations WHERE id = $1 AND artist_id = $2",  # noqa: S608  our own columns
        automation_id,
        artist_id,
    )
    if not rows:
        raise NotHere("automation")
    return _row(rows[0])


async def _with_next(tx: Tx, artist_id: str, row: AutomationRow, now: float) -> AutomationRow:
    of = await recipe_of(tx, artist_id, row.id) if row.is_on else None
    coming = [] if of is None else upcoming(of, max(row.looked_until, now), 1)
    return replace(row, next_run=coming[0][0]) if coming else row


def _values(wishes: Wishes) -> list[Any]:
    told: dict[str, Any] = {name: getattr(wishes, name) for name in _FIELDS}
    told["rules"], told["defaults"] = packed_rules(wishes.rules), packed_defaults(wishes.defaults)
    return list(told.values())


async def _insert(tx: Tx, artist_id: str, wishes: Wishes, now: float) -> str:
    [(number, last)] = await tx.fetch(
        "SELECT count(*), max(position) FROM automations WHERE artist_id = $1", artist_id
    )
    if number >= MOST_AUTOMATIONS:
        raise Invalid([Fault("name", f"There are {MOST_AUTOMATIONS} automations: delete one first.")])
    automation_id, places = new_id(), ", ".join(f"${6 + each}" for each in range(len(_FIELDS)))
    await tx.execute(
        f"INSERT INTO automations (id, artist_id, position, is_on, looked_until, made_at, note, version, {', '.join(_FIELDS)}) "  # noqa: S608
        f"VALUES ($1, $2, $3, $4, $5, $5, '', 1, {places})",
        automation_id,
        artist_id,
        0 if last is None else int(last) + 1,
        False,
        now,
        *_values(wishes),
    )
    return automation_id


async def _update(tx: Tx, found: AutomationRow, wishes: Wishes, now: float) -> None:
    """Other rules count from now; what was missed under the old ones is made up for by the new."""
    is_other = (wishes.rules, wishes.agreement) != (found.wishes.rules, found.wishes.agreement)
    until = min(found.looked_until, now) if is_other else found.looked_until
    sets = ", ".join(f"{name} = ${4 + each}" for each, name in enumerate(_FIELDS))
    changed = await tx.execute(
        f"UPDATE automations SET looked_until = $3, version = version + 1, {sets} WHERE id = $1 AND version = $2",  # noqa: S608
        found.id,
        found.version,
        until,
        *_values(wishes),
    )
    if not changed:
        raise Changed("Somebody has changed this automation in this moment.")


async def _check_preset(tx: Tx, artist_id: str, wishes: Wishes) -> None:
    if wishes.preset_id is None:
        return
    if not await tx.fetch(
        "SELECT 1 FROM presets WHERE id = $1 AND artist_id = $2", wishes.preset_id, artist_id
    ):
        raise Invalid([Fault("preset_id", "There is no such price. Choose one of yours, or none.")])


def _counted_from(wishes: Wishes, before: Sequence[RuleTold], now: float) -> Wishes:
    """An interval is counted from when it was made: a rule that was changed elsewhere keeps its begin."""
    begun = {(each.minutes, each.weekdays): each.since for each in before if isinstance(each, IntervalTold)}

    def counted(rule: RuleTold) -> RuleTold:
        if not isinstance(rule, IntervalTold) or rule.since is not None:
            return rule
        since = begun.get((rule.minutes, rule.weekdays))
        return msgspec.structs.replace(rule, since=now // 60 * 60 if since is None else since)

    return msgspec.structs.replace(wishes, rules=tuple(map(counted, wishes.rules)))


def _has_rule(wishes: Wishes) -> bool:
    return any(each.is_on for each in wishes.rules)
