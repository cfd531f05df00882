"""Attempts that go on after their admission: the body of `async with guard:`, and answers that stream."""

from __future__ import annotations

from contextvars import Token
from types import TracebackType

from holdfast.guards.admission import Admission
from holdfast.guards.deadline import UNTIL, set_back
from holdfast.guards.faults import Classifier, fault_of
from holdfast.guards.headers import SupportsGet
from holdfast.kernel.clock import timeout
from holdfast.kernel.errors import TimedOut
from holdfast.kernel.world import Limit


class Ending:
    """Gives back what an attempt has taken, and tells how it ended. Only the first word counts."""

    __slots__ = ("_admission", "_classify", "_is_over")

    def __init__(self, admission: Admission, classify: Classifier) -> None:
        self._admission, self._classify = admission, classify
        self._is_over = False

    def heed(self, headers: SupportsGet) -> None:
        """They came with the answer."""
        self._admission.heed(headers)

    def over(self, error: BaseException | None, took: float | None = None) -> None:
        """`took`: how many seconds of it were the other side's, if some were not."""
        if self._is_over:
            return
        self._is_over = True
        if took is not None:
            self._admission.took(took)
        if error is None:
            self._admission.succeeded()
        elif isinstance(error, Exception):
            self._admission.failed(error, fault_of(error, self._classify))
        else:
            self._admission.cut_off()


class Block:
    """From the admission to the end of the block: it has the deadline, and is not repeated."""

    __slots__ = ("_ending", "_limit", "_mark", "_seconds")

    def __init__(self, admission: Admission, classify: Classifier, seconds: float | None) -> None:
        self._ending, self._seconds = Ending(admission, classify), seconds
        self._mark: Token[float | None] | None = None
        self._limit: Limit | None = None
        if seconds is not None:
            self._mark = UNTIL.set(admission.began + seconds)

    async def start(self) -> None:
        """On a loop the block is cut off at its end; a thread cannot be."""
        if self._seconds is not None:
            limit = self._limit = timeout(self._seconds)
            await limit.__aenter__()

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
        self._ending.over(error)
