"""Makes a line in the log of a note: at its level, as a sentence, with its fields on the record.

Whatever a value holds, it stays within its line; what is secret to the job that runs here is hidden. Floods are bounded.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from holdfast.kernel.context import context
from holdfast.kernel.failure import Failure
from holdfast.kernel.floods import Floods, Kind
from holdfast.kernel.masking import hide, secrets_here
from holdfast.kernel.notes import NOTES, Entry
from holdfast.kernel.show import one_line, show
from holdfast.kernel.tracing import ids

_LONGEST = 500  # characters of one value
_PART = re.compile(r"\[([^]]*\{(\w+)\}[^]]*)\]")  # of a sentence: left out when it has nothing to say
_PLACE = re.compile(r"  (.+):(\d+) in (.+)")  # where an error was raised, as jobs.failures tells it
_LOGGERS = {entry.logger: logging.getLogger(entry.logger) for entry in NOTES.values()}
_HOME = logging.getLogger("holdfast")
# Ids are called the same in all lines, and logging keeps some names for itself.
NAMES = {
    "job": "job_id", "event": "event_id", "saga": "saga_id", "name": "called", "module": "module_name",
    "thread": "thread_name", "process": "pid", "message": "message_id",
}  # fmt: skip


def log(name: str, fields: Mapping[str, Any], failure: Failure | None) -> None:
    """It never raises: who does a thing must not fail by telling of it."""
    entry = NOTES.get(name)
    if entry is None:
        _HOME.debug("%s %s", name, fields)
        return
    logger = _LOGGERS[entry.logger]
    if not logger.isEnabledFor(entry.level):
        return
    with suppress(Exception):
        if entry.level <= logging.DEBUG or _floods.admits((name, fields.get("task")), fields):
            shown = failure if entry.level >= logging.ERROR or logger.isEnabledFor(logging.DEBUG) else None
            _write(logger, entry, fields, _sentence(entry, fields), shown)


def is_logged(name: str) -> bool:
    entry = NOTES[name]
    return _LOGGERS[entry.logger].isEnabledFor(entry.level)


def flush() -> None:
    """Tell of all lines that were left out: the log ends here."""
    with suppress(Exception):
        _floods.flush()


def _tell_flood(kind: Kind, left_out: int, seconds: float, fields: Mapping[str, Any]) -> None:
    entry, task = NOTES[kind[0]], kind[1]
    of = f" of {one_line(task)}" if task else ""
    text = f"{left_out} more lines like this{of} in {seconds:.0f} s were left out ({entry.name}); the last: {_sentence(entry, fields)}"
    _write(_LOGGERS[entry.logger], entry, {**fields, "left_out": left_out}, text, None)


_floods = Floods(_tell_flood)


def _write(
    logger: logging.Logger, entry: Entry, fields: Mapping[str, Any], text: str, failure: Failure | None
) -> None:
    record = logger.makeRecord(
        logger.name,
        entry.level,
        __file__,
        0,
        text,
        (),
        None if failure is None or secrets_here.get() else failure.exc_info(),
        entry.name,
        _extra(entry, fields),
    )
    if failure is not None:  # any formatter appends it, and makes no other of the exception
        record.exc_text = hide(failure.text(), secrets_here.get())
    logger.handle(record)


def _extra(entry: Entry, fields: Mapping[str, Any]) -> dict[str, Any]:
    here = context()
    found = {NAMES.get(name, name): _plain(value) for name, value in fields.items()}
    if here.job_id is not None:
        found.setdefault("job_id", here.job_id)
    if here.correlation_id is not None:
        found.setdefault("correlation_id", one_line(here.correlation_id))
    if (span := ids()) is not None:
        found["trace_id"], found["span_id"] = span
    return {**found, "event": entry.name}


def _sentence(entry: Entry, fields: Mapping[str, Any]) -> str:
    form = _PART.sub(lambda part: part[1] if fields.get(part[2]) else "", entry.sentence)
    told = {name: _told(_plain(value)) for name, value in fields.items()}
    try:
        return form.format_map(told)
    except KeyError:  # it is noted without a field of its sentence, which the check of notes finds
        return f"{entry.name} {told}"


def _plain(value: Any) -> Any:
    """A number, a text of one line, or a list or table of these."""
    if value is None or isinstance(value, int | float):
        return value
    if isinstance(value, Mapping):
        return {_text(str(key)): _plain(each) for key, each in value.items()}
    if isinstance(value, Sequence | set | frozenset) and not isinstance(value, str | bytes):
        return [_plain(each) for each in value]
    return _text(str(value) if isinstance(value, str) else show(value))


def _text(text: str) -> str:
    """The first line, and where it happened; an error's text has the type and the message there."""
    first, *rest = hide(text, secrets_here.get()).splitlines() or [""]
    if rest and (place := _PLACE.fullmatch(rest[-1])) is not None:
        first = f"{first} ({Path(place[1]).name}:{place[2]} in {place[3]})"
    first = one_line(first)
    return first if len(first) <= _LONGEST else f"{first[:_LONGEST]}… ({len(first)} characters)"


def _told(value: Any) -> str:
    if isinstance(value, float):
        return f"{round(value, 1 if abs(value) >= 1 else 3):.12g}"
    if isinstance(value, dict):
        return ", ".join(f"{key}:{_told(each)}" for key, each in value.items())
    if isinstance(value, list):
        return ", ".join(map(_told, value))
    return str(value)
