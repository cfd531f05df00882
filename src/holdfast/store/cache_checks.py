"""What the verbs of the cache are given, checked before whoever keeps the values sees it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from holdfast.kernel.errors import UsageError
from holdfast.kernel.names import check_int, check_name, check_seconds, check_text
from holdfast.kernel.show import show
from holdfast.store.cache_records import VALUE_LIMIT, Load, Why

MOST_KEYS = 1000  # keys or tags in one call
SHORTEST = 0.001  # seconds that a value must last


def check_keys(keys: Any) -> tuple[str, ...]:
    return _names("key", keys)


def check_tags(tags: Any) -> tuple[str, ...]:
    """A tag that is named twice is one."""
    return tuple(dict.fromkeys(_names("tag", tags)))


def _names(kind: str, names: Any) -> tuple[str, ...]:
    if isinstance(names, str | bytes | Mapping) or not isinstance(names, Iterable):
        raise UsageError(f"{kind}s come in a list, not {show(names)} ({type(names).__name__}).")
    copied = tuple(check_name(kind, name) for name in names)
    if len(copied) > MOST_KEYS:
        raise UsageError(f"{len(copied):,} {kind}s are too many for one call: at most {MOST_KEYS:,}.")
    return copied


def check_load(load: Any) -> None:
    if not isinstance(load, Load):
        raise UsageError(f"A load is what begin() gave, not {show(load)} ({type(load).__name__}).")
    check_name("key", load.key)
    check_int("A token", load.token, 0, 2**63 - 1)
    if check_tags(load.tags) != load.tags:
        raise UsageError(f"The tags of a load are those that begin() gave, not {show(load.tags)}.")
    generations: Any = load.generations
    if not isinstance(generations, tuple) or len(generations) != len(load.tags):
        raise UsageError(f"A load has a generation for each tag; not {show(generations)}.")
    for generation in generations:
        check_int("A generation", generation, 0, 2**63 - 1)


def check_value(value: Any) -> None:
    check_text("value", value, VALUE_LIMIT)


def check_why(why: Any) -> Why:
    if not isinstance(why, str) or why not in Why.__members__.values():
        raise UsageError(f"A load is for one of {', '.join(Why)}; not {show(why)}.")
    return Why(why)


def check_stale(stale: Any) -> float:
    return check_seconds("stale", stale, SHORTEST)
