"""Settings of a program, from environment variables: typed, with ranges, and with every mistake told at once."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from difflib import get_close_matches
from typing import Any, TypeVar, get_type_hints
from urllib.parse import urlsplit

from holdfast.kernel.errors import UsageError
from holdfast.vault.secret_value import SecretValue

__all__ = ["Setting", "WrongSettings", "read", "setting", "shown"]

_T = TypeVar("_T")
_YES, _NO = ("1", "true", "yes", "on"), ("0", "false", "no", "off")


class WrongSettings(UsageError):
    """Some variables have values that cannot be; the message names each with its value and what it may be."""


@dataclass(frozen=True)
class Setting:
    """What is declared of one variable. `low` and `high` are for numbers, `one_of` for text."""

    name: str
    says: str
    low: float | None = None
    high: float | None = None
    one_of: Sequence[str] = ()


def setting(
    name: str,
    default: Any,
    says: str,
    *,
    low: float | None = None,
    high: float | None = None,
    one_of: Sequence[str] = (),
) -> Any:
    """A field of a frozen dataclass that is read from the variable `name`. An empty variable counts as not set."""
    told = Setting(name, says, low, high, tuple(one_of))
    if isinstance(default, SecretValue):  # a dataclass takes what cannot be hashed for a list
        return field(default_factory=lambda: default, metadata={"setting": told})
    return field(default=default, metadata={"setting": told})


def read(
    kind: type[_T],
    environment: Mapping[str, str] = os.environ,
    *,
    prefixes: Sequence[str] = (),
    also: Sequence[str] = (),
) -> _T:
    """The settings in force. A variable with one of `prefixes` that is neither declared nor in `also` is a mistake, too."""
    found: dict[str, Any] = {}
    wrong = list(_unknown(kind, environment, prefixes, also))
    types = get_type_hints(kind)
    for each, told in _declared(kind):
        text = environment.get(told.name, "").strip()
        if text:
            try:
                found[each] = _value(types[each], told, text)
            except ValueError as error:
                wrong.append(f"{told.name}: {error}")
    if wrong:
        raise WrongSettings("These settings cannot be:\n" + "\n".join(f"  {each}" for each in wrong))
    return kind(**found)


def shown(settings: Any, environment: Mapping[str, str] = os.environ) -> list[tuple[str, str, str]]:
    """Each variable, its value with secrets masked, and `set` or `default`."""
    rows = []
    for each, told in _declared(type(settings)):
        value = getattr(settings, each)
        text = "" if value is None else ("true" if value else "false") if isinstance(value, bool) else value
        is_set = bool(environment.get(told.name, "").strip())
        rows.append((told.name, _without_password(str(text)), "set" if is_set else "default"))
    return rows


def _declared(kind: type) -> Iterator[tuple[str, Setting]]:
    for each in fields(kind):
        if (told := each.metadata.get("setting")) is not None:
            yield each.name, told


def _unknown(
    kind: type, environment: Mapping[str, str], prefixes: Sequence[str], also: Sequence[str]
) -> Iterator[str]:
    known = {told.name for _, told in _declared(kind)} | set(also)
    for name in sorted(environment):
        if name.startswith(tuple(prefixes)) and name not in known:
            near = get_close_matches(name, known, n=1)
            yield f"{name}: there is no such setting" + (f"; {near[0]} is the nearest." if near else ".")


def _value(kind: Any, told: Setting, text: str) -> Any:
    arms = set(getattr(kind, "__args__", ()) or (kind,)) - {type(None)}
    if SecretValue in arms:
        return SecretValue(text)
    if bool in arms:
        return _switch(text)
    if int in arms or float in arms:
        return _number(told, text, int if int in arms else float)
    if told.one_of and text not in told.one_of:
        raise ValueError(f"{text!r} is none of {', '.join(told.one_of)}.")
    return text


def _switch(text: str) -> bool:
    if text.lower() in _YES:
        return True
    if text.lower() in _NO:
        return False
    raise ValueError(f"{text!r} is neither true nor false.")


def _number(told: Setting, text: str, kind: type[int | float]) -> float:
    limits = _limits(told)
    try:
        value = kind(text)
    except ValueError:
        raise ValueError(f"{text!r} is no {'whole ' if kind is int else ''}number{limits}.") from None
    if not math.isfinite(value):
        raise ValueError(f"{text} is no number{limits}.")
    if told.low is not None and value < told.low:
        raise ValueError(f"{text} is too small{limits}.")
    if told.high is not None and value > told.high:
        raise ValueError(f"{text} is too large{limits}.")
    return value


def _limits(told: Setting) -> str:
    if told.low is None and told.high is None:
        return ""
    low = "any" if told.low is None else f"{told.low:,}"
    return f"; it is at least {low}" if told.high is None else f"; it is from {low} to {told.high:,}"


def _without_password(text: str) -> str:
    if "://" not in text or "@" not in text:
        return text
    parts = urlsplit(text)
    _, _, place = parts.netloc.rpartition("@")
    return parts._replace(netloc=f"{parts.username or ''}:***@{place}").geturl()
