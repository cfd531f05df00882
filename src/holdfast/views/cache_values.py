"""What a function returns, as the text that is kept, and back: typed by its annotation, a copy for each caller."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from holdfast.jobs.signature import hints_of, is_secret
from holdfast.kernel.codec import decode_stored, encode
from holdfast.kernel.errors import PayloadError, UsageError
from holdfast.kernel.telemetry import note
from holdfast.store.cache_records import VALUE_LIMIT, Entry
from holdfast.views.cache_keys import Wanted


class Values:
    def __init__(self, function: Callable[..., Any], where: str) -> None:
        self.where = where
        self._returns = _returns(function, where)
        self._is_secret = any(is_secret(hint) for hint in hints_of(function).values())

    def written(self, value: Any) -> str:
        """It must be readable as what the function says it returns: it is never served otherwise."""
        try:
            text = encode(value, limit=VALUE_LIMIT, where=f"{self.where}: its value")
            decode_stored(text, self._returns)
        except PayloadError as error:
            raise UsageError(f"{self.where} returns what cannot be cached. {error}") from error
        return text

    def told(self, error: BaseException) -> str:
        """Of a function that has to do with secrets a message may have anything in it."""
        return type(error).__name__ if self._is_secret else repr(error)

    def read(self, text: str) -> Any:
        return decode_stored(text, self._returns)

    def found(self, entry: Entry | None, wanted: Wanted) -> tuple[Any] | None:
        """None: there is nothing, or what another version of the function, or something else, has kept under this key."""
        if entry is None or entry.value is None:
            return None
        try:
            return (self.read(entry.value),)
        except PayloadError as error:
            note("cache.unreadable", key=wanted.key, error=str(error))
            return None

    def is_readable(self, entry: Entry, wanted: Wanted) -> bool:
        return self.found(entry, wanted) is not None


def _returns(function: Callable[..., Any], where: str) -> Any:
    found = hints_of(function).get("return", Any)
    try:
        msgspec.json.Decoder(found)
    except (TypeError, NameError) as error:
        raise UsageError(f"{where}: what it returns cannot be read from JSON: {error}") from None
    return found
