"""How a guard is, in a few words for a page: from what the fleet has told the place where it meets."""

from __future__ import annotations

from typing import Protocol

from msgspec.structs import replace

from holdfast.guards.looks import GuardLook
from holdfast.guards.ports import State
from holdfast.kernel.errors import NotOpen, StoreUnavailable
from holdfast.store.breakers import GuardRecord, GuardSeen
from holdfast.store.ports import Store
from holdfast.store.quota import Pace


class Elsewhere(Protocol):
    """Where guards meet, when that is not the database."""

    async def open(self) -> None: ...
    async def close(self) -> None: ...
    async def look(self, name: str, *, now: float) -> GuardRecord: ...
    async def pace(self, name: str, key: str) -> Pace: ...


async def seen(store: Store, elsewhere: Elsewhere | None, name: str, key: str) -> GuardSeen:
    """Jobs, and what people hold, are in the database in any case; the rest, too, while the other place does not answer."""
    found = await store.guards.look(name, key)
    if elsewhere is None:
        return found
    try:
        return await _there(elsewhere, found)
    except NotOpen:  # sync code opens the store only
        return await _opened(elsewhere, found)
    except StoreUnavailable:
        return found


async def _opened(elsewhere: Elsewhere, found: GuardSeen) -> GuardSeen:
    try:
        await elsewhere.open()
        return await _there(elsewhere, found)
    except StoreUnavailable:
        return found
    finally:
        await elsewhere.close()


async def _there(elsewhere: Elsewhere, found: GuardSeen) -> GuardSeen:
    name, key = found.name, found.key
    record, pace = await elsewhere.look(name, now=found.now), await elsewhere.pace(name, key)
    opened = [node for node in record.nodes if node.state == State.OPEN.value]
    return replace(
        found,
        opened_at=None if record.opened_until is None else found.opened_at,
        opened_until=record.opened_until,
        nodes=max(found.nodes, record.nodes_number),
        nodes_open=len(opened),
        calls=sum(node.calls for node in opened),
        failures=sum(node.failures for node in opened),
        rate=pace.rate,
        paused=pace.paused,
        in_row=pace.in_row,
    )


def look_of(seen: GuardSeen) -> GuardLook:
    state = _state(seen)
    return GuardLook(
        name=seen.name,
        key=seen.key,
        state=state,
        since=seen.held.at
        if seen.held is not None
        else seen.opened_at
        if state is not State.CLOSED
        else None,
        why=_why(seen, state),
        rate=seen.rate,
        paused_until=seen.now + seen.paused if seen.paused > 0 else None,
        held=seen.jobs,
        held_by=None if seen.held is None else seen.held.by,
    )


def _state(seen: GuardSeen) -> State:
    if seen.held is not None:
        return State(seen.held.state.value)
    if seen.opened_until is not None:
        return State.OPEN
    return State.HALF_OPEN if seen.opened_at is not None else State.CLOSED


def _why(seen: GuardSeen, state: State) -> str | None:
    """What matters most."""
    if seen.held is not None:
        return f"held {seen.held.state.value} by {seen.held.by}"
    if state is State.OPEN:
        told = f": {seen.failures} of {seen.calls} calls failed" if seen.calls else ""
        return f"open in {seen.nodes_open} of {seen.nodes} processes{told}"
    if state is State.HALF_OPEN:
        return "one process finds out whether it is well again"
    return why_paused(seen.paused, seen.in_row) or _less(seen)


def why_paused(paused: float, in_row: int) -> str | None:
    if paused <= 0:
        return None
    times = f"was throttled {in_row} times in a row, without being told" if in_row > 1 else ""
    return f"{times} for how long" if times else "the other side asked for a pause, or for less"


def _less(seen: GuardSeen) -> str | None:
    if seen.rate is not None:
        return f"slowed to {seen.rate:.3g} calls a second: the other side said that these were too many"
    if seen.nodes_open:
        return f"open in {seen.nodes_open} of {seen.nodes} processes, and not for all"
    return None
