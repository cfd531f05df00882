"""I15: exactly one job for each nominal time. What is nominal is found here by walking the minutes, not by the engine."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

from holdfast.jobs.scheduler import ON_TIME
from holdfast.testing.simulation.checkers.run import Run
from holdfast.testing.simulation.ledger import Entry
from holdfast.testing.simulation.plan import ScheduleSpec
from holdfast.testing.simulation.scheduler import EVERY, LOOK_BACK

LATE = 3.0  # seconds after its nominal time within which a job is on time
_MINUTE = timedelta(minutes=1)
_SAME = 1e-3


def ticks(run: Run) -> Iterator[str]:
    if run.plan.kind in ("events", "sagas", "alerts"):
        return  # its jobs are deliveries, or carry sagas
    made = run.ledger.of("tick")
    for job_id, number in Counter(entry.id for entry in made).items():
        if number > 1 or job_id not in run.ledger.made:
            yield f"job {job_id} stands for {number} nominal times"
    scheduled = [made for made in run.ledger.made.values() if run.args(made).op < 0]
    if len(scheduled) != len(made):
        yield f"{len(scheduled)} jobs were enqueued for {len(made)} nominal times"


def all_made(run: Run) -> Iterator[str]:
    """Each nominal time has its job, since the schedule began."""
    made = run.ledger.of("tick")
    if not run.ledger.entries or run.plan.kind != "store":
        return
    end = run.ledger.entries[-1].at
    start = datetime.fromtimestamp(run.plan.epoch, UTC) - LOOK_BACK
    for each in run.plan.schedules:
        name, expression, zone = each.name, each.expression, each.zone
        nominal = Counter(entry.run_at for entry in made if entry.reason == name)
        due = set(nominal_times(expression, zone, start, datetime.fromtimestamp(end, UTC)))
        for moment, number in nominal.items():
            if number > 1 or moment not in due:
                yield f"schedule {name} ({expression!r}, {zone}): {number} jobs for {_show(moment, zone)}"
        for moment in sorted(due - set(nominal)):
            if moment < end - EVERY * 2:
                yield f"schedule {name} ({expression!r}, {zone}): no job for {_show(moment, zone)}"


def policies(run: Run) -> Iterator[str]:
    """Of the production scheduler: on time while someone is well, and what was missed is treated as was declared."""
    if run.plan.kind != "worker" or not run.ledger.entries:
        return
    for each in run.plan.schedules:
        made = [entry for entry in run.ledger.of("tick") if entry.reason == each.name]
        yield from _in_order(each, made)
        yield from _began(run, each, made)
        yield from _when_missed(run, each, made)
        yield from _on_time(run, each, made)


def _in_order(each: ScheduleSpec, made: list[Entry]) -> Iterator[str]:
    for before, entry in pairwise(made):
        if (entry.run_at or 0) <= (before.run_at or 0):
            yield f"schedule {each.name}: {_show(entry.run_at, each.zone)} came after {_show(before.run_at, each.zone)}"


def _began(run: Run, each: ScheduleSpec, made: list[Entry]) -> Iterator[str]:
    """Its beginning is stored, or what it missed before its first tick would be forgotten with whoever scheduled."""
    began = [entry for entry in run.ledger.of("begin") if entry.reason == each.name]
    if len(began) > 1:
        yield f"schedule {each.name} has {len(began)} beginnings"
    if made and not began and not run.plan.downtime:
        yield f"schedule {each.name} has ticked, and nobody knows when it began"
    if began and made and each.missed == "all":
        for nominal in _between(each, began[0].run_at or 0.0, made[0].run_at or 0.0)[:-1]:
            yield f"schedule {each.name} (all): no job for {_show(nominal, each.zone)}, after it began"


def _when_missed(run: Run, each: ScheduleSpec, made: list[Entry]) -> Iterator[str]:
    for before, entry in pairwise([None, *made]):
        assert entry is not None
        nominal = entry.run_at or 0.0
        if before is None and run.plan.downtime:
            continue  # where it was left before the simulation
        if nominal not in _between(each, nominal - 60, nominal):
            yield f"schedule {each.name} ({each.expression!r}): {_show(nominal, each.zone)} is none of its times"
        if entry.at < nominal - _SAME:
            yield f"schedule {each.name}: {_show(nominal, each.zone)} came {nominal - entry.at:.3f} s early"
        passed_over = [] if before is None else _between(each, before.run_at or 0.0, nominal)[:-1]
        newer = _between(each, nominal, entry.at - LATE)
        match each.missed:
            case "all" if passed_over:
                yield f"schedule {each.name} (all): no job for {_show(passed_over[0], each.zone)}"
            case "latest" | "skip" if newer:
                yield f"schedule {each.name} ({each.missed}): {_show(nominal, each.zone)} was made up for, and was not the newest"
            case "skip" if entry.at - nominal > ON_TIME.total_seconds() + LATE:
                yield f"schedule {each.name} (skip): {_show(nominal, each.zone)} was made {entry.at - nominal:.0f} s late"


def _on_time(run: Run, each: ScheduleSpec, made: list[Entry]) -> Iterator[str]:
    """A nominal time at which someone was well has its job soon. So it has when nobody has begun the schedule by then."""
    have = {entry.run_at: entry for entry in made}
    known = [entry for entry in run.ledger.of("begin", "tick") if entry.reason == each.name]
    first, last = (known or run.ledger.entries)[0], run.ledger.entries[-1]
    for nominal in _between(each, first.at, last.at - LATE):
        # On the simulation's clock, unless that of the database was stepped.
        moment = nominal - last.at + last.moment
        if run.stepped_within(moment, run.ended):
            continue
        if (
            any(run.well(process, moment - LATE, moment + LATE) for process in run.workers)
            and nominal not in have
        ):
            yield f"schedule {each.name}: no job for {_show(nominal, each.zone)}, although a worker was well"


def _between(each: ScheduleSpec, after: float, until: float) -> list[float]:
    """Nominal times in (after, until]."""
    begin, end = (datetime.fromtimestamp(moment, UTC) for moment in (after, until))
    return [moment for moment in nominal_times(each.expression, each.zone, begin, end) if moment > after]


def nominal_times(expression: str, zone: str, after: datetime, until: datetime) -> Iterator[float]:
    """By walking every minute: a skipped local time fires at the gap's end, a repeated one once, open hours always."""
    minutes, hours = (_field(text, most) for text, most in zip(expression.split(), (60, 24), strict=False))
    always = expression.split()[1].startswith("*")
    local = ZoneInfo(zone)
    moment = after.replace(second=0, microsecond=0)
    wall = furthest = moment.astimezone(local).replace(tzinfo=None)
    while moment < until:
        moment += _MINUTE
        before, wall = wall, moment.astimezone(local).replace(tzinfo=None)
        shown = [wall]
        if not always:
            shown = [before + _MINUTE * step for step in range(1, int((wall - before) / _MINUTE) + 1)]
            shown = [face for face in shown if face > furthest]
        furthest = max(furthest, wall)
        if after < moment <= until and any(face.minute in minutes and face.hour in hours for face in shown):
            yield moment.timestamp()


def _field(text: str, most: int) -> set[int]:
    if text == "*":
        return set(range(most))
    if text.startswith("*/"):
        return set(range(0, most, int(text[2:])))
    return {int(part) for part in text.split(",")}


def _show(moment: float | None, zone: str) -> str:
    return datetime.fromtimestamp(moment or 0, ZoneInfo(zone)).isoformat()
