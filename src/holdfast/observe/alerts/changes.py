"""Compare what holds with what was told: what has begun, has grown, or is over."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from msgspec.structs import replace

from holdfast.kernel.ids import new_id
from holdfast.observe.alerts.alert import Alert, alert_of
from holdfast.store.alert_records import OF_HOLDFAST, AlertRecord, Looked, Seen

MOST = 100  # messages of one transaction; what is left is told in the next one


class Changes(msgspec.Struct, frozen=True):
    rows: tuple[AlertRecord, ...]  # new ones, and those that have changed
    alerts: tuple[Alert, ...]  # to be told
    more: bool  # there was not room for all


def compare(
    standing: Sequence[AlertRecord], looked: Looked, *, now: float, again: float, calm: float
) -> Changes:
    """A flapping cause is one alert: it is over once it has been quiet for `calm` seconds."""
    rows, alerts = list[AlertRecord](), list[Alert]()
    seen = {(each.kind, each.cause): each for each in looked.seen}
    known = {(row.kind, row.cause) for row in standing}
    for row in standing:
        its = seen.get((row.kind, row.cause))
        changed, alert = _still(row, its, now, again) if its else _not_seen(row, looked, now, calm)
        if alert is not None and len(alerts) >= MOST:
            return Changes(tuple(rows), tuple(alerts), more=True)
        if changed != row:
            rows.append(changed)
        alerts += [] if alert is None else [alert]
    for key, its in seen.items():
        if key not in known:
            if len(alerts) >= MOST:
                return Changes(tuple(rows), tuple(alerts), more=True)
            rows.append(_opened(its, now))
            alerts.append(alert_of(rows[-1], "opened", now))
    return Changes(tuple(rows), tuple(alerts), more=False)


def _opened(its: Seen, now: float) -> AlertRecord:
    return AlertRecord(
        id=new_id(), kind=its.kind, cause=its.cause, number=its.number, opened_at=now, told_at=now,
        told_number=its.number,
    )  # fmt: skip


def _still(row: AlertRecord, its: Seen, now: float, again: float) -> tuple[AlertRecord, Alert | None]:
    held = replace(row, number=its.number, quiet_since=None)
    if its.number <= row.told_number or now - row.told_at < again:
        return held, None
    told = replace(held, told_at=now, told_number=its.number)
    return told, alert_of(told, "again", now)


def _not_seen(row: AlertRecord, looked: Looked, now: float, calm: float) -> tuple[AlertRecord, Alert | None]:
    if (row.kind if row.kind in OF_HOLDFAST else None) in looked.cut:
        return row, None  # nobody knows whether it holds
    quiet = replace(row, quiet_since=now) if row.quiet_since is None else row
    if quiet.quiet_since is None or now - quiet.quiet_since < calm:
        return quiet, None
    over = replace(quiet, ended_at=now)
    return over, alert_of(over, "over", now)
