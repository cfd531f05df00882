"""How a subject of the store reaches the file: writing in a transaction, its own or the caller's, and reading."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Protocol, TypeVar

from holdfast.store.sqlite.connection import Db

T = TypeVar("T")


class File(Protocol):
    async def write(
        self,
        call: Callable[[Db], T],
        *,
        tx: object | None = None,
        urgent: bool = False,
        repeatable: bool = False,
        hasty: bool = False,
    ) -> T:
        """`repeatable`: doing it twice is as good as once, so it is, when the answer to the first try was lost.

        `hasty`: a commit of its own need not wait for the disk.
        """

    def check_free(self) -> None:
        """Raise when whoever asks is inside a transaction of its own, and would wait for itself."""

    async def read(self, call: Callable[[Db], T]) -> T: ...
    def hint(self, queues: Collection[str], *, tx: object | None = None) -> None: ...


class Subject:
    def __init__(self, file: File) -> None:
        self._file = file
