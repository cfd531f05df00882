"""What one enqueue may say beside the arguments: when, how urgent, under which keys, in which transaction."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import msgspec

from holdfast.kernel.errors import UsageError
from holdfast.kernel.options import check_options
from holdfast.kernel.show import show


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """What is None is taken from the task."""

    delay: float | timedelta | None = None  # seconds from now
    at: float | datetime | None = None  # or a moment: seconds since 1970, or a datetime with a zone
    expires: float | timedelta | None = None  # seconds from now after which it need not start
    priority: int | None = None  # higher runs first
    queue: str | None = None
    unique: str | None = None  # at most one job with this key that is not over
    replace: bool | None = None  # a queued job with the same unique key gets this time and these arguments
    ordered: str | None = None  # one at a time with this key, in the order of enqueueing
    order_by: str | None = None  # "time": in the order of their times instead
    tenant: str | None = None  # tenants of one queue take turns
    correlation_id: str | None = None  # the story it belongs to; else that of the caller
    tx: Any = None  # the transaction that it commits with


NONE = Options()
_NAMES = Options.__struct_fields__


def by_time(order_by: Any) -> bool | None:
    """None: it is not said."""
    if order_by not in (None, "enqueue", "time"):
        raise UsageError(f'order_by is "enqueue" or "time", not {show(order_by)}.')
    return True if order_by == "time" else None


def options(base: Options, changes: dict[str, Any]) -> Options:
    check_options("enqueue", changes, _NAMES)
    return msgspec.structs.replace(base, **changes)


def seconds(value: Any) -> Any:
    """A duration as a number; what is neither is left for the store to refuse with its name."""
    return value.total_seconds() if isinstance(value, timedelta) else value


def moment(value: Any) -> Any:
    if not isinstance(value, datetime):
        return value
    if value.tzinfo is None:
        raise UsageError(
            f"at={value.isoformat()} has no time zone. Pass an aware datetime, such as datetime.now(UTC)."
        )
    return value.timestamp()
