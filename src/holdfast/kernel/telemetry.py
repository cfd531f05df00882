"""Notes: one for each thing that happened. Each makes a line in the log; metrics and traces subscribe here."""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import contextmanager
from typing import Any

from holdfast.kernel.failure import Failure
from holdfast.kernel.logged import is_logged, log

_log = logging.getLogger("holdfast")
Subscriber = Callable[[str, Mapping[str, Any]], None]
_subscribers: list[Subscriber] = []
_listeners: dict[str, list[Subscriber]] = {}  # by the only notes that they want


def note(name: str, failure: Failure | None = None, /, **fields: Any) -> None:
    """Say that something happened. Names are `subject.past_tense`; a subscriber that fails disturbs nobody.

    `failure` is for the log alone: where the exception was raised.
    """
    log(name, fields, failure)
    for subscriber in (
        *_subscribers,
        *_listeners.get(name, ()),
    ):  # one that leaves now must not make the next one miss the note
        try:
            subscriber(name, fields)
        except Exception:  # noqa: BLE001  who tells of a thing must not fail by being heard
            _log.exception("a subscriber failed on the note %s", name)


def is_heard(name: str) -> bool:
    """Whether anybody would hear it: asked before notes that come thousands of times a second."""
    return bool(_subscribers) or name in _listeners or is_logged(name)


def subscribe(subscriber: Subscriber) -> Callable[[], None]:
    """Hear every note from now on; call what is returned to stop."""
    _subscribers.append(subscriber)
    return lambda: _subscribers.remove(subscriber)


def listen(subscriber: Subscriber, names: Iterable[str]) -> Callable[[], None]:
    """Hear these notes alone: the others stay as cheap as they are. Call what is returned to stop."""
    wanted = [*names]
    for name in wanted:
        _listeners.setdefault(name, []).append(subscriber)

    def stop() -> None:
        for name in wanted:
            _listeners[name].remove(subscriber)
            if not _listeners[name]:
                del _listeners[name]

    return stop


def silence() -> None:
    """Nothing is logged any more in this process."""
    _log.setLevel(logging.CRITICAL + 1)


@contextmanager
def unlogged() -> Generator[None, None, None]:
    """Nothing is logged meanwhile: for a simulation, whose thousand failures are wanted."""
    level = _log.level
    silence()
    try:
        yield
    finally:
        _log.setLevel(level)
