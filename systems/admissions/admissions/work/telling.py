"""Alerts as lines of the log, whatever other channels there are: HOLDFAST_ALERTS_WEBHOOK and HOLDFAST_ALERTS_MAIL tell people."""

from __future__ import annotations

import logging

from admissions.core import hf
from holdfast.observe import Alert

_LOG = logging.getLogger("admissions.alerts")
HIGH = frozenset({"dead", "money", "quarantined", "needs_operator", "unknown"})


@hf.on_alert(name="log")
async def log(alert: Alert) -> None:
    """Names and numbers; no data of jobs."""
    severity = "HIGH" if alert.kind in HIGH else "LOW"
    kind = "JOB_FAILED" if alert.kind == "dead" else alert.kind
    _LOG.warning("alert %s, severity %s, %s: %s", kind, severity, alert.state, alert.text)
