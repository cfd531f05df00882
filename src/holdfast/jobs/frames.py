"""What a worker and a task's own process say to each other, in lines of JSON: a request, what its guards are asked, an answer."""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

from holdfast.guards.faults import Fault
from holdfast.kernel.context import Context


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """Which task to run, and with what."""

    path: list[str]  # where modules are imported from
    module: str
    task: str  # the name by which it is declared
    args: str  # as they are stored
    context: Context  # the story that the job belongs to
    left: float | None = None  # seconds until its deadline
    guards: list[str] = []  # those of the worker, which the process asks instead of its own


class Answer(msgspec.Struct, frozen=True, kw_only=True, tag="answer"):
    """How it ended: a result as JSON text, or words about why there is none."""

    kind: Literal["done", "failed", "never", "refused", "group", "retry", "snooze", "cancel", "reject"]
    result: str | None = None
    text: str = ""
    after: float | None = None  # seconds
    fault: Fault | None = None  # what its guard makes of a failure
    refusal: str = ""  # the name of its type
    parts: list[Answer] = []  # of a group of exceptions: those that differ


class Ask(msgspec.Struct, frozen=True, kw_only=True, tag="ask"):
    """May this attempt be made? The answer is a `Said` of the same number."""

    number: int
    guard: str
    key: str
    cost: float
    left: float | None = None  # seconds until the deadline around it


class Told(msgspec.Struct, frozen=True, kw_only=True, tag="told"):
    """How an attempt ended, or that it was not made; before that, that the other side wants us to rest."""

    number: int
    how: Literal["rests", "succeeded", "failed", "cut_off", "not_made"]
    fault: Fault | None = None
    for_breaker: Fault | None = None  # what the breaker's own classifier says
    retry_after: float | None = None
    took: float | None = None  # seconds of it that were the other side's, if some were not


class Said(msgspec.Struct, frozen=True, kw_only=True):
    """Whether it may be made."""

    number: int
    refusal: str = ""  # the name of an error's type; empty: it may
    text: str = ""
    retry_after: float | None = None


Frame: TypeAlias = Answer | Ask | Told
