"""What an alert may be that a store is to keep."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from holdfast.kernel.errors import UsageError
from holdfast.kernel.names import check_int, check_name, check_seconds
from holdfast.kernel.show import show
from holdfast.store.alert_records import AlertRecord

_TIMES = ("opened_at", "told_at", "quiet_since", "ended_at")
_MOST = 2**63 - 1


def check_alerts(alerts: Any) -> Sequence[AlertRecord]:
    if isinstance(alerts, str) or not isinstance(alerts, Sequence):
        raise UsageError(f"Alerts to keep are a list of AlertRecord, not {show(alerts)}.")
    ids = [_checked(each).id for each in alerts]
    if len(set(ids)) < len(ids):
        raise UsageError("An alert is written once in one call, and here one is twice.")
    return alerts


def _checked(alert: Any) -> AlertRecord:
    if not isinstance(alert, AlertRecord):
        raise UsageError(f"An alert to keep is an AlertRecord, not {show(alert)} ({type(alert).__name__}).")
    for name in ("id", "kind", "cause"):
        check_name(name, getattr(alert, name))
    for name in ("number", "told_number"):
        check_int(name, getattr(alert, name), 0, _MOST)
    for name in _TIMES:
        if (at := getattr(alert, name)) is not None or name in ("opened_at", "told_at"):
            check_seconds(name, at)
    return alert
