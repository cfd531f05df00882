"""A projection: how events become rows. A plain function, which events it hears, and which row each of them is for."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from types import NoneType, UnionType
from typing import Any, Literal, TypeAlias, Union, get_args, get_origin

from holdfast.events.event import AnyEvent, Event
from holdfast.events.patterns import pattern
from holdfast.jobs.failures import describe
from holdfast.jobs.signature import hints_of, is_secret
from holdfast.kernel.awaits import is_async
from holdfast.kernel.codec import decode_stored, encode
from holdfast.kernel.errors import PayloadError, UsageError
from holdfast.kernel.names import check_name
from holdfast.kernel.show import show
from holdfast.store.view_records import ROW_LIMIT

Late = Literal["ignore", "apply"]
OnError = Literal["aside", "stop"]
KeyOf: TypeAlias = str | Callable[[AnyEvent], str | int]
EVENT_KEY = "key"  # in place of a field's name: the event's own key


class Projection:
    """Made by `@hf.view(…)`. It knows no store: a row and an event go in, a row comes out."""

    def __init__(
        self,
        name: str,
        function: Callable[..., Any],
        *,
        on: str | Sequence[str],
        key: KeyOf = EVENT_KEY,
        late: Late = "ignore",
        on_error: OnError = "aside",
        history: bool = False,
    ) -> None:
        self.name = check_name("view", name)
        self.function, self._key = function, _checked_key(key)
        self.on = (on,) if isinstance(on, str) else tuple(on)
        if not self.on:
            raise UsageError(f"The view {name!r} hears nothing. Say which events: on='order.*'.")
        self._patterns = [pattern(each) for each in self.on]
        self.late = _one_of("late", late, get_args(Late))
        self.on_error = _one_of("on_error", on_error, get_args(OnError))
        self.history = bool(history)
        self.row_type, self.data_type = _types(name, function)
        self._is_secret = is_secret(self.data_type) or is_secret(self.row_type)

    @property
    def has_keys_of_events(self) -> bool:
        """Whether the key of each row is that of its events."""
        return bool(self._key == EVENT_KEY)

    def hears(self, event_type: str) -> bool:
        return any(each.hears(event_type) for each in self._patterns)

    def told(self, error: BaseException) -> str:
        """What went wrong, as it is kept. Of data that is marked secret a message may have anything in it."""
        return type(error).__name__ if self._is_secret else describe(error)

    def key_of(self, event: AnyEvent) -> str:
        """The key of the row that the event is for."""
        found = self._key(event) if callable(self._key) else _field(event, self._key)
        try:
            return check_name("key", key_text(found))
        except PayloadError as error:
            raise PayloadError(f"{event.type}: {error} Give key= a function.") from None

    def project(self, data: str | None, event: AnyEvent) -> str | None:
        """The row after the event, as JSON text; None: there is none.

        Always by way of the text: a row that has just been made and one that was stored are the same to the function.
        """
        row = self.function(None if data is None else decode_stored(data, self.row_type), event)
        if row is None:
            return None
        text = encode(row, limit=ROW_LIMIT, where="row")
        if self.row_type is not Any:
            decode_stored(text, self.row_type)
        return text


def key_text(key: object) -> str:
    """What a row is kept under. None or True would be the key of a row that nobody meant."""
    if isinstance(key, bool) or not isinstance(key, str | int):
        raise PayloadError(f"The key of a row is text or a whole number, not {show(key)}.")
    return str(key)


def _field(event: AnyEvent, name: str) -> object:
    if name == EVENT_KEY:
        if event.key is None:
            raise PayloadError(
                f"The event {event.type} has no key, and the view takes its rows' keys from that."
            )
        return event.key
    missing = object()
    data = event.data
    found = data.get(name, missing) if isinstance(data, dict) else getattr(data, name, missing)
    if found is missing:
        raise PayloadError(
            f"The data of {event.type} has no field {name!r}, which is the key of the view's rows."
        )
    return found


def _checked_key(key: object) -> Any:
    if callable(key):
        return key
    if isinstance(key, str) and key:
        return key
    raise UsageError(
        f"key is the name of a field of the events' data, 'key' for the events' own, or a function; not {show(key)}."
    )


def _one_of(kind: str, value: Any, known: tuple[str, ...]) -> Any:
    if value not in known:
        raise UsageError(f"{kind} is {' or '.join(map(repr, known))}; not {show(value)}.")
    return value


def _types(name: str, function: Any) -> tuple[Any, Any]:
    """Of the rows, and of the events' data, by the function's annotations."""
    if not callable(function) or is_async(function):
        raise UsageError(
            f"The view {name!r} needs a plain function, (row, event) -> row: it is run again when the view is rebuilt, "
            "so it may neither wait nor do anything but make the row. For effects there is @hf.on."
        )
    parameters = list(inspect.signature(function).parameters.values())
    if len(parameters) != 2:
        raise UsageError(
            f"The function of the view {name!r} takes a row and an event; this one takes "
            f"({', '.join(map(str, parameters))})."
        )
    hints = hints_of(function)
    row, event = (hints.get(each.name, Any) for each in parameters)
    return _row_type(name, row), _data_type(event)


def _row_type(name: str, hint: Any) -> Any:
    if get_origin(hint) in (Union, UnionType):
        parts = [part for part in get_args(hint) if part is not NoneType]
        hint = parts[0] if len(parts) == 1 else Any
    try:
        decode_stored("null", hint)
    except PayloadError:
        pass  # null is no row
    except UsageError as error:
        raise UsageError(f"The rows of the view {name!r} cannot be kept: {error}") from None
    return hint


def _data_type(hint: Any) -> Any:
    """`Event[Order]` says that the data of every event that it hears is an Order."""
    arguments = get_args(hint) if get_origin(hint) is Event else ()
    return arguments[0] if arguments else Any
