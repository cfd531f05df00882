"""When the answer to a commit was lost, a second try tells more, or nothing."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TypeVar

from holdfast.kernel.errors import CommitUnknown, NotOpen, StoreError

T = TypeVar("T")


async def still_unknown(first: CommitUnknown, again: Awaitable[T]) -> T:
    """The second try. When it fails, nobody knows more than before: "nothing was stored" is its own."""
    try:
        return await again
    except (StoreError, NotOpen) as error:
        raise first from error
