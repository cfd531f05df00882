"""What `holdfast doctor` says of alerts: whether anybody is told, and whether telling works."""

from __future__ import annotations

from collections.abc import Iterator

from holdfast.runtime.alerting import QUEUE, ProgramAlerts
from holdfast.runtime.app import Holdfast
from holdfast.store.findings import Finding, ok, warn
from holdfast.store.states import State

_CHECK = "alerts"
_LOOKED = 1_000


async def examine(hf: Holdfast) -> list[Finding]:
    """Nothing is said where no alerts are wanted."""
    return [*_settings(hf.alerts), *await _told(hf)] if hf.alerts.is_active else []


def _settings(alerts: ProgramAlerts) -> Iterator[Finding]:
    if alerts.settings.is_plain:
        yield warn(
            _CHECK,
            "The webhook of alerts is http:// on another machine: what it is sent can be read on its way.",
            "Use https:// in HOLDFAST_ALERTS_WEBHOOK.",
        )
    else:
        yield ok(_CHECK, f"Alerts are told to: {', '.join(alerts.channels)}.")


async def _told(hf: Holdfast) -> list[Finding]:
    """What nobody was told, after hours of trying."""
    dead = await hf.store.jobs.find(state=State.DEAD, queue=QUEUE, limit=_LOOKED)
    if not dead:
        return []
    tasks = ", ".join(sorted({each.task for each in dead}))
    return [
        warn(
            _CHECK,
            f"Messages of alerts that could not be delivered: {len(dead):,} ({tasks}).",
            f"See why: holdfast dead list --queue {QUEUE}. Mend the receiver, then `holdfast dead replay` or `discard` them.",
        )
    ]
