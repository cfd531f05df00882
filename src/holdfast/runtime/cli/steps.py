"""The steps and effects of a job as they are shown: what it has done so far, and what only a person can decide."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import msgspec

from holdfast.jobs.handled import Kept
from holdfast.kernel.masking import hide, secret_values
from holdfast.runtime.cli.output import show_table
from holdfast.runtime.cli.table import Column, clean, shortened
from holdfast.runtime.cli.times import cell
from holdfast.store.records import JobRecord
from holdfast.store.steps import Progress, StepRecord

_RESULT_SHOWN = 60  # places: a result may have 256 KiB, and `--json` has all of it
_LISTED = (
    "name",
    "number",
    "kind",
    "progress",
    "branch",
    "token",
    "first_at",
    "begun_at",
    "at",
    "calls",
    "looks",
)
_COLUMNS = (
    Column("step"),
    Column("kind"),
    Column("progress"),
    Column("begun", spare=True),
    Column("at"),
    Column("token", right=True, spare=True),
    Column("result"),
)


def undecided(steps: Sequence[StepRecord]) -> list[StepRecord]:
    """The effects that wait for a person."""
    return [each for each in steps if each.progress is Progress.UNKNOWN]


def as_steps(record: JobRecord, steps: Sequence[StepRecord]) -> list[dict[str, Any]]:
    """The stable keys of each, for programs. A fingerprint is none of them: a secret could be guessed by it."""
    return [
        {**{name: getattr(each, name) for name in _LISTED}, "result": _read(_result(record, each))}
        for each in steps
    ]


def show_steps(record: JobRecord, steps: Sequence[StepRecord], now: float) -> None:
    """With a mark in front of those that a person must decide about, if there are any."""
    rows = [_row(record, each, now) for each in steps]
    if not undecided(steps):
        show_table(_COLUMNS, rows, nothing="")
        return
    marks = [">" if each.progress is Progress.UNKNOWN else "" for each in steps]
    marked = [[mark, *row] for mark, row in zip(marks, rows, strict=True)]
    show_table((Column("", whole=True), *_COLUMNS), marked, nothing="")


def _row(record: JobRecord, step: StepRecord, now: float) -> list[object]:
    short = None if step.result is None else shortened(clean(_told(record, step)), _RESULT_SHOWN)
    return [
        step.name,
        step.kind,
        step.progress,
        cell(step.first_at if step.begun_at is None else step.begun_at, now),
        cell(step.at, now),
        step.token,
        short,
    ]


def _told(record: JobRecord, step: StepRecord) -> str:
    """In words: of one that failed, and that the task went on without, how it failed."""
    if step.progress is not Progress.HANDLED:
        return _result(record, step) or ""
    failure = msgspec.json.decode(step.result or "{}", type=Kept)
    return f"{failure.kind}: {failure.message}"


def _result(record: JobRecord, step: StepRecord) -> str | None:
    """A step may give back what its job keeps secret."""
    return None if step.result is None else hide(step.result, secret_values(record.args))


def _read(text: str | None) -> Any:
    """A mask may have made other text of what was JSON."""
    try:
        return None if text is None else json.loads(text)
    except ValueError:
        return text
