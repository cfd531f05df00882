"""Templates such as "user:{user_id}": keys rendered from the arguments that are named, and from nothing else."""

from __future__ import annotations

import string
from collections.abc import Collection, Mapping
from datetime import date, datetime
from enum import Enum
from typing import Any
from uuid import UUID

from holdfast.kernel.errors import UsageError
from holdfast.kernel.show import show

_PLAIN = (str, int, UUID, date, datetime)


class Template:
    """A key with places for arguments, read once. `names` are those that a task has; None: whoever renders gives them all."""

    def __init__(self, kind: str, text: str, names: Collection[str] | None = None) -> None:
        self.kind, self.text = kind, text
        if not isinstance(text, str):
            raise UsageError(f'{kind} is text such as "user:{{user_id}}"; not {show(text)}.')
        try:
            self._parts = [
                (before, name) for before, name, *rest in string.Formatter().parse(text) if _simple(rest)
            ]
        except ValueError as error:
            raise UsageError(
                f"{kind}={text!r} cannot be read: {error}. Write {{name}}, with an argument's name."
            ) from error
        self.fields = tuple(dict.fromkeys(name for _, name in self._parts if name is not None))
        for name in self.fields:
            if names is not None and name not in names:
                raise UsageError(
                    f"{kind}={text!r} names {name!r}, which is no argument of the task. There are: {', '.join(names) or 'none'}."
                )

    def render(self, arguments: Mapping[str, Any]) -> str:
        return "".join(
            before if name is None else before + self._part(name, arguments[name])
            for before, name in self._parts
        )

    def _part(self, name: str, value: Any) -> str:
        """Only values with one clear form: a float or a list in a key is nearly always a mistake."""
        if isinstance(value, Enum):
            value = value.value
        if isinstance(value, bool) or not isinstance(value, _PLAIN):
            raise UsageError(
                f"{self.kind}={self.text!r} needs {name!r} as text, a whole number, a UUID or a date; it is {show(value)}."
            )
        return str(value)

    def __repr__(self) -> str:
        return repr(self.text)


def _simple(rest: list[str | None]) -> bool:
    """No format, no conversion: `{name}` and nothing else."""
    if any(rest):
        raise ValueError("it has a format or a conversion")
    return True
