"""Whether a transaction goes on after a statement of it has failed, and its savepoints: the same on both stores."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Generator
from contextlib import contextmanager, suppress
from types import TracebackType
from typing import Any, Protocol

from holdfast.kernel.errors import StoreError, TransactionEnded, UsageError

_BACK = re.compile(
    r"(?:\s|--[^\n]*\n|/\*.*?\*/)*rollback\s+((work|transaction)\s+)?to\b", re.IGNORECASE | re.DOTALL
)
ROLLED_BACK = "it was rolled back, and nothing of it was stored"
_HOW = "Put a statement that may fail into `async with tx.savepoint():`, and catch its error outside of that block."


class Standing:
    """After a failed statement nothing more is done in a transaction, until a savepoint before it is rolled back to."""

    def __init__(self) -> None:
        self.failure: BaseException | None = None
        self.savepoints: list[Savepoint] = []
        self.how = _HOW
        self._is_final = False
        self._number = 0

    def check(self, sql: str = "") -> None:
        """Raise when it has failed, unless this statement goes back to a savepoint that was made by hand."""
        if self.failure is not None and (self._is_final or not goes_back(sql)):
            raise self.ended("nothing more is done in it")

    def check_commit(self) -> None:
        if self.failure is not None:
            raise self.ended(ROLLED_BACK)

    def ended(self, what: str) -> TransactionEnded:
        failure = self.failure
        told = (
            "was cancelled"
            if isinstance(failure, asyncio.CancelledError)
            else f"has failed ({_short(failure)})"
        )
        error = TransactionEnded(f"A statement of this transaction {told}, so {what}. {self.how}")
        error.__cause__ = failure
        return error

    def fail(self, error: BaseException, *, final: bool = False) -> None:
        """The first failure is the one that is named later."""
        self.failure = self.failure or error
        self._is_final = self._is_final or final

    def recover(self) -> None:
        """It is as it was before the failure."""
        if not self._is_final:
            self.failure = None

    @contextmanager
    def failing(self, *kinds: type[BaseException]) -> Generator[None, None, None]:
        """Around what is sent to the database: who is cancelled meanwhile does not know whether it was done."""
        try:
            yield
        except kinds as error:
            self.fail(error)
            raise

    def next_name(self) -> str:
        self._number += 1
        return f"holdfast_{self._number}"


def goes_back(sql: str) -> bool:
    """Whether this is ROLLBACK TO a savepoint."""
    return _BACK.match(sql) is not None


def _short(failure: BaseException | None) -> str:
    return f"{type(failure).__name__}: {failure}"


class Nests(Protocol):
    """A transaction that has savepoints."""

    @property
    def standing(self) -> Standing: ...
    async def save(self, name: str) -> Any:
        """SAVEPOINT; returns what `undo` needs to know."""

    async def release(self, name: str) -> None: ...
    async def undo(self, name: str, memo: Any) -> None:
        """ROLLBACK TO, and RELEASE. Also after a failure, which is over then."""


class Savepoint:
    """`async with tx.savepoint():` an exception takes back what the block has done, and the transaction goes on."""

    def __init__(self, tx: Nests) -> None:
        self._tx = tx
        self._name: str | None = None
        self._memo: Any = None

    async def __aenter__(self) -> None:
        if self._name is not None:
            raise UsageError("A savepoint is entered once. Ask for another with tx.savepoint().")
        standing = self._tx.standing
        self._name = standing.next_name()
        self._memo = await self._tx.save(self._name)
        standing.savepoints.append(self)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._name is not None
        standing = self._tx.standing
        self._leave(standing)
        if error is None and await self._released(standing):
            return
        failure = standing.failure
        # The caller's own error matters more. A transaction that cannot go back does not commit.
        with suppress(*((StoreError,) if error is not None else ())):
            await self._tx.undo(self._name, self._memo)
        if error is None:
            raise TransactionEnded(
                f"A statement in this savepoint has failed ({_short(failure)}), so all of it was rolled back. The transaction "
                "goes on. Let the error leave the savepoint's block, and catch it outside."
            ) from failure

    async def _released(self, standing: Standing) -> bool:
        """Whether what it has done is kept. Another task may share the transaction, and fail in this very moment."""
        assert self._name is not None
        try:
            await self._tx.release(self._name)
        except TransactionEnded:
            if standing.failure is None:
                raise
            return False
        return True

    def _leave(self, standing: Standing) -> None:
        if standing.savepoints and standing.savepoints[-1] is self:
            standing.savepoints.pop()
            return
        crossed = UsageError(
            "Savepoints of one transaction end in the reverse order in which they began, and another one is still open. Tasks "
            "that share a transaction have their savepoints one after the other. All of it is rolled back."
        )
        standing.fail(crossed, final=True)
        raise crossed
