"""Await something inside SQLAlchemy's greenlet: its function for that has another name in each line of versions."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any, TypeVar, cast

from sqlalchemy.util import concurrency

T = TypeVar("T")
_await: Any = getattr(concurrency, "await_", None) or concurrency.await_only


def wait(work: Awaitable[T]) -> T:
    return cast(T, _await(work))
