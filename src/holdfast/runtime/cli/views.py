"""`holdfast views`: how far views are behind and what they could not take; build one anew, forget one."""

from __future__ import annotations

from argparse import Namespace
from typing import Any

import msgspec

from holdfast.runtime.app import Holdfast
from holdfast.runtime.cli.command import DONE, NOT_AS_WISHED, actor, add_command, add_group
from holdfast.runtime.cli.output import complain, document, say, show_fields, show_table
from holdfast.runtime.cli.parser import Commands, count
from holdfast.runtime.cli.table import Column
from holdfast.runtime.cli.times import cell, span, told
from holdfast.store.view_records import Aside, Checkpoint, SetAside
from holdfast.views.halts import halt_of
from holdfast.views.lag import Lag, lag_of
from holdfast.views.rebuilding import rebuild as begin_rebuild

_COLUMNS = (
    Column("view", whole=True),
    Column("position", right=True),
    Column("behind", right=True),
    Column("set aside", right=True),
    Column("rebuild"),
    Column("last run"),
)
_ASIDE = (
    Column("position", right=True),
    Column("event", whole=True),
    Column("row"),
    Column("tries", right=True),
    Column("error"),
)


def add(commands: Commands) -> None:
    about = "list the views and how far they are behind; show one, rebuild it, forget it"
    parser, group = add_group(commands, "views", about=about, act=list_views)
    parser.add_argument("--limit", type=count, default=100, help="at most so many (100)")
    listing = add_command(group, "list", list_views, about="list the views, as `views` alone does")
    listing.add_argument("--limit", type=count, default=100, help="at most so many (100)")
    showing = add_command(group, "show", show, about="show a view and the events that it could not take")
    showing.add_argument("name")
    building = add_command(group, "rebuild", rebuild, about="build a view anew; the old rows serve meanwhile")
    building.add_argument("name")
    building.add_argument(
        "--partial", action="store_true", help="also when events are gone that the present rows have"
    )
    add_command(
        group, "forget", forget, about="give up a view that nobody runs any more, with its rows"
    ).add_argument("name")


async def list_views(hf: Holdfast, options: Namespace) -> int:
    checkpoints = await hf.store.views.checkpoints(limit=options.limit)
    names = dict.fromkeys([*(each.view for each in checkpoints), *(view.name for view in hf.views)])
    found = [await _described(hf, name, checkpoints) for name in names]
    if options.json:
        document({"views": found})
        return DONE
    now = await hf.store.now()
    show_table(_COLUMNS, [_row(each, now) for each in found], nothing="No view has been run yet.")
    return DONE


async def _described(hf: Holdfast, name: str, checkpoints: list[Checkpoint]) -> dict[str, Any]:
    """The stable keys of a view. One that the program declares and nobody has run has only its name."""
    lag = await lag_of(hf.store, name)
    own = {each.state: each for each in checkpoints if each.view == name}
    serving, building = own.get("serving"), own.get("building")
    return {
        "view": name,
        "declared": any(view.name == name for view in hf.views),
        "generation": None if serving is None else serving.generation,
        "start": None if serving is None else serving.start,
        "position": None if serving is None else serving.position,
        "history": None if serving is None else serving.history,
        "seen_at": None if serving is None else serving.seen_at,
        **_behind(lag),
        "rebuild": None if building is None else msgspec.structs.asdict(building),
    }


def _behind(lag: Lag | None) -> dict[str, Any]:
    if lag is None:
        return {"behind": None, "behind_seconds": None, "aside": None}
    return {"behind": lag.events, "behind_seconds": lag.seconds, "aside": lag.aside}


def _row(view: dict[str, Any], now: float) -> list[object]:
    if view["generation"] is None:
        return [view["view"], "", "", "", "", "never"]
    behind = (
        f"{view['behind']:,}"
        if not view["behind"]
        else f"{view['behind']:,} ({span(view['behind_seconds'])})"
    )
    return [
        view["view"],
        f"{view['position']:,}",
        behind,
        f"{view['aside']:,}",
        _rebuild(view),
        cell(view["seen_at"], now),
    ]


