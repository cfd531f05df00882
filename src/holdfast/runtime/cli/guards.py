"""`holdfast guards`: the state of each guard in the fleet and the jobs it holds; hold it open or closed, let go, reset."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence
from typing import Any

import msgspec

from holdfast.runtime.app import Holdfast
from holdfast.runtime.cli.command import DONE, NOT_AS_WISHED, actor, add_command, add_group
from holdfast.runtime.cli.output import complain, document, say, show_table
from holdfast.runtime.cli.parser import Commands, count
from holdfast.runtime.cli.table import Column
from holdfast.runtime.cli.times import ago
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
_ACTS = {
    "hold-open": "let no call through, on any node, until `release`",
    "hold-closed": "let all calls through, whatever fails, until `release`",
    "release": "let the breaker decide by itself again",
    "reset": "begin anew: closed, nothing counted, no rate lowered, no pause",
}


def add(commands: Commands) -> None:
    about = "list the guards of the fleet; hold them open or closed, reset them"
    parser, group = add_group(commands, "guards", about=about, act=list_guards)
    parser.add_argument("--limit", type=count, default=100, help="at most so many (100)")
    add_command(group, "list", list_guards, about="list the guards, as `guards` alone does")
    acts = {"hold-open": hold_open, "hold-closed": hold_closed, "release": release, "reset": reset}
    for name, act in acts.items():
        add_command(group, name, act, about=_ACTS[name]).add_argument("name")


async def list_guards(hf: Holdfast, options: Namespace) -> int:
    found = await hf.store.guards.find(limit=options.limit)
    gated = await hf.store.holds.gated(limit=options.limit)
    now = await hf.store.now()
    if options.json:
        document(
            {
                "guards": [_told(each, gated) for each in found],
                "held": [msgspec.structs.asdict(g) for g in gated],
            }
        )
        return DONE
    show_table(_COLUMNS, [_row(each, gated, now) for each in found], nothing="No guard has been heard of.")
    return DONE


def _told(guard: GuardRecord, gated: Sequence[Gated]) -> dict[str, Any]:
    told: dict[str, Any] = msgspec.to_builtins(guard)
    return told | {"state": _state(guard), "jobs_held": _held(guard, gated)}


def _state(guard: GuardRecord) -> str:
    if guard.held is not None:
        return guard.held.state.value
    if guard.opened_until is not None:
        return BreakerState.OPEN.value
    return BreakerState.HALF_OPEN.value if guard.probes else BreakerState.CLOSED.value


def _held(guard: GuardRecord, gated: Sequence[Gated]) -> int:
    """Also under the keys of its limiter."""
    mine = (
        each
        for each in gated
        if each.guard is not None and (each.guard == guard.name or each.guard.startswith(f"{guard.name}/"))
    )
    return sum(each.number for each in mine)


def _row(guard: GuardRecord, gated: Sequence[Gated], now: float) -> list[object]:
    held = _held(guard, gated)
    return [
        guard.name,
        _breaker(guard, now),
        guard.nodes_number,
        sum(node.state is BreakerState.OPEN for node in guard.nodes) or None,
        f"{sum(node.calls for node in guard.nodes):,}",
        f"{sum(node.failures for node in guard.nodes):,}",
        _slowed(guard),
        f"{held:,}{'+' if held >= GATED_COUNTED else ''}" if held else None,
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
    parts += [f"paused for {pace.paused:.0f} s{_key(pace.key)}" for pace in guard.longest[:1]]
    return ", ".join(parts) or None


def _key(key: str) -> str:
    return f" ({key})" if key else ""


async def hold_open(hf: Holdfast, options: Namespace) -> int:
    return await _hold(hf, options, BreakerState.OPEN, "no call goes through")


async def hold_closed(hf: Holdfast, options: Namespace) -> int:
    return await _hold(hf, options, BreakerState.CLOSED, "all calls go through, whatever fails,")


async def _hold(hf: Holdfast, options: Namespace, state: BreakerState, means: str) -> int:
    known = {guard.name for guard in await hf.store.guards.find(limit=1000)}
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


async def release(hf: Holdfast, options: Namespace) -> int:
    done = await hf.store.guards.let_go(options.name, actor=actor(options))
    return _end(options, done, f"{options.name} decides by itself again.", f"Nobody holds {options.name!r}.")


async def reset(hf: Holdfast, options: Namespace) -> int:
    done = await hf.store.guards.reset(options.name, actor=actor(options))
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
