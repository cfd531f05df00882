"""Looking at what goes on: lines of the log, for people and for programs, metrics for Prometheus, and traces for OpenTelemetry."""

from holdfast.observe.alerts.alert import Alert
from holdfast.observe.alerts.settings import AlertSettings
from holdfast.observe.alerts.signing import NotOurAlert, verify_alert
from holdfast.observe.formats import ConsoleFormatter, JobFields, JsonFormatter
from holdfast.observe.metrics.kinds import Counter, Gauge, Histogram
from holdfast.observe.metrics.route import metrics
from holdfast.observe.metrics.scrape import collect_also
from holdfast.observe.traces.starting import traces

__all__ = [
    "Alert",
    "AlertSettings",
    "ConsoleFormatter",
    "Counter",
    "Gauge",
    "Histogram",
    "JobFields",
    "JsonFormatter",
    "NotOurAlert",
    "collect_also",
    "metrics",
    "traces",
    "verify_alert",
]
