"""One request and its answer: the transaction that the handler writes in, which commits with the answer or not at all."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any, Protocol

from holdfast.kernel.crashpoints import crashpoint
from holdfast.kernel.errors import UsageError
from holdfast.store.ports import Store, Tx

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncSession

IN_SCOPE = "holdfast.exchange"
Finish = Callable[
    [object | None], Awaitable[bool]
]  # keeps the answer, in this transaction; False: the key was lost


class Program(Protocol):
    """As much of Holdfast as the edge needs."""

    @property
    def store(self) -> Store: ...
    def transaction(self) -> AbstractAsyncContextManager[Tx]: ...
    def session(self, **options: Any) -> AsyncSession: ...


class Exchange:
    """At most one transaction at a time. What an exception leaves behind is rolled back at once; another may begin then."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self._block: AbstractAsyncContextManager[Any] | None = None
        self._tx: Any = None
        self._is_session = False
        self.is_answered = False

    @property
    def store(self) -> Store:
        return self.program.store

    @property
    def is_writing(self) -> bool:
        return self._block is not None

    async def tx(self) -> Tx:
        """The request's transaction, begun by the first who asks."""
        if self._block is None:
            await self._begin(self.program.transaction(), is_session=False)
        elif self._is_session:
            raise UsageError("This request writes with request_session already: use tx=session there.")
        tx: Tx = self._tx
        return tx

    async def session(self) -> AsyncSession:
        if self._block is None:
            await self._begin(self.program.session(), is_session=True)
        elif not self._is_session:
            raise UsageError("This request writes with request_tx already: use one of the two in a request.")
        session: AsyncSession = self._tx
        return session

    async def _begin(self, block: AbstractAsyncContextManager[Any], *, is_session: bool) -> None:
        if self.is_answered:
            raise UsageError("This request is answered already, and what it writes now would come too late.")
        self._tx, self._is_session = await block.__aenter__(), is_session
        self._block = block

    async def commit(self, finish: Finish | None) -> bool:
        """Keep the answer together with what the handler wrote. False: the key was lost, and nothing is kept."""
        if self._block is None:
            return finish is None or await finish(None)
        try:
            kept = finish is None or await finish(self._tx)
            crashpoint("request.before_commit")
            if kept and self._is_session:
                await self._tx.commit()
        except BaseException as error:
            await self.roll_back(error)
            raise
        if not kept:
            await self.roll_back(_Lost())
            return False
        block, self._block = self._block, None
        await block.__aexit__(None, None, None)
        crashpoint("request.after_commit")
        return True

    async def roll_back(self, error: BaseException) -> None:
        if self._block is not None:
            block, self._block = self._block, None
            await block.__aexit__(type(error), error, error.__traceback__)


class _Lost(Exception):
    """The key belongs to another by now."""
