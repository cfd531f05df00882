"""The one JSON codec: strict at the edge, so that what goes in comes out the same, on every store.

`encode` checks a value and writes it; `decode` reads text from outside; `decode_stored` reads what `encode` wrote.
"""

from __future__ import annotations

import json
import re
from functools import lru_cache
from typing import Any, NoReturn, TypeVar, overload

import msgspec

from holdfast.kernel.errors import PayloadError, UsageError
from holdfast.kernel.payload import (
    DEPTH_LIMIT,
    INT_HIGH,
    INT_LOW,
    PAYLOAD_LIMIT,
    check,
    dump_model,
    is_model,
    surrogate,
    too_big,
)
from holdfast.kernel.show import show

__all__ = ["DEPTH_LIMIT", "PAYLOAD_LIMIT", "canonical", "decode", "decode_stored", "encode"]

T = TypeVar("T")


class _NoForm(Exception):
    """A type that nothing in JSON becomes. Not a ValueError: msgspec would take that for a wrong value."""


_encoder = msgspec.json.Encoder(enc_hook=dump_model)
_sorting = msgspec.json.Encoder(enc_hook=dump_model, order="deterministic")
_any = msgspec.json.Decoder()


def encode(value: Any, *, limit: int = PAYLOAD_LIMIT, where: str = "") -> str:
    """The value as JSON text of at most `limit` bytes. `where` names the value in errors, such as `args`."""
    check(value, limit, where)
    try:
        data = _encoder.encode(value)
    except UnicodeEncodeError as error:
        raise surrogate(value, where) or PayloadError(f"The value cannot be stored: {error}") from error
    except (TypeError, ValueError, AttributeError, RecursionError) as error:
        raise PayloadError(
            f"{where or 'The value'} cannot be stored: {show(value)} has no form in JSON: {error}"
        ) from error
    if len(data) > limit:
        raise too_big(limit, len(data))
    return data.decode()


def canonical(value: Any) -> str:
    """As `encode`, with what has no order in order: the same value gives the same text in every process."""
    encode(value)
    return _sorting.encode(value).decode()


@overload
def decode_stored(text: str | bytes) -> Any: ...
@overload
def decode_stored(text: str | bytes, type: type[T]) -> T: ...
@overload
def decode_stored(text: str | bytes, type: Any) -> Any: ...
def decode_stored(text: str | bytes, type: Any = Any) -> Any:
    """What `encode` wrote, as the given type. Fast: it trusts that `encode` has checked the text."""
    try:
        return (_any if type is Any else _decoder(type)).decode(text)
    except msgspec.ValidationError as error:
        raise _misfit(error) from error
    except _NoForm as error:
        raise UsageError(f"The type {type!r} cannot be read from JSON. {error}") from error
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise PayloadError(f"This is not JSON: {error}. It begins with {show(text)}.") from error


@overload
def decode(text: str | bytes, *, limit: int = ...) -> Any: ...
@overload
def decode(text: str | bytes, type: type[T], *, limit: int = ...) -> T: ...
@overload
def decode(text: str | bytes, type: Any, *, limit: int = ...) -> Any: ...
def decode(text: str | bytes, type: Any = Any, *, limit: int = PAYLOAD_LIMIT) -> Any:
    """Text from outside, as the given type. Whatever `encode` would not have written is refused."""
    checked = _as_text(text, limit)
    _check_depth(checked)
    try:
        plain = _strict.decode(checked)
    except json.JSONDecodeError as error:
        raise PayloadError(f"This is not JSON: {error}. It begins with {show(checked)}.") from error
    if _SURROGATE_ESCAPE.search(checked) and (broken := surrogate(plain)) is not None:
        raise broken
    return decode_stored(checked, type)


# --- the steps of decode ---


