"""In a task's own process: guards whose attempts the worker's guards admit and record, so that there is one rate for all."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from itertools import count
from math import inf
from typing import Any, NoReturn

import msgspec

from holdfast.guards.admission import Admission, Gates
from holdfast.guards.faults import Fault, fault_of, retry_after_of
from holdfast.guards.guard import Guard
from holdfast.guards.ways import Way
from holdfast.jobs.frames import Ask, Said, Told
from holdfast.kernel import errors
from holdfast.kernel.clock import monotonic
from holdfast.kernel.errors import Refused, UsageError
from holdfast.kernel.processes import Line

_decoder = msgspec.json.Decoder(Said)


class Wire:
    """Questions to the worker, and its answers: from any thread and any event loop."""

    def __init__(self, line: Line) -> None:
        self._line, self._numbers = line, count(1)
        self._calls: dict[int, Callable[[], object]] = {}
        self._answers: dict[int, Said] = {}
        self._is_heard = False

    async def ask(self, way: Way, guard: str, key: str, cost: float, left: float | None) -> int:
        """The number of an attempt that may be made; else it raises."""
        if not self._is_heard:
            self._is_heard = True
            self._line.hear(self._hear)
        number, turn = next(self._numbers), way.turn()
        self._calls[number] = turn.call
        self._say(Ask(number=number, guard=guard, key=key, cost=cost, left=left))
        try:
            await turn.wait(None)  # the worker keeps to the deadline
        except BaseException:
            self._calls.pop(number, None)
            self._answers.pop(number, None)
            self.tell(Told(number=number, how="not_made"))
            raise
        said = self._answers.pop(number)
        if said.refusal:
            _refuse(said)
        return number

    def tell(self, told: Told) -> None:
        self._say(told)

    def _say(self, frame: Ask | Told) -> None:
        self._line.say(msgspec.json.encode(frame))

    def _hear(self, line: bytes) -> None:
        said = _decoder.decode(line)
        if (call := self._calls.pop(said.number, None)) is not None:
            self._answers[said.number] = said
            call()


def _refuse(said: Said) -> NoReturn:
    kind: Any = getattr(errors, said.refusal, UsageError)
    if issubclass(kind, Refused):
        raise kind(said.text, retry_after=said.retry_after)
    raise UsageError(said.text)


class BorrowedGates(Gates):
    """In place of a guard's own."""

    __slots__ = ("_wire",)

    def __init__(self, own: Gates, wire: Wire) -> None:
        super().__init__(own.name, own.breaker, own.limiter, own.bulkhead)
        self._wire = wire

    async def admit(
        self,
        way: Way,
        key: str,
        cost: float,
        until: float | None,
        longest: float = inf,  # noqa: ARG002  its worker waits as its own do
    ) -> Admission:
        now = monotonic()
        self.check_time(now, until)
        left = None if until is None else until - now
        number = await self._wire.ask(way, self.name, key, cost, left)
        return BorrowedAdmission(self, key, monotonic(), self._wire, number)


class BorrowedAdmission(Admission):
    """How it ended is told, and recorded there."""

    __slots__ = ("_number", "_took", "_wire")

    def __init__(self, gates: Gates, key: str, began: float, wire: Wire, number: int) -> None:
        super().__init__(gates, key, began)
        self._wire, self._number = wire, number
        self._took: float | None = None

    def took(self, seconds: float) -> None:
        self._took = seconds

    def rests(self, seconds: float) -> None:
        self._wire.tell(Told(number=self._number, how="rests", retry_after=seconds))

    def succeeded(self) -> None:
        self._wire.tell(Told(number=self._number, how="succeeded", took=self._took))

    def failed(self, error: Exception, fault: Fault) -> None:
        self.heed_those_of(error, fault)
        retry_after = retry_after_of(error, self._gates.longest_pause)
        breaker = self._gates.breaker
        own = None if breaker is None else breaker.classify
        self._wire.tell(
            Told(
                number=self._number, how="failed", fault=fault, retry_after=retry_after, took=self._took,
                for_breaker=None if own is None else fault_of(error, own),
            )
        )  # fmt: skip

    def cut_off(self) -> None:
        self._wire.tell(Told(number=self._number, how="cut_off"))

    def not_made(self) -> None:
        self._wire.tell(Told(number=self._number, how="not_made"))


def borrow(guards: Iterable[Guard[Any]], names: Collection[str], line: Line) -> None:
    """Those that the worker has as well ask it from now on."""
    wire = Wire(line)
    for guard in guards:
        if guard.name in names:
            guard.gates = BorrowedGates(guard.gates, wire)
