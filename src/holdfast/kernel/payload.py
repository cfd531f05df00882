"""Whether a value may become JSON: checked before a byte is written, with the place of the part that may not."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from typing import Any
from uuid import UUID

import msgspec

from holdfast.kernel.errors import PayloadError
from holdfast.kernel.show import show

PAYLOAD_LIMIT = 256 * 1024  # bytes of JSON
DEPTH_LIMIT = 32  # `[]` is one level deep
INT_LOW, INT_HIGH = -(2**63), 2**63 - 1  # what both stores hold exactly

_LEAVES = frozenset({datetime, date, time, timedelta, Decimal, bytes, bytearray, memoryview})


class _Refused(ValueError):
    """What is wrong with a part. The way to it, innermost key first, is collected while the walk unwinds."""

    def __init__(self, part: Any, problem: str) -> None:
        self.part, self.problem = part, problem
        self.way: list[Any] = []


def check(value: Any, limit: int, where: str) -> None:
    """Return when the value can be written exactly and is not plainly too large; `where` names it in errors."""
    try:
        room = _walk(value, limit, 0)
    except _Refused as refused:
        raise _told(refused, where) from None
    if room < 0:
        raise too_big(limit)


def too_big(limit: int, size: int | None = None) -> PayloadError:
    measured = "" if size is None else f" ({size} bytes)"
    return PayloadError(
        f"The payload is too large{measured}: at most {limit} bytes fit. Store the data elsewhere and pass its key or path."
    )


def surrogate(value: Any, where: str = "") -> PayloadError | None:
    """The error for a value in which some text is not Unicode, saying where; None when all of it is."""
    if (found := _find_surrogate(value)) is None:
        return None
    refused = _Refused(found[1], "has a lone surrogate, which UTF-8 cannot hold. Replace that character.")
    refused.way = found[0][::-1]
    return _told(refused, where)


# --- the walk ---


def _walk(value: Any, room: int, depth: int) -> int:
    """Check a value and all in it; returns the bytes still free, at most. The usual kinds come first."""
    kind = type(value)
    if kind is str:
        return room - len(value) - 2
    if kind is int:
        if INT_LOW <= value <= INT_HIGH:
            return room - 1
        raise _Refused(value, "does not fit into 64 bits. Pass it as a string.")
    if value is None or kind is bool:
        return room - 4
    if kind is float:
        if value - value == 0.0:  # false for NaN and the infinities
            return room - 3
        raise _Refused(value, "is not a number in JSON. Pass None or a string.")
    return _walk_whole(value, kind, room, depth)


def _walk_whole(value: Any, kind: type, room: int, depth: int) -> int:
    if depth == DEPTH_LIMIT:
        raise _Refused(
            value, f"is nested more than {DEPTH_LIMIT} levels deep, or contains itself. Flatten it."
        )
    if kind is dict:
        return _walk_dict(value, room - 1, depth + 1)
    if kind is list or kind is tuple:
        return _walk_list(value, room - 1, depth + 1)
    return _walk(_plain(value), room, depth)


def _walk_dict(whole: dict[Any, Any], room: int, depth: int) -> int:
    _check_room(whole, room)
    key = None
    try:
        for key, item in whole.items():
            if not isinstance(key, str):
                raise _Refused(key, "is used as a key, and keys must be strings. Use str(key).")  # noqa: TRY301
            room = _walk(item, room - len(key) - 4, depth)
    except _Refused as refused:
        refused.way.append(key)
        raise
    return room


def _walk_list(whole: list[Any] | tuple[Any, ...], room: int, depth: int) -> int:
    _check_room(whole, room)
    index = 0
    try:
        for index, item in enumerate(whole):  # noqa: B007
            room = _walk(item, room - 1, depth)
    except _Refused as refused:
        refused.way.append(index)
        raise
    return room


def _check_room(whole: Any, room: int) -> None:
    """Refuse millions of items before looking at them, and a small value that repeats its parts without end."""
    if 2 * len(whole) > room:  # an item takes a byte, and a comma or the closing bracket
        raise _Refused(
            whole, "makes the payload too large. Store the data elsewhere and pass its key or path."
        )


# --- values that are not plain JSON ---


def _plain(value: Any) -> Any:
    """One level of the value as a dict, a list or a leaf, as msgspec writes it."""
    if type(value) in _LEAVES or isinstance(value, UUID):
        return ""  # it becomes a string; how long, the encoder will say
    if isinstance(value, dict):
        return dict(value)
    if isinstance(value, list | tuple | set | frozenset):
        return list(value)
    return value.value if isinstance(value, Enum) else _plain_object(value)


def _plain_object(value: Any) -> Any:
    if isinstance(value, msgspec.Struct):
        return _plain_struct(value)
    if is_model(type(value)):
        return dump_model(value)
    if (names := _field_names(type(value))) is not None:
        return _set_fields((name, getattr(value, name, msgspec.UNSET)) for name in names)
    raise _Refused(value, f"has the type {_type_name(value)}, which has no form in JSON. {_advice(value)}")


def _plain_struct(value: msgspec.Struct) -> Any:
    names, attributes = value.__struct_encode_fields__, value.__struct_fields__
    config, defaults = value.__struct_config__, value.__struct_defaults__
    items = [(name, getattr(value, attribute)) for name, attribute in zip(names, attributes, strict=True)]
    if config.array_like:
        return [item for _, item in items]
    if config.omit_defaults:
        required = len(items) - len(defaults)
        plain = [*items[:required]]
        plain += [
            (name, item)
            for (name, item), default in zip(items[required:], defaults, strict=True)
            if item is not default and not (type(item) in (list, dict, set) and not item)
        ]
        return _set_fields(plain)
    return _set_fields(items)


def _set_fields(items: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    return {name: item for name, item in items if item is not msgspec.UNSET}


def _field_names(kind: Any) -> list[str] | None:
    """The fields of a dataclass or an attrs class; None for anything else."""
    if hasattr(kind, "__dataclass_fields__"):
        return list(kind.__dataclass_fields__)
    if hasattr(kind, "__attrs_attrs__"):
        return [attribute.name for attribute in kind.__attrs_attrs__]
    return None


def is_model(kind: Any) -> bool:
    """Whether this class is a pydantic model, told by its shape: pydantic itself is never imported here."""
    return isinstance(kind, type) and hasattr(kind, "model_dump") and hasattr(kind, "model_validate_json")


def dump_model(value: Any) -> Any:
    """A pydantic model as plain values that the model reads back; the encoder's hook for what msgspec does not know."""
    try:
        return value.model_dump(mode="json", by_alias=True, round_trip=True)
    except Exception as error:
        raise _Refused(value, f"cannot be dumped by pydantic: {error}") from error


