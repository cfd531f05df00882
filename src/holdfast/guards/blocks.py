"""`async with guard:`: the body of the block is the attempt; it is admitted, has the deadline, and is not repeated."""

from __future__ import annotations

import asyncio
from contextvars import Token
from types import TracebackType

from holdfast.guards.admission import Admission
from holdfast.guards.deadline import UNTIL, set_back
from holdfast.guards.faults import Classifier, fault_of, retry_after_of
from holdfast.kernel.clock import timeout
from holdfast.kernel.errors import TimedOut


class Block:
    """From the admission to the end of the block."""

    __slots__ = ("_admission", "_classify", "_limit", "_mark", "_seconds")

    def __init__(self, admission: Admission, classify: Classifier, seconds: float | None) -> None:
        self._admission, self._classify, self._seconds = admission, classify, seconds
        self._mark: Token[float | None] | None = None
        self._limit: asyncio.Timeout | None = None
        if seconds is not None:
            self._mark = UNTIL.set(admission.began + seconds)

    async def start(self) -> None:
        """On a loop the block is cut off at its end; a thread cannot be."""
        if self._seconds is not None:
            self._limit = timeout(self._seconds)
            await self._limit.__aenter__()

    async def leave(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._limit is not None:
            try:
                await self._limit.__aexit__(kind, error, trace)
            except TimeoutError:
                late = TimedOut(
                    f"The block was not over within {self._seconds:.6g} s: nobody knows what was done."
                )
                self.over(late)
                raise late from None
        self.over(error)

    def over(self, error: BaseException | None) -> None:
        """Give back what was taken, and tell how it ended."""
        if self._mark is not None:
            set_back(self._mark)
        if error is None:
            self._admission.succeeded()
        elif isinstance(error, Exception):
            self._admission.failed(error, fault_of(error, self._classify), retry_after_of(error))
        else:
            self._admission.cut_off()
