"""I15: exactly one job for each nominal time. What is nominal is found here by walking the minutes, not by the engine."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from holdfast.testing.simulation.checkers.run import Run
from holdfast.testing.simulation.scheduler import EVERY, LOOK_BACK

_MINUTE = timedelta(minutes=1)


def ticks(run: Run) -> Iterator[str]:
    made = run.ledger.of("tick")
    for job_id, number in Counter(entry.id for entry in made).items():
        if number > 1 or job_id not in run.ledger.made:
            yield f"job {job_id} stands for {number} nominal times"
    scheduled = [made for made in run.ledger.made.values() if run.args(made).op < 0]
    if len(scheduled) != len(made):
        yield f"{len(scheduled)} jobs were enqueued for {len(made)} nominal times"
    if not run.ledger.entries:
        return
    end = run.ledger.entries[-1].at
    start = datetime.fromtimestamp(run.plan.epoch, UTC) - LOOK_BACK
    for name, expression, zone in run.plan.schedules:
        nominal = Counter(entry.run_at for entry in made if entry.reason == name)
        due = set(nominal_times(expression, zone, start, datetime.fromtimestamp(end, UTC)))
        for moment, number in nominal.items():
            if number > 1 or moment not in due:
                yield f"schedule {name} ({expression!r}, {zone}): {number} jobs for {_show(moment, zone)}"
        for moment in sorted(due - set(nominal)):
            if moment < end - EVERY * 2:
                yield f"schedule {name} ({expression!r}, {zone}): no job for {_show(moment, zone)}"


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
