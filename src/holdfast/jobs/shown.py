"""The arguments of a job for who looks at it: with the types of its task, and nothing of what is secret."""

from __future__ import annotations

from typing import Any

from holdfast.jobs.signature import NewerArguments
from holdfast.jobs.task import Task
from holdfast.kernel.errors import PayloadError
from holdfast.kernel.masking import MASK, hidden_in, masked


def arguments_of(task: Task[Any, Any] | None, text: str) -> dict[str, Any]:
    """As the task gets them, with its defaults. As plain JSON where they cannot be read so: by another version of it, say."""
    found = _decoded(task, text)
    if task is None or found is None:
        plain = masked(text)
        return plain if isinstance(plain, dict) else {}
    if task.shows_event is not None:
        return {"event": event_of(task, text)}
    hidden = {*task.signature.secrets, *hidden_in(text)}
    return {name: MASK if name in hidden else value for name, value in found.items()}


def event_of(task: Task[Any, Any] | None, text: str) -> Any:
    """The event that the job delivers to a handler; None: it is no such job, or it cannot be read."""
    if task is None or task.shows_event is None or (found := _decoded(task, text)) is None:
        return None
    return task.shows_event(found["event"], "event" in hidden_in(text))


def _decoded(task: Task[Any, Any] | None, text: str) -> dict[str, Any] | None:
    if task is None:
        return None
    try:
        return {**task.signature.defaults, **task.signature.decode(text)}
    except (NewerArguments, PayloadError):
        return None
