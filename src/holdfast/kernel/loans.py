"""A block that a coroutine on the loop owns, lent to a thread: whatever becomes of the thread, the block is left."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import CancelledError, Future
from contextlib import AbstractAsyncContextManager
from functools import partial
from typing import Any, Generic, TypeVar

from holdfast.kernel.errands import Errand
from holdfast.kernel.errors import TransactionEnded
from holdfast.kernel.threads import Stopped, sheltered, this_call

T = TypeVar("T")
_ROLLED_BACK = "The loop that held the transaction was ended meanwhile: it is rolled back."


class Loan(Generic[T]):
    """`begin`, then `end` or `abandon`, which may come at any time and changes nothing after `end`.

    The thread may be stopped between any two of its instructions, so that no `finally` of its own is certain to run. When
    it is over and has not said how the block ends, the block ends as after an error.
    """

    def __init__(self, block: AbstractAsyncContextManager[T]) -> None:
        self._block = block
        self._errand = Errand(self._own)
        self._lent: Future[T] = Future()
        self._end: asyncio.Future[BaseException | None] | None = None  # as the thread says it
        self._heard = False  # by the loop: from then on the block ends as the thread has said
        self._failure: BaseException | None = None  # of a commit that was asked for

    # --- in the thread ---

    def begin(self, send: Callable[[Errand[Any]], None]) -> T:
        """`send` begins the errand on a loop."""
        return sheltered(partial(self._begin, send), self.abandon)

    def _begin(self, send: Callable[[Errand[Any]], None]) -> T:
        if (call := this_call()) is not None:
            call.at_end.add(self.abandon)
        self._errand.ending.add_done_callback(lambda _: self._lent.cancel())
        send(self._errand)
        self._errand.wait_for(self._lent)
        try:
            return self._lent.result()
        except CancelledError:
            self._errand.result()  # raises why
            raise

    def end(self, error: BaseException | None) -> None:
        """Commit, or roll back because of an error. A stop comes after it; what is wrong with the commit comes first."""
        try:
            sheltered(partial(self._leave, error))
        except Stopped as stopped:
            if self._failure is not None:
                raise self._failure from stopped
            raise

    def _leave(self, error: BaseException | None) -> None:
        if (call := this_call()) is not None:
            call.at_end.discard(self.abandon)
        if error is not None and self._errand.is_inherited:
            return  # it is the parent's, which goes on with it
        self._errand.tell(partial(self._say, error))
        try:
            self._errand.result()
        except BaseException as failure:
            self._failure = failure
            if self._errand.ending.cancelled():  # its loop was ended
                self._cut_off(error)
            raise

    def _cut_off(self, error: BaseException | None) -> None:
        """Before the loop has heard what the thread said, nothing was committed."""
        if error is None and not self._heard:
            self._failure = TransactionEnded(_ROLLED_BACK)
            raise self._failure from None

    def abandon(self) -> None:
        """From anywhere: the thread will not say how it ends."""
        if self._errand.is_begun:
            self._errand.tell(self._abandon)
        else:
            self._errand.cancel()

    # --- on the loop ---

    async def _own(self) -> None:
        self._end = asyncio.get_running_loop().create_future()
        lent = await self._block.__aenter__()
        try:
            self._lent.set_result(lent)
            error = await self._end
        except GeneratorExit:  # the loop is closed: nothing can be awaited any more
            raise
        except BaseException as cut_off:
            await _left(self._block, cut_off)
            raise
        await _left(self._block, error)

    def _say(self, error: BaseException | None) -> None:
        if self._end is not None and not self._end.done():
            self._heard = True
            self._end.set_result(error)

    def _abandon(self) -> None:
        if self._lent.done():
            self._say(asyncio.CancelledError("its thread has left it"))
        else:
            self._errand.cancel()


class Guard:
    """Whoever drops it abandons the loan. In threads of ours `at_end` does so, and a stop that hits a `__del__` is lost."""

    def __init__(self, loan: Loan[Any]) -> None:
        self._loan = loan

    @classmethod
    def of(cls, loan: Loan[Any]) -> Guard | None:
        return cls(loan) if this_call() is None else None

    def __del__(self) -> None:
        self._loan.abandon()


async def _left(block: AbstractAsyncContextManager[Any], error: BaseException | None) -> None:
    """An exception of the block is raised again where it came from."""
    try:
        if error is None:
            await block.__aexit__(None, None, None)
        else:
            await block.__aexit__(type(error), error, error.__traceback__)
    except BaseException as raised:
        if raised is not error:
            raise
