"""Names of event types, and patterns over them: words between dots; `*` is any one word, `**` at the end any that follow."""

from __future__ import annotations

import re
from functools import lru_cache

import msgspec

from holdfast.kernel.errors import UsageError
from holdfast.kernel.names import check_name
from holdfast.kernel.show import show

_WORD = re.compile(r"[A-Za-z0-9_-]+")
ONE, REST = "*", "**"


class Pattern(msgspec.Struct, frozen=True):
    """`order.placed`, `order.*`, `order.**`; `*` alone hears everything, as `**` does."""

    text: str
    words: tuple[str, ...]

    def hears(self, type_: str) -> bool:
        return _fits(self.words, tuple(type_.split(".")))

    def meets(self, other: Pattern) -> bool:
        """Whether there can be a type that both hear."""
        return _meet(self.words, other.words)


def check_type(value: object) -> str:
    """The name of an event type: words of letters, digits, - and _, with dots between them."""
    name = check_name("event type", value)
    if len(name) > 200 or not all(_WORD.fullmatch(word) for word in name.split(".")):
        raise UsageError(
            f"{show(name)} is no event type. Write words of letters, digits, - and _ with dots between them, "
            "such as order.placed; at most 200 characters."
        )
    return name


def is_type(text: str) -> bool:
    """Whether it can be the name of an event type."""
    return 0 < len(text) <= 200 and all(_WORD.fullmatch(word) for word in text.split("."))


@lru_cache(maxsize=4096)
def pattern(text: str) -> Pattern:
    """A pattern, checked."""
    name = check_name("pattern", text)
    words = (REST,) if name == ONE else tuple(name.split("."))
    fine = all(_WORD.fullmatch(word) or word == ONE for word in words[:-1])
    if len(name) > 200 or not fine or not (_WORD.fullmatch(words[-1]) or words[-1] in (ONE, REST)):
        raise UsageError(
            f"{show(name)} is no pattern of event types. Write a type, such as order.placed; * in place of one word: order.*; "
            "** at the end for one word or more: order.**; or * alone for every event."
        )
    return Pattern(name, words)


def _fits(words: tuple[str, ...], type_: tuple[str, ...]) -> bool:
    if words[-1] == REST:
        return len(type_) >= len(words) and _fit(words[:-1], type_)
    return len(type_) == len(words) and _fit(words, type_)


def _fit(words: tuple[str, ...], type_: tuple[str, ...]) -> bool:
    return all(wanted in (ONE, word) for wanted, word in zip(words, type_, strict=False))


def _meet(one: tuple[str, ...], other: tuple[str, ...]) -> bool:
    for mine, theirs in zip(one, other, strict=False):
        if REST in (mine, theirs):
            return True  # whatever follows there, at least one word does
        if ONE not in (mine, theirs) and mine != theirs:
            return False
    return len(one) == len(other)
