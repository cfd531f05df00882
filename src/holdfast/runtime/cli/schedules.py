"""`holdfast schedules`: when the program's schedules fired last, and when they fire next."""

from __future__ import annotations

from argparse import Namespace
from typing import Any
from zoneinfo import ZoneInfo

from holdfast.jobs.cron import Cron
from holdfast.jobs.schedule import Schedule
from holdfast.kernel.clock import moment
from holdfast.kernel.errors import UsageError
from holdfast.runtime.app import Holdfast
from holdfast.runtime.cli.command import DONE, NOT_AS_WISHED, actor, add_command, add_group
from holdfast.runtime.cli.output import complain, document, say, show_fields, show_table
from holdfast.runtime.cli.parser import Commands
from holdfast.runtime.cli.table import Column
from holdfast.runtime.cli.times import ago, cell, told
from holdfast.runtime.inside import inside

_COLUMNS = (Column("schedule"), Column("when"), Column("missed"), Column("last"), Column("next"))
_FIRES = 10


def add(commands: Commands) -> None:
    about = "list the program's schedules (--app) with their last and next times"
    _, group = add_group(commands, "schedules", about=about, act=list_schedules, check=_needs_program)
    add_command(
        group, "list", list_schedules, about="list them, as `schedules` alone does", check=_needs_program
    )
    about = f"show the next {_FIRES} times of a schedule"
    showing = add_command(group, "show", show, about=about, check=_needs_program)
    showing.add_argument("name")
    resetting = add_command(group, "reset", reset, about="forget a schedule's last tick: it begins anew, now")
    resetting.add_argument("name")


async def list_schedules(hf: Holdfast, options: Namespace) -> int:
    now = await hf.store.now()
    found = [await _described(hf, schedule, now) for schedule in inside(hf).registry.schedules.values()]
    if options.json:
        document({"schedules": found})
        return DONE
    rows = [
        [
            each["schedule"],
            each["when"],
            each["missed"],
            cell(each["last"], now) or "never",
            cell(each["next"], now),
        ]
        for each in found
    ]
    show_table(_COLUMNS, rows, nothing="The program has no schedules.")
    return DONE


async def _described(hf: Holdfast, schedule: Schedule, now: float) -> dict[str, Any]:
    last = await hf.store.schedules.last(schedule.name)
    upcoming = schedule.next(moment(now), 1)
    return {
        "schedule": schedule.name,
        "task": schedule.task.name,
        "when": schedule.times.told(),
        "missed": schedule.missed,
        "last": None if last is None else last.nominal,
        "last_job": None if last is None else last.job_id,
        "next": upcoming[0].timestamp() if upcoming else None,
    }


async def show(hf: Holdfast, options: Namespace) -> int:
    if (schedule := inside(hf).registry.schedules.get(options.name)) is None:
        names = ", ".join(inside(hf).registry.schedules) or "none"
        complain(f"The program has no schedule {options.name!r}. There are: {names}.")
        return NOT_AS_WISHED
    now = await hf.store.now()
    described = await _described(hf, schedule, now)
    times = [each.timestamp() for each in schedule.next(moment(now), _FIRES)]
    if options.json:
        document({**described, "zone": _zone(schedule), "fires": times})
    else:
        _print_schedule(schedule, described, times, now)
    return DONE


def _print_schedule(schedule: Schedule, described: dict[str, Any], times: list[float], now: float) -> None:
    last = told(described["last"], now)
    fields = [("schedule", schedule.name), ("task", described["task"]), ("when", described["when"])]
    show_fields(
        [*fields, ("missed", schedule.missed), ("last", last or "never"), ("job", described["last_job"])]
    )
    say()
    zone = _zone(schedule)
    columns = (
        [Column(zone), Column("utc"), Column("fires")] if zone != "UTC" else [Column("utc"), Column("fires")]
    )
    rows = [[*_in_zones(each, zone), ago(each, now)] for each in times]
    show_table(columns, rows, nothing="It does not fire in the years to come.")


def _in_zones(then: float, zone: str) -> list[str]:
    """With the offset: an hour that comes twice is seen to."""
    there = moment(then).astimezone(ZoneInfo(zone)).isoformat(timespec="seconds")
    utc = moment(then).isoformat(timespec="seconds").replace("+00:00", "Z")
    return [utc] if zone == "UTC" else [there, utc]


def _zone(schedule: Schedule) -> str:
    return schedule.times.tz if isinstance(schedule.times, Cron) else "UTC"


async def reset(hf: Holdfast, options: Namespace) -> int:
    """Also of a schedule that the program has no more: only the store knows it then."""
    there = await hf.store.schedules.reset(options.name, actor=actor(options))
    if options.json:
        document({"schedule": options.name, "done": there})
    elif there:
        say(f"{options.name} has no last tick any more: it begins anew with its next time.")
    else:
        complain(f"The schedule {options.name!r} has no last tick; it has not fired, or is not known here.")
    return DONE if there else NOT_AS_WISHED


def _needs_program(options: Namespace) -> None:
    if options.app is None:
        raise UsageError("Schedules stand in the program's code. Name the program: --app shop.tasks:hf.")
