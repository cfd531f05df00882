"""`holdfast guards`: the state of each guard in the fleet and the jobs it holds; hold it open or closed, let go, reset."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence
from typing import Any

import msgspec

from holdfast.fleet.guard_looks import why_paused
from holdfast.fleet.looking import has_breaker, looked, owner_of
from holdfast.kernel.errors import StoreUnavailable
from holdfast.runtime.app import Holdfast
from holdfast.runtime.cli.command import DONE, NOT_AS_WISHED, actor, add_command, add_group
from holdfast.runtime.cli.output import complain, document, say, show_table
from holdfast.runtime.cli.parser import Commands, count
from holdfast.runtime.cli.table import Column
from holdfast.runtime.cli.times import ago
from holdfast.runtime.inside import inside
from holdfast.store.breakers import BreakerState, GuardRecord
from holdfast.store.records import GATED_COUNTED, Gated

_COLUMNS = (
    Column("guard", whole=True),
    Column("breaker"),
    Column("nodes", right=True),
    Column("open on", right=True),
    Column("calls", right=True),
    Column("failed", right=True),
    Column("slowed"),
    Column("jobs held", right=True),
)
_LIMIT = "at most so many (100)"
_PART = 1000  # keys of one question
_LEAST = 0.005  # of the last hour: nobody minds less
_ACTS = {
    "hold-open": "let no call through, on any node, until `release`",
    "hold-closed": "let all calls through, whatever fails, until `release`",
    "release": "let the breaker decide by itself again",
    "reset": "begin anew: closed, nothing counted, no rate lowered, no pause",
}


def add(commands: Commands) -> None:
    about = "list the guards of the fleet; hold them open or closed, reset them"
    parser, group = add_group(commands, "guards", about=about, act=list_guards)
    listing = add_command(group, "list", list_guards, about="list the guards, as `guards` alone does")
    parser.add_argument("--limit", type=count, default=100, help=_LIMIT)
    listing.add_argument("--limit", type=count, dest="limit_behind", help=_LIMIT)
    acts = {"hold-open": hold_open, "hold-closed": hold_closed, "release": release, "reset": reset}
    for name, act in acts.items():
        add_command(group, name, act, about=_ACTS[name]).add_argument("name")


async def list_guards(hf: Holdfast, options: Namespace) -> int:
    found = await _looked(hf, getattr(options, "limit_behind", None) or options.limit)
    held = await _held(hf, [guard.name for guard in found])
    now = await hf.store.now()
    if options.json:
        document(
            {
                "guards": [_told(each, held) for each in found],
                "held": [msgspec.structs.asdict(each) for each in held],
            }
        )
        return DONE
    show_table(_COLUMNS, [_row(each, held, now) for each in found], nothing="No guard has been heard of.")
    return DONE


async def _looked(hf: Holdfast, limit: int) -> list[GuardRecord]:
    try:
        return await looked(hf.store, inside(hf).guards_elsewhere, limit=limit)
    except StoreUnavailable as error:
        if inside(hf).guards_elsewhere is None:
            raise
        complain(f"{error} This is what the database knows.")
        return await looked(hf.store, None, limit=limit)


class Owned(Gated, frozen=True):
    """And of which guard."""

    owner: str | None = None


async def _held(hf: Holdfast, names: Sequence[str]) -> list[Owned]:
    """All of them: cut short, the numbers would be wrong."""
    known = {*names, *inside(hf).registry.known_guards}
    part = found = await hf.store.holds.gated(limit=_PART)
    while len(part) == _PART:
        part = await hf.store.holds.gated(after=part[-1].guard, limit=_PART)
        found = found + part
    return [Owned(each.guard, each.number, owner_of(each.guard or "", known)) for each in found]


def _told(guard: GuardRecord, held: Sequence[Owned]) -> dict[str, Any]:
    told: dict[str, Any] = msgspec.to_builtins(guard)
    return told | {
        "state": _state(guard),
        "jobs_held": _number(guard, held),
        "paused_share": round(_paused_share(guard), 4),
    }


def _state(guard: GuardRecord) -> str:
    if guard.held is not None:
        return guard.held.state.value
    if guard.opened_until is not None:
        return BreakerState.OPEN.value
    return BreakerState.HALF_OPEN.value if guard.probes else BreakerState.CLOSED.value


def _number(guard: GuardRecord, held: Sequence[Owned]) -> int:
    """Also under the keys of its limiter."""
    return sum(each.number for each in held if each.owner == guard.name)


def _row(guard: GuardRecord, held: Sequence[Owned], now: float) -> list[object]:
    number = _number(guard, held)
    is_more = any(each.number >= GATED_COUNTED for each in held if each.owner == guard.name)
    return [
        guard.name,
        _breaker(guard, now),
        guard.nodes_number,
        sum(node.state is BreakerState.OPEN for node in guard.nodes) or None,
        f"{sum(node.calls for node in guard.nodes):,}",
        f"{sum(node.failures for node in guard.nodes):,}",
        _slowed(guard),
        f"{number:,}{'+' if is_more else ''}" if number else None,
    ]


def _breaker(guard: GuardRecord, now: float) -> str:
    if guard.held is not None:
        return f"held {guard.held.state.value} by {guard.held.by}, {ago(guard.held.at, now)}"
    if guard.opened_until is not None:
        return f"open for {max(0.0, guard.opened_until - now):.0f} s"
    return _state(guard).replace("_", "-")


def _slowed(guard: GuardRecord) -> str | None:
    """The slowest key, and the one that is paused for longest."""
    parts = [f"to {pace.rate:.3g}/s{_key(pace.key)}" for pace in guard.slowest[:1] if pace.rate is not None]
    parts += [
        f"paused for {pace.paused:.0f} s{_key(pace.key)}: {why_paused(pace.paused, pace.in_row)}"
        for pace in guard.longest[:1]
    ]
    if (share := _paused_share(guard)) >= _LEAST:
        parts.append(f"paused {100 * share:.0f} % of the last hour")
    return ", ".join(parts) or None


def _paused_share(guard: GuardRecord) -> float:
    """The most that any node says: a pause is for all, but one that has just begun has not seen much of it."""
    return max((node.paused for node in guard.nodes), default=0.0)


def _key(key: str) -> str:
    return f" ({key})" if key else ""


async def hold_open(hf: Holdfast, options: Namespace) -> int:
    return await _hold(hf, options, BreakerState.OPEN, "no call goes through")


async def hold_closed(hf: Holdfast, options: Namespace) -> int:
    return await _hold(hf, options, BreakerState.CLOSED, "all calls go through, whatever fails,")


async def _hold(hf: Holdfast, options: Namespace, state: BreakerState, means: str) -> int:
    known = {guard.name: guard for guard in await hf.store.guards.find(limit=1000)}
    if _has_none(hf, options.name, known.get(options.name)):
        told = f"The guard {options.name!r} has no breaker, so there is nothing to hold. Give it breaker=Breaker(…)."
        if options.json:
            document({"guard": options.name, "held": None})
        complain(told)
        return NOT_AS_WISHED
    await hf.store.guards.hold(options.name, state, actor=actor(options))
    if not options.json and options.name not in known:
        complain(f"No process has been heard of with a guard {options.name!r}; it holds for any that comes.")
    if options.json:
        document({"guard": options.name, "held": state.value})
    else:
        say(
            f"{options.name} is held {state.value}: {means} until `holdfast guards release {options.name}`. "
            "Every process hears of it within seconds."
        )
    return DONE


def _has_none(hf: Holdfast, name: str, heard: GuardRecord | None) -> bool:
    """By what the nodes say; else by what the program declares."""
    if heard is not None and (found := has_breaker(heard)) is not None:
        return not found
    guard = inside(hf).registry.known_guards.get(name)
    return guard is not None and guard.breaker is None


async def release(hf: Holdfast, options: Namespace) -> int:
    done = await hf.store.guards.let_go(options.name, actor=actor(options))
    return _end(options, done, f"{options.name} decides by itself again.", f"Nobody holds {options.name!r}.")


async def reset(hf: Holdfast, options: Namespace) -> int:
    done = await hf.store.guards.reset(options.name, actor=actor(options))
    if (elsewhere := inside(hf).guards_elsewhere) is not None:
        done |= await elsewhere.reset(options.name)
    told = f"{options.name} begins anew: closed, nothing counted, nothing slowed."
    return _end(options, done, told, f"No guard {options.name!r} has been heard of.")


def _end(options: Namespace, done: bool, told: str, nothing: str) -> int:
    if options.json:
        document({"guard": options.name, "done": done})
    elif done:
        say(told)
    else:
        complain(f"{nothing} `holdfast guards` lists what there is.")
    return DONE if done else NOT_AS_WISHED
