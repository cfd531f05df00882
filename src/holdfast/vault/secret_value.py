"""A value that never prints: in logs, errors, formats and JSON it is asterisks, and only `reveal()` gives it away."""

from __future__ import annotations

import hmac
from typing import NoReturn

from holdfast.kernel.errors import UsageError
from holdfast.kernel.masking import MASK
from holdfast.kernel.show import show


class SecretValue:
    """`token = SecretValue("abc")`; `str(token)` is `***`, `token.reveal()` is `"abc"`. Two are compared in constant time."""

    __slots__ = ("_value",)

    def __init__(self, value: str | SecretValue) -> None:
        if isinstance(value, SecretValue):
            value = value.reveal()
        if not isinstance(value, str):
            raise UsageError(
                f"A SecretValue holds text; got {type(value).__name__}. Encode bytes first, such as with base64."
            )
        self._value = value

    def reveal(self) -> str:
        return self._value

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, SecretValue):
            return NotImplemented
        return hmac.compare_digest(_bytes(self._value), _bytes(other._value))

    __hash__ = None  # type: ignore[assignment]  # it is no key of anything: a table of secrets would be looked through

    def __bool__(self) -> bool:
        return bool(self._value)

    def __repr__(self) -> str:
        return f"SecretValue({MASK})"

    def __str__(self) -> str:
        return MASK

    def __format__(self, spec: str) -> str:
        return format(MASK, spec)

    def __reduce_ex__(self, _protocol: object) -> NoReturn:
        raise UsageError("A SecretValue is not pickled or copied into anything. Seal it by a Vault instead.")


def revealed(value: str | SecretValue) -> str:
    """The text of either."""
    if isinstance(value, SecretValue):
        return value.reveal()
    if not isinstance(value, str):
        raise UsageError(
            f"Seal text or a SecretValue; got {show(type(value).__name__)}. Encode bytes first, such as with base64."
        )
    return value


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")