def _rebuild(view: dict[str, Any]) -> str:
    building = view["rebuild"]
    return "" if building is None else f"at {building['position']:,}"


async def show(hf: Holdfast, options: Namespace) -> int:
    checkpoints = await hf.store.views.checkpoints(view=options.name)
    if not checkpoints:
        complain(f"Nobody has run a view {options.name!r} here. `holdfast views` lists those that are known.")
        return NOT_AS_WISHED
    found = await _described(hf, options.name, checkpoints)
    aside = await hf.store.views.aside(options.name)
    in_rebuild = await _aside_in_rebuild(hf, found)
    halt = await _halt(hf, options.name)
    if options.json:
        document(
            {
                **found,
                "stands_before": None if halt is None else _plain(halt),
                "events_aside": [_plain(each) for each in aside],
                "rebuild_events_aside": [_plain(each) for each in in_rebuild],
            }
        )
        return DONE
    _show_fields(found, halt, await hf.store.now())
    _show_aside(aside)
    if in_rebuild:
        say(f"\nThe rebuild, generation {found['rebuild']['generation']}, could not take:")
        _show_aside(in_rebuild)
    return DONE


async def _aside_in_rebuild(hf: Holdfast, found: dict[str, Any]) -> list[Aside]:
    """It does not serve as long as events wait in it that the old rows have."""
    if found["rebuild"] is None:
        return []
    return await hf.store.views.aside(found["view"], generation=found["rebuild"]["generation"])


async def _halt(hf: Holdfast, name: str) -> SetAside | None:
    """As this program's code has it: the worker's may be another."""
    own = [view.projection for view in hf.views if view.name == name]
    return await halt_of(hf.store, own[0]) if own else None


def _show_fields(found: dict[str, Any], halt: SetAside | None, now: float) -> None:
    stands = None if halt is None else f"position {halt.position:,}: {_first_line(halt.error)}"
    show_fields(
        [
            ("view", found["view"]),
            ("generation", found["generation"]),
            ("position", f"{found['position']:,}"),
            ("behind", f"{found['behind']:,} events"),
            ("stands before", stands),
            ("history", "kept" if found["history"] else f"read from position {found['start'] + 1:,} on"),
            ("rebuild", _rebuild(found) or None),
            ("last run", told(found["seen_at"], now)),
            ("set aside", f"{found['aside']:,} events"),
        ]
    )


def _show_aside(events: list[Aside]) -> None:
    if events:
        say()
        show_table(_ASIDE, [_aside(each) for each in events], nothing="")


def _plain(event: Aside | SetAside) -> dict[str, Any]:
    """Without the event itself, which not everyone shall see who looks at a list; `outbox show` has it."""
    found = msgspec.structs.asdict(event)
    del found["event"]
    return found


def _aside(event: Aside) -> list[object]:
    return [event.position, event.event_id, event.key, event.tries, _first_line(event.error)]


def _first_line(error: str) -> str:
    return error.partition("\n")[0]


async def rebuild(hf: Holdfast, options: Namespace) -> int:
    begun = await begin_rebuild(hf.store, options.name, partial=options.partial, actor=actor(options))
    if options.json:
        document(msgspec.structs.asdict(begun))
    else:
        say(
            f"{begun.view} is built anew from position {begun.start + 1:,} on, as generation {begun.generation}, by the workers "
            "that have it. The old rows serve until it is as far."
        )
    return DONE


async def forget(hf: Holdfast, options: Namespace) -> int:
    done = await hf.store.views.forget(options.name, actor=actor(options))
    if options.json:
        document({"view": options.name, "done": done})
    elif done:
        say(
            f"{options.name} is forgotten, and no events are kept for it. A worker that has it begins it anew."
        )
    else:
        complain(f"There is no view {options.name!r} to forget.")
    return DONE if done else NOT_AS_WISHED
