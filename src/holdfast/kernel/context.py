"""What travels with a piece of work: which story it belongs to, what caused it, and when it must be over."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import msgspec

from holdfast.kernel.errors import UsageError


class Context(msgspec.Struct, frozen=True, kw_only=True):
    correlation_id: str | None = None  # the whole story: a request and all that follows from it
    causation_id: str | None = None  # the job or event that caused this one
    trace: str | None = None  # a W3C traceparent
    deadline: float | None = None  # seconds since 1970, on the database's clock
    job_id: str | None = None  # the job that is running now
    tenant: str | None = None  # whose it is: the keys of blobs are this one's own


NO_CONTEXT = Context()
_NAMES = Context.__struct_fields__
_context: ContextVar[Context] = ContextVar("holdfast_context", default=NO_CONTEXT)


def context() -> Context:
    return _context.get()


def become(changed: Context) -> None:
    """Change the context of this task for the rest of its life."""
    _context.set(changed)


@contextmanager
def within(**changes: Any) -> Generator[Context, None, None]:
    """What is stored in the block belongs to this story: `with within(correlation_id=request_id):`, sync or async.

    `correlation_id` names the whole story, such as a request and all that follows from it; `causation_id` what has caused it; `trace`
    is a W3C traceparent; `tenant` whose blobs `hf.blobs` is about. Jobs, events and sagas that are stored in the block have them, and so has what follows from these; so
    have the lines that are logged. What is not said stays as it was around the block.
    """
    if unknown := changes.keys() - _NAMES:
        raise UsageError(f"A story has {', '.join(_NAMES)}; not {', '.join(sorted(unknown))}.")
    changed = msgspec.structs.replace(_context.get(), **changes)
    mark = _context.set(changed)
    try:
        yield changed
    finally:
        _context.reset(mark)
