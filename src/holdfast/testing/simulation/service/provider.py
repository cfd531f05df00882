"""A service outside: it counts what it accepted, knows no process, and does not always say what it did."""

from __future__ import annotations

import asyncio
import random
from collections import Counter, defaultdict
from collections.abc import Callable
from typing import Any

import msgspec

from holdfast.jobs.effects import CannotTell, Found, NotFound
from holdfast.kernel.clock import sleep
from holdfast.testing.simulation.fleet import Fleet
from holdfast.testing.simulation.process import Process, running

DIALLING = 2.0  # seconds, at most, until a request leaves its caller
KEY_TTL = 12.0  # seconds for which tasks believe that a key is remembered
_BLIND = 0.3  # of what is looked up again can never be told
SLOWEST = 5.0  # seconds, at most, from there until it is accepted


class Refused(Exception):
    """The provider says that it did nothing: what tasks list in `not_done`."""


class Asked(msgspec.Struct, frozen=True):
    """Whose call it is: one effect in one run of a job."""

    job_id: str
    token: int
    effect: str
    key: str | None = None  # for the provider that accepts keys


class Manner(msgspec.Struct, frozen=True):
    """What the seed makes of one request."""

    how: str
    dialling: float  # seconds in which the caller may be killed, and nothing was sent
    wire: float  # seconds until it arrives, whatever becomes of the caller
    back: float  # seconds until the caller hears
    deaf: bool  # sent by a thread of the client's own, which does not hear that nobody waits any more


class Request(msgspec.Struct):
    asked: Asked
    number: int
    manner: Manner
    caller: Process
    reply: asyncio.Future[str]
    sent: bool = False
    arrived: bool = False
    left: bool = False  # its caller no longer waits


