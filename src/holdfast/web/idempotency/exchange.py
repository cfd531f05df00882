"""One request and its answer: the transaction that the handler writes in, which commits with the answer or not at all."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any, Protocol

from holdfast.kernel.crashpoints import crashpoint
from holdfast.kernel.errors import HoldfastError, UsageError
from holdfast.store.idempotency import KeyBusy, KeyClaim, KeyLost
from holdfast.store.ports import Store, Tx
from holdfast.web.idempotency.claiming import Claiming, Elsewhere

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncSession

IN_SCOPE = "holdfast.exchange"
Finish = Callable[
    [object | None], Awaitable[None]
]  # keeps the answer, in this transaction, or raises KeyLost


class NotKept(HoldfastError):
    """Nothing of this run is kept, although the handler went well: the rest of it, such as tasks behind the answer, must not run."""


class Program(Protocol):
    """As much of Holdfast as the edge needs."""

    @property
    def store(self) -> Store: ...
    def transaction(self) -> AbstractAsyncContextManager[Tx]: ...
    def session(self, **options: Any) -> AsyncSession: ...


class Exchange:
    """At most one transaction at a time. What an exception leaves behind is rolled back at once; another may begin then.

    The key is claimed already, or each transaction `claims` it as the first thing in it, or there is none.
    """

    def __init__(
        self, program: Program, *, claim: KeyClaim | None = None, claims: Claiming | None = None
    ) -> None:
        self.program = program
        self.claim, self._claims = claim, claims
        self.elsewhere: Elsewhere | None = None  # why the claim was refused: this run is over
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

    @property
    def has_key(self) -> bool:
        return self.claim is not None or self._claims is not None

    @property
    def claims_late(self) -> bool:
        """Whether the key is claimed in the transaction that writes, and not before the handler."""
        return self._claims is not None

    async def begin(self) -> None:
        """For the answer alone, when the handler has no transaction open."""
        if self._block is None:
            await self._begin(self.program.transaction(), is_session=False)

    async def tx(self) -> Tx:
        """The request's transaction, begun by the first who asks."""
        self._check_time()
        if self._block is None:
            await self._begin(self.program.transaction(), is_session=False)
        elif self._is_session:
            raise UsageError("This request writes with request_session already: use tx=session there.")
        tx: Tx = self._tx
        return tx

    async def session(self) -> AsyncSession:
        self._check_time()
        if self._block is None:
            await self._begin(self.program.session(), is_session=True)
        elif not self._is_session:
            raise UsageError("This request writes with request_tx already: use one of the two in a request.")
        session: AsyncSession = self._tx
        return session

    def _check_time(self) -> None:
        if self.is_answered and self._block is None:
            raise UsageError("This request is answered already, and what it writes now would come too late.")

    async def _begin(self, block: AbstractAsyncContextManager[Any], *, is_session: bool) -> None:
        if self.elsewhere is not None:
            raise _told(self.elsewhere)
        if self._claims is None:
            self._tx = await block.__aenter__()
        else:
            self._tx, found = await self._claims.enter(block, is_session=is_session)
        self._block, self._is_session = block, is_session
        if self._claims is not None:
            await self._hear(found)

    async def _hear(self, found: KeyClaim | Elsewhere) -> None:
        if isinstance(found, KeyClaim):
            self.claim = found
            return
        self.elsewhere, told = found, _told(found)
        await self.roll_back(told)
        raise told

    async def commit(self, finish: Finish | None) -> bool:
        """Keep the answer together with what the handler wrote. False: the key was lost, and nothing is kept."""
        try:
            if self._block is not None:
                await self._end(self._block, finish)
            elif finish is not None:
                await finish(None)
        except KeyLost:
            return False
        return True

    async def _end(self, block: AbstractAsyncContextManager[Any], finish: Finish | None) -> None:
        try:
            if finish is not None:
                await finish(self._tx)
            crashpoint("request.before_commit")
            if self._is_session:
                await self._tx.commit()
        except BaseException as error:
            await self.roll_back(error)
            raise
        self._block = None
        await block.__aexit__(None, None, None)
        crashpoint("request.after_commit")

    async def roll_back(self, error: BaseException) -> None:
        if self._claims is not None:
            self.claim = None  # it goes with the transaction
        if self._block is not None:
            block, self._block = self._block, None
            await block.__aexit__(type(error), error, error.__traceback__)


def _told(elsewhere: Elsewhere) -> NotKept:
    what = "is under way" if isinstance(elsewhere, KeyBusy) else "was answered"
    return NotKept(
        f"A request with the same Idempotency-Key {what}; this one ends here, and is answered as that was."
    )
