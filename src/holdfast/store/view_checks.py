"""What the verbs of views and versions are given, checked before any database sees it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from holdfast.kernel.errors import UsageError
from holdfast.kernel.names import check_int, check_name
from holdfast.kernel.show import show
from holdfast.store.view_records import BATCH_LIMIT, ViewBatch, check_position

_INT8 = 2**63 - 1


def check_start(position: Any) -> None:
    check_position("A position", position)


def check_generation(generation: Any) -> None:
    check_int("generation", generation, 1, _INT8)


def check_generation_if_given(generation: Any) -> None:
    if generation is not None:
        check_generation(generation)


def check_newer(version: Any) -> None:
    check_int("version", version, 1, _INT8)


def check_prefix(prefix: Any) -> str:
    """Of a key, so it may end with a space, and may be empty."""
    return "" if prefix == "" else check_name("prefix", f"{_text('prefix', prefix)}|")[:-1]


def check_after(key: Any) -> str | None:
    return None if key is None or key == "" else check_name("key", key)


def check_keys(keys: Any) -> tuple[str, ...]:
    if isinstance(keys, str | bytes | Mapping) or not isinstance(keys, Iterable):
        raise UsageError(f"Keys come in a list, not {show(keys)} ({type(keys).__name__}).")
    copied = tuple(check_name("key", key) for key in keys)
    if len(copied) > BATCH_LIMIT:
        raise UsageError(f"{len(copied):,} keys are too many for one call: at most {BATCH_LIMIT:,}.")
    return copied


def check_batch(batch: Any) -> None:
    if not isinstance(batch, ViewBatch):
        raise UsageError(f"A batch of a view is a ViewBatch, not {show(batch)} ({type(batch).__name__}).")


def _text(kind: str, value: Any) -> str:
    if not isinstance(value, str):
        raise UsageError(f"A {kind} must be a string, not {show(value)} ({type(value).__name__}).")
    return value


def need_tx(tx: object | None) -> object:
    """For what lasts until a transaction ends."""
    if tx is None:
        raise UsageError("A version is held until a transaction ends: give it one, tx=tx.")
    return tx