class Provider:
    """Lives in no process: what was sent arrives, though its sender be dead or stand still."""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet, self._history = fleet, fleet.history
        self._calls: Counter[tuple[str, str]] = Counter()
        self._requests: dict[tuple[str, str], list[Request]] = defaultdict(list)
        self._accepted: dict[tuple[str, str], str] = {}  # the answer to the first
        self._lookups: Counter[tuple[str, str, int]] = Counter()
        self._keys: dict[str, tuple[str, float]] = {}  # the answer, and when it was given

    # --- asked by tasks ---

    async def call(self, asked: Asked) -> str:
        """One request; its answer, or an error that tells nothing, unless it is Refused."""
        subject = asked.job_id, asked.effect
        self._calls[subject] += 1
        number = self._calls[subject]
        caller = running()
        assert caller is not None
        manner = _manner(self.chance(f"call {number}", *subject))
        request = Request(asked, number, manner, caller, self._fleet.loop.create_future())
        self._requests[subject].append(request)
        self._history.event("call", (*subject, asked.token, number, asked.key))
        try:
            if manner.deaf:
                self._fleet.loop.call_later(manner.dialling, self._send, request)
            else:
                await sleep(manner.dialling)
                self._send(request)
            return await request.reply
        finally:
            request.left = True

    async def find(self, asked: Asked) -> Any:
        """For `reconcile`. What is on its way is not found."""
        subject = asked.job_id, asked.effect, asked.token
        again = (self._lookups[subject],) if self._lookups[subject] else ()
        self._lookups[subject] += 1
        chance = self.chance("lookup", *subject, *again)
        await sleep(chance.choice((0.02, 0.3)))
        drawn, answer = chance.random(), self._accepted.get((asked.job_id, asked.effect))
        if again and self.chance("blind", *subject).random() < _BLIND:
            drawn = 0.15
        said = "fails" if drawn < 0.1 else "CannotTell" if drawn < 0.2 else "Found" if answer else "NotFound"
        self._history.event("lookup", (asked.job_id, asked.effect, asked.token, said))
        match said:
            case "fails":
                raise ConnectionError("the lookup broke")
            case "CannotTell":
                return CannotTell
            case "Found":
                return Found(answer)
            case _:
                return NotFound

    def chance(self, *what: object) -> random.Random:
        """The same for the same question of the same seed, whatever else was asked before."""
        return random.Random(f"provider:{self._fleet.plan.seed}:{what}")

    # --- asked by the operator, who sees everything ---

    def is_under_way(self, job_id: str, effect: str) -> bool:
        """Whether a request may still arrive."""
        return any(
            not request.arrived and (request.sent or _may_be_sent(request))
            for request in self._requests[job_id, effect]
        )

    def answer(self, job_id: str, effect: str) -> str | None:
        """What it answered, or would have; None: it has accepted nothing."""
        return self._accepted.get((job_id, effect))

    # --- outside ---

    def _send(self, request: Request) -> None:
        request.sent = True
        manner = request.manner
        self._outside(manner.wire, lambda: self._arrive(request))
        if manner.how == "late":  # its caller gives up before
            self._outside(manner.back, lambda: _fail(request, TimeoutError("no answer")))

    def _arrive(self, request: Request) -> None:
        request.arrived = True
        back = request.manner.back
        match request.manner.how:
            case "refuses":
                self._outside(back, lambda: _fail(request, Refused("no, thank you")))
                return
            case "gets lost":
                self._outside(back, lambda: _fail(request, ConnectionResetError("cut off")))
                return
        answer = self._accept(request)
        match request.manner.how:
            case "answers":
                self._outside(back, lambda: _answer(request, answer))
            case "times out":
                self._outside(back, lambda: _fail(request, TimeoutError("no answer")))
            case "breaks":
                self._outside(back, lambda: _fail(request, ConnectionResetError("cut off")))

    def _accept(self, request: Request) -> str:
        """Once for each key; without one, as often as it is asked."""
        asked = request.asked
        subject = asked.job_id, asked.effect
        if (known := self._remembered(asked.key)) is not None:
            self._history.event("repeated", (*subject, asked.token, request.number))
            return known
        answer = f"{asked.effect} was done by call {request.number}"
        if asked.key is not None:
            self._keys[asked.key] = answer, self._fleet.loop.time()
        self._accepted.setdefault(subject, answer)
        self._history.event("accepted", (*subject, asked.token, request.number))
        return answer

    def _remembered(self, key: str | None) -> str | None:
        """A call that was begun in time may take as long as an effect takes to settle."""
        answer, at = self._keys.get(key or "", (None, 0.0))
        return answer if self._fleet.loop.time() - at < KEY_TTL + self._fleet.plan.settle else None

    def _outside(self, seconds: float, call: Callable[[], None]) -> None:
        self._fleet.loop.call_later(seconds, call, context=self._fleet.outside)


_HOW = {"answers": 55, "refuses": 12, "times out": 9, "breaks": 8, "gets lost": 8, "late": 8}


def _manner(chance: random.Random) -> Manner:
    how = chance.choices(list(_HOW), list(_HOW.values()))[0]
    dialling = chance.choice((0.0, 0.0, 0.0, 0.1, DIALLING)) * chance.uniform(0.5, 1)
    wire = chance.choice((0.02, 0.02, 0.3, 1.0)) * chance.uniform(0.5, 1)
    back = chance.choice((0.02, 0.3, 1.0)) * chance.uniform(0.5, 1)
    if how == "late":
        wire = chance.uniform(back, SLOWEST)
    deaf = chance.random() < 0.4
    return Manner(how, round(dialling, 3), round(wire, 3), round(back, 3), deaf)


def _may_be_sent(request: Request) -> bool:
    return request.caller.alive and (request.manner.deaf or not request.left)


def _fail(request: Request, error: Exception) -> None:
    if not request.reply.done():
        request.reply.set_exception(error)
        request.reply.exception()  # whoever asked may be dead: then nobody need be told


def _answer(request: Request, answer: str) -> None:
    if not request.reply.done():
        request.reply.set_result(answer)