def _type_name(value: Any) -> str:
    kind = type(value)
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


def _advice(value: Any) -> str:
    for kind in (str, int, float, datetime, date, bytes):
        if isinstance(value, kind):
            return f"Pass a plain {kind.__name__}."
    return "Pass plain values, a dataclass, a Struct or a pydantic model."


# --- saying where ---


def _find_surrogate(value: Any) -> tuple[list[Any], Any] | None:
    plain = (
        value
        if isinstance(value, str | int | float | None) and not isinstance(value, Enum)
        else _plain(value)
    )
    if isinstance(plain, str):
        return ([], plain) if _is_broken(plain) else None
    items = plain.items() if isinstance(plain, dict) else enumerate(plain) if isinstance(plain, list) else ()
    for key, item in items:
        if isinstance(key, str) and _is_broken(key):
            return [key], key
        if (found := _find_surrogate(item)) is not None:
            return [key, *found[0]], found[1]
    return None


def _is_broken(text: str) -> bool:
    return any("\ud800" <= character <= "\udfff" for character in text)


def _told(refused: _Refused, where: str) -> PayloadError:
    place = where
    for key in reversed(refused.way):
        if isinstance(key, str) and key.isidentifier():
            place += f".{key}" if place else key
        else:
            place += f"[{show(key)}]"
    if len(place) > 120:
        place = f"{place[:60]}…{place[-40:]}"
    return PayloadError(f"{place or 'The value'} cannot be stored: {show(refused.part)} {refused.problem}")
