"""How lines of the log look: on a terminal, and as one JSON object each. Both tell of which job a line speaks."""

from __future__ import annotations

import json
import logging
from math import isfinite
from typing import Any

from holdfast.kernel.clock import moment
from holdfast.kernel.context import context
from holdfast.kernel.masking import hide, secrets_here
from holdfast.kernel.show import one_line, show
from holdfast.kernel.tracing import ids

_INDENT = "    "
_STANDARD = {*logging.makeLogRecord({}).__dict__, "message", "asctime", "taskName"}
_FIRST = ("event", "job_id", "correlation_id", "trace_id", "span_id")  # of the fields, in this order
_RESET, _DIM = "\x1b[0m", "\x1b[2m"
_COLOURS = {
    logging.DEBUG: _DIM,
    logging.WARNING: "\x1b[33m",
    logging.ERROR: "\x1b[31m",
    logging.CRITICAL: "\x1b[31;1m",
}
# JSON leaves these as they are, and some readers begin a new line there.
_SEPARATORS = {code: f"\\u{code:04x}" for code in (0x7F, *range(0x80, 0xA0), 0x2028, 0x2029)}


class JobFields(logging.Filter):
    """Gives each record `job_id` and `correlation_id`, of the job that logs it, and `trace_id` and `span_id`; empty where there is none.

    For handlers of your own: `handler.addFilter(JobFields())`, and `%(job_id)s` in the format.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        here = context()
        if not hasattr(record, "job_id"):
            record.job_id = here.job_id or ""
        if not hasattr(record, "correlation_id"):
            record.correlation_id = one_line(here.correlation_id or "")
        if not hasattr(record, "trace_id"):
            record.trace_id, record.span_id = ids() or ("", "")
        return True


class ConsoleFormatter(logging.Formatter):
    """`2026-11-18 10:15:02.123 INFO    holdfast.worker: …`, in local time. Only the first line of a record begins at the left."""

    default_msec_format = "%s.%03d"

    def __init__(self, *, colour: bool = False) -> None:
        super().__init__()
        self._colour = colour

    def format(self, record: logging.LogRecord) -> str:
        first, *rest = _message(record).splitlines() or [""]
        lines = [
            one_line(first) + _of_job(record) + _of_span(record),
            *(_INDENT + one_line(line) for line in rest),
        ]
        when, level = self.formatTime(record), f"{record.levelname:<7}"
        if self._colour:
            when, level = f"{_DIM}{when}{_RESET}", f"{_COLOURS.get(record.levelno, '')}{level}{_RESET}"
        lines[0] = f"{when} {level} {one_line(record.name)}: {lines[0]}"
        if trace := _trace(self, record):
            lines.append(trace)
        return "\n".join(lines)


class JsonFormatter(logging.Formatter):
    """One object a line: `ts` (UTC), `level`, `logger`, `message`, the fields of the record, and `traceback`."""

    def format(self, record: logging.LogRecord) -> str:
        found: dict[str, Any] = {
            "ts": moment(record.created).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "level": record.levelname,
            "logger": record.name,
            "message": _message(record),
            **_fields(record),
        }
        if trace := _trace(self, record):
            found["traceback"] = trace
        return json.dumps(found, ensure_ascii=False, default=show).translate(_SEPARATORS)


def _message(record: logging.LogRecord) -> str:
    try:
        text = record.getMessage()
    except Exception:  # noqa: BLE001  the program's own line has arguments that do not fit: it shall be seen
        text = f"{record.msg} {show(record.args)}"
    return hide(text, secrets_here.get())


def _of_job(record: logging.LogRecord) -> str:
    """Holdfast's own lines speak of their job."""
    job = context().job_id
    return "" if job is None or hasattr(record, "event") else f" (job {job})"


def _of_span(record: logging.LogRecord) -> str:
    JobFields().filter(record)
    trace, span = getattr(record, "trace_id", ""), getattr(record, "span_id", "")
    return f" trace_id={one_line(trace)} span_id={one_line(span)}" if trace and span else ""


def _fields(record: logging.LogRecord) -> dict[str, Any]:
    JobFields().filter(record)
    found = {name: _plain(value) for name, value in record.__dict__.items() if name not in _STANDARD}
    first = {name: found.pop(name) for name in _FIRST if found.get(name)}
    return {**first, **{name: value for name, value in found.items() if name not in _FIRST}}


def _plain(value: Any) -> Any:
    if isinstance(value, float):
        return value if isfinite(value) else str(value)
    return hide(value, secrets_here.get()) if isinstance(value, str) else value


def _trace(formatter: logging.Formatter, record: logging.LogRecord) -> str:
    """What Holdfast has made harmless already, or what the program logs with an exception."""
    if record.exc_text:
        return record.exc_text
    if not record.exc_info or record.exc_info[0] is None:
        return ""
    text = hide(formatter.formatException(record.exc_info), secrets_here.get())
    return "\n".join(_INDENT + one_line(line) for line in text.splitlines())
