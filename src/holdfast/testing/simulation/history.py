"""What every simulated client did and was told: invoke, then ok, fail or unknown; with process and virtual time."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Awaitable, Callable
from typing import Any, Literal, TypeVar

import msgspec

from holdfast.kernel.errors import CommitUnknown, StoreFull, StoreUnavailable, TransactionEnded
from holdfast.testing.simulation.ledger import Entry
from holdfast.testing.simulation.loop import SeededLoop
from holdfast.testing.simulation.process import running

T = TypeVar("T")
Kind = Literal["invoke", "ok", "fail", "unknown", "event"]
# Errors that promise that nothing was stored.
BY_LOOK = "a look decides"  # the verb of what a look says of an effect
REFUSALS = (StoreUnavailable, StoreFull, TransactionEnded)


class Event(msgspec.Struct, gc=False):
    number: int  # of the call: its invoke and its answer share it
    moment: float
    step: int
    process: str
    kind: Kind
    verb: str
    data: Any


class Call(msgspec.Struct):
    """An invoke with its answer; `kind` is 'unknown' as well when the process died before the answer came."""

    verb: str
    process: str
    asked: Any
    invoked: Event
    answered: Event | None

    @property
    def kind(self) -> Kind:
        return "unknown" if self.answered is None else self.answered.kind

    @property
    def answer(self) -> Any:
        return None if self.answered is None else self.answered.data

    def spans(self, entry: Entry) -> bool:
        """Whether this call may have made that change: same process, between question and answer."""
        after = self.answered is not None and entry.step > self.answered.step
        return entry.process == self.process and entry.step >= self.invoked.step and not after


class History:
    """Only ever appended to, in the order of the simulation's steps."""

    def __init__(self, loop: SeededLoop) -> None:
        self._loop = loop
        self.events: list[Event] = []
        self.calls: list[Call] = []
        # By verb, because checkers ask often.
        self._happened: defaultdict[str, list[Event]] = defaultdict(list)
        self._asked: defaultdict[str, list[Call]] = defaultdict(list)
        self.surprises: list[str] = []  # errors that no contract announces

    async def call(self, verb: str, asked: Any, work: Callable[[], Awaitable[T]]) -> T:
        """Do it and write down what was asked and answered. Errors go on to the caller."""
        call = self.ask(verb, asked)
        try:
            answer = await work()
        except Exception as error:
            self.fail(call, error)
            raise
        self.answer(call, answer)
        return answer

    def ask(self, verb: str, asked: Any) -> Call:
        """The first half of a call whose answer comes by another way."""
        call = Call(verb, _process(), asked, self._add(len(self.calls), "invoke", verb, asked), None)
        self.calls.append(call)
        self._asked[verb].append(call)
        return call

    def answer(self, call: Call, answer: Any) -> None:
        call.answered = self._add(call.invoked.number, "ok", call.verb, answer)

    def fail(self, call: Call, error: Exception) -> None:
        kind: Kind = "unknown" if isinstance(error, CommitUnknown) else "fail"
        told = type(error).__name__ if isinstance(error, REFUSALS) else f"{type(error).__name__}: {error}"
        call.answered = self._add(call.invoked.number, kind, call.verb, None if kind == "unknown" else told)

    def event(self, verb: str, data: Any) -> None:
        """Something that is no call: a fault, the start of a body."""
        self._happened[verb].append(self._add(-1, "event", verb, data))

    def surprise(self, text: str) -> None:
        self.surprises.append(f"at {self._loop.time():.3f} s in {_process()}: {text}")

    def of(self, *verbs: str) -> list[Call]:
        if len(verbs) == 1:
            return self._asked.get(verbs[0], [])
        return [call for call in self.calls if call.verb in verbs]

    def happened(self, verb: str) -> list[Event]:
        return self._happened.get(verb, [])

    def digest(self) -> str:
        text = hashlib.blake2b(digest_size=8)
        for event in self.events:
            text.update(
                f"{event.moment:.6f} {event.step} {event.process} {event.kind} {event.verb} {event.data}\n".encode()
            )
        return text.hexdigest()

    def _add(self, number: int, kind: Kind, verb: str, data: Any) -> Event:
        event = Event(number, self._loop.time(), self._loop.steps, _process(), kind, verb, data)
        self.events.append(event)
        return event


def _process() -> str:
    process = running()
    return "nemesis" if process is None else process.name
