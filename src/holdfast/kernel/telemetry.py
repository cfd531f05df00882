"""Notes: one line for each thing that happened. Metrics, traces and logs subscribe here."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any

_log = logging.getLogger("holdfast")
Subscriber = Callable[[str, Mapping[str, Any]], None]
_subscribers: list[Subscriber] = []


def note(name: str, /, **fields: Any) -> None:
    """Say that something happened. Names are `subject.past_tense`; a subscriber that fails disturbs nobody."""
    _log.debug("%s %s", name, fields)
    for subscriber in tuple(_subscribers):  # one that leaves now must not make the next one miss the note
        try:
            subscriber(name, fields)
        except Exception:  # noqa: BLE001  who tells of a thing must not fail by being heard
            _log.exception("a subscriber failed on the note %s", name)


def subscribe(subscriber: Subscriber) -> Callable[[], None]:
    """Hear every note from now on; call what is returned to stop."""
    _subscribers.append(subscriber)
    return lambda: _subscribers.remove(subscriber)
