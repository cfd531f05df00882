"""The key under which a guarded job waits: its guard's name, and behind it the limiter's key for its arguments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from holdfast.guards.guard import Guard
from holdfast.guards.ports import State
from holdfast.kernel.errors import UsageError
from holdfast.kernel.names import check_name
from holdfast.kernel.show import show


def check_guard(guard: Any, arguments: Sequence[str]) -> Guard[Any] | None:
    """What `@hf.task(guard=…)` says."""
    if guard is None:
        return None
    if not isinstance(guard, Guard):
        raise UsageError(
            f'guard is what hf.guard("name", …) gave, or a Guard of holdfast.guards; not {show(guard)}.'
        )
    fields = () if guard.limiter is None else guard.limiter.fields
    if missing := [name for name in fields if name not in arguments]:
        raise UsageError(
            f"The limiter of guard {guard.name!r} is per {', '.join(fields)}, and the task has no argument "
            f"{missing[0]!r}. There are: {', '.join(arguments) or 'none'}."
        )
    return guard


def render(guard: Guard[Any], arguments: Mapping[str, Any]) -> str:
    """The key of a job with these arguments."""
    limiter = guard.limiter
    if limiter is None or not limiter.fields:
        return guard.name
    key = limiter.key_for(**{name: arguments[name] for name in limiter.fields})
    return check_name("guard", f"{guard.name}/{key}")


def is_under(guard: Guard[Any], text: str | None) -> bool:
    """Whether a rendered key is this guard's. A job may be older than the guard of its task."""
    return text is not None and (text == guard.name or text.startswith(f"{guard.name}/"))


def guard_of(text: str, guards: Mapping[str, Guard[Any]]) -> Guard[Any] | None:
    """Whose key it is, of guards by their names: one name may be the beginning of another."""
    names = [text, *(text[:at] for at in range(len(text) - 1, 0, -1) if text[at] == "/")]
    return next((guards[name] for name in names if name in guards), None)


def is_closed(guard: Guard[Any]) -> bool:
    """Whether its breaker lets calls through."""
    return guard.breaker is None or guard.breaker.state is State.CLOSED


def is_sick(guard: Guard[Any]) -> bool:
    """Whether its breaker is open here and for nobody else: others may do what this process cannot."""
    breaker = guard.breaker
    return breaker is not None and not (is_closed(guard) or breaker.is_agreed or breaker.is_held)


def key_of(guard: Guard[Any], text: str | None) -> str:
    """The limiter's key, of a rendered one."""
    prefix = f"{guard.name}/"
    return text[len(prefix) :] if text is not None and text.startswith(prefix) else ""
