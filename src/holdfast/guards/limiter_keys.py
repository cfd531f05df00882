"""The keys of a limiter: what `per="user:{user_id}"` makes of the values that a call is about."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from holdfast.kernel.errors import UsageError
from holdfast.kernel.names import check_name
from holdfast.kernel.show import show
from holdfast.kernel.templates import Template

_ONE = Template("key", "{value}")


class LimiterKeys:
    """Without `per` the one value is the key."""

    __slots__ = ("_per", "fields")

    def __init__(self, per: str | None) -> None:
        self._per = None if per is None else Template("per", per)
        self.fields = () if self._per is None else self._per.fields  # what `per` names
        if self._per is not None and not self.fields:
            raise UsageError(
                f'per={show(per)} names nothing: write what differs in braces, as in "user:{{user_id}}".'
            )

    def of(self, values: Sequence[Any], named: dict[str, Any]) -> str:
        if self._per is None:
            return _ONE.render({"value": values[0]}) if len(values) == 1 else _no_key(values)
        given = dict(zip(self.fields, values, strict=False)) | named
        if len(values) > len(self.fields) or given.keys() != set(self.fields):
            raise UsageError(
                f"per={self._per} needs {', '.join(self.fields)}; {show([*values, *named])} was given."
            )
        return check_name("key", self._per.render(given))


def _no_key(values: Sequence[Any]) -> str:
    raise UsageError(
        f'Say what the values {show(list(values))} are with per=, such as "user:{{user_id}}"; without, one is the key.'
    )
