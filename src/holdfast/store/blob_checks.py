"""Checks the arguments of the verbs about blobs."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from holdfast.kernel.errors import UsageError
from holdfast.kernel.names import check_int
from holdfast.kernel.show import show
from holdfast.store.blob_records import BATCH_LIMIT, LONGEST, BlobRow, BlobState, NewBlob
from holdfast.store.checks import check_reason

_NAME = re.compile(r"[!-~]+")  # ASCII that can be seen: names are compared byte by byte


def check_blob(blob: Any) -> None:
    if not isinstance(blob, NewBlob):
        raise UsageError(f"A blob to add is a NewBlob, not {show(blob)} ({type(blob).__name__}).")
    check_path("name", blob.name)
    check_path("object", blob.object)
    check_int("size", blob.size, 0, 2**63 - 1)
    check_path("sha256", blob.sha256)
    check_path("content_type", blob.content_type.replace(" ", "_"))


def check_row(row: Any) -> None:
    if not isinstance(row, BlobRow):
        raise UsageError(f"What was read of a blob is a BlobRow, not {show(row)} ({type(row).__name__}).")
    check_path("name", row.name)
    check_path("object", row.object)
    check_state(row.state)


def check_path(kind: str, value: Any) -> None:
    if not isinstance(value, str) or len(value) > LONGEST or not _NAME.fullmatch(value):
        raise UsageError(
            f"The {kind} of a blob is visible ASCII, at most {LONGEST} characters, not {show(value)}."
        )


def check_prefix(kind: str, value: Any) -> None:
    if value != "":
        check_path(kind, value)


def check_state(state: Any) -> BlobState:
    if state not in tuple(BlobState):
        raise UsageError(f"{show(state)} is no state of a blob. There are: {', '.join(BlobState)}.")
    return BlobState(state)


def check_state_if_given(state: Any) -> BlobState | None:
    return None if state is None else check_state(state)


def check_states(states: Any) -> tuple[BlobState, ...]:
    if isinstance(states, str) or not isinstance(states, Iterable):
        raise UsageError(f"States come in a list, not {show(states)}.")
    return tuple(check_state(state) for state in states)


def check_reason_if_given(reason: Any) -> str | None:
    return None if reason is None else check_reason(reason)


def check_objects(objects: Any) -> tuple[str, ...]:
    if isinstance(objects, str) or not isinstance(objects, Iterable):
        raise UsageError(f"Objects come in a list, not {show(objects)}.")
    copied = tuple(objects)
    for each in copied:
        check_path("object", each)
    if len(copied) > BATCH_LIMIT:
        raise UsageError(f"{len(copied):,} objects are too many for one question: at most {BATCH_LIMIT:,}.")
    return copied