def _as_text(text: str | bytes, limit: int) -> str:
    if not isinstance(text, str | bytes):
        raise PayloadError(f"JSON must be str or bytes, not {show(text)}.")
    if len(text) > limit:
        raise too_big(limit, len(text))
    try:
        data, string = (text.encode(), text) if isinstance(text, str) else (text, text.decode())
    except UnicodeError as error:
        raise PayloadError(
            f"This is not UTF-8: {error}. Send JSON in UTF-8, without lone surrogates."
        ) from error
    if len(data) > limit:
        raise too_big(limit, len(data))
    if string.startswith("\ufeff"):
        raise PayloadError("The text begins with a byte order mark. Send JSON in UTF-8 without it.")
    return string


# The closing quote is optional: were it not, each quote of an open string would be tried as a beginning, in square time.
_STRING = re.compile(r'"(?:[^"\\]+|\\.)*"?', re.DOTALL)
_BRACKET = re.compile(r"[\[\]{}]")
_SURROGATE_ESCAPE = re.compile(r"\\u[dD][89a-fA-F]")


def _check_depth(text: str) -> None:
    """Before any parser recurses. Most texts have so few brackets that they cannot be deep."""
    if text.count("[") + text.count("{") <= DEPTH_LIMIT:
        return
    depth = 0
    for bracket in _BRACKET.finditer(_STRING.sub("", text)):
        depth += 1 if bracket[0] in "[{" else -1
        if depth > DEPTH_LIMIT:
            raise PayloadError(f"The payload is nested more than {DEPTH_LIMIT} levels deep. Flatten it.")


def _no_twins(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        seen: set[str] = set()
        twin = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise PayloadError(f"The key {show(twin)} appears twice in one object. Send each key once.")
    return found


def _small_int(digits: str) -> int:
    if len(digits) > 20 or not INT_LOW <= (number := int(digits)) <= INT_HIGH:
        raise PayloadError(f"The integer {show(digits)} does not fit into 64 bits. Send it as a string.")
    return number


def _finite(digits: str) -> float:
    number = float(digits)
    if number in (float("inf"), float("-inf")):
        raise PayloadError(f"The number {show(digits)} is too large. Send it as a string.")
    return number


def _no_constant(name: str) -> NoReturn:
    raise PayloadError(f"{name} is not JSON. Send null, or a string.")


_strict = json.JSONDecoder(
    object_pairs_hook=_no_twins, parse_int=_small_int, parse_float=_finite, parse_constant=_no_constant
)


# --- typed decoding ---


def _decoder(type: Any) -> msgspec.json.Decoder[Any]:
    try:
        return (_cached_decoder if _is_hashable(type) else _new_decoder)(type)
    except (TypeError, NameError) as error:
        raise UsageError(f"The type {type!r} cannot be read from JSON: {error}") from error


def _new_decoder(type: Any) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(type, dec_hook=_load_model)


_cached_decoder = lru_cache(maxsize=1024)(_new_decoder)


def _is_hashable(type: Any) -> bool:
    """Annotations may carry anything, also lists."""
    try:
        hash(type)
    except TypeError:
        return False
    return True


def _load_model(type: Any, value: Any) -> Any:
    """A pydantic model from plain values; msgspec asks for every type that it does not know."""
    if not is_model(type):
        if isinstance(value, type):  # `object`, most often
            return value
        raise _NoForm("Use a dataclass, a Struct or a pydantic model.")
    try:
        return type.model_validate_json(_encoder.encode(value))
    except ValueError as error:
        raise ValueError(_told(error)) from error


def _told(error: Any) -> str:
    """pydantic's complaints in one line, without links."""
    if not hasattr(error, "errors"):
        return str(error)
    return "; ".join(
        f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in error.errors(include_url=False)
    )


def _misfit(error: msgspec.ValidationError) -> PayloadError:
    problem, _, place = str(error).partition(" - at `$")
    place = place.rstrip("`").lstrip(".") or "the top"
    return PayloadError(f"The payload does not fit at {place}: {problem}. Send what the type asks for.")
