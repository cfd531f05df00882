"""What is too much for one transaction, in several; and the truth when a later one fails."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from holdfast.kernel.errors import CommitUnknown, NotOpen, StoreError

T = TypeVar("T")
Item = TypeVar("Item")


async def in_parts(
    items: Sequence[Item],
    size: int,
    write: Callable[[Sequence[Item]], Awaitable[list[T]]],
    *,
    tx: object | None = None,
) -> list[T]:
    """The answers of all parts, in order. A failure after the first part means that something is written."""
    if tx is not None:  # a caller's own: all of it or nothing
        return await write(items)
    answers: list[T] = []
    for start in range(0, len(items), size):
        try:
            answers += await write(items[start : start + size])
        except (StoreError, NotOpen) as error:
            if not answers:
                raise
            raise partly(len(answers), len(items), error) from error
    return answers


def partly(number: int, total: int, error: BaseException) -> CommitUnknown:
    """A call of several transactions, of which one failed."""
    return CommitUnknown(
        f"{number:,} of {total:,} were written before this failed: {error} Look at each before doing it again."
    )
