"""The service that steps and undos call. It lives outside all processes, does not always say what it did, and knows what is there."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Callable
from typing import Any

import msgspec

from holdfast.jobs.effects import CannotTell, Found, NotFound
from holdfast.kernel.clock import sleep
from holdfast.testing.simulation.fleet import Fleet

CALL, DID, LATE = "step called", "did", "came too late"
UNDO, UNDID, NOTHING = "undo called", "undid", "told to undo nothing"
KEY_TTL = 12.0  # seconds for which a step believes that a key is remembered: here it is for ever
UNDO_TIMEOUT = 2.0  # seconds of one try of an undo


class Refused(Exception):
    """The provider says that it did nothing: what steps list in `not_done`."""


class Manner(msgspec.Struct, frozen=True):
    """What the seed makes of one request."""

    how: str
    dialling: float  # seconds in which the caller may be killed, and nothing was sent
    wire: float  # seconds until it arrives, whatever becomes of the caller
    back: float  # seconds until the caller hears


class Provider:
    """What it has is named `saga/step`. What was undone is not done by a request that comes later: it keeps that in mind."""

    def __init__(self, fleet: Fleet) -> None:
        assert fleet.plan.story is not None
        self._fleet, self._history = fleet, fleet.history
        self._stubborn, self._mended = set(fleet.plan.story.stubborn), fleet.plan.story.mended
        self._calls: Counter[str] = Counter()
        self._under_way: Counter[str] = Counter()
        self.there: set[str] = set()
        self._undone: set[str] = set()

    # --- asked by sagas ---

    async def do(self, saga_id: str, step: str, key: str | None = None) -> str:
        ref = f"{saga_id}/{step}"
        manner = self._manner(f"do {ref}", _DO)
        self._history.event(CALL, (saga_id, step, key))
        await self._request(ref, manner, self._do)
        return ref

    async def undo(self, saga_id: str, step: str) -> None:
        ref = f"{saga_id}/{step}"
        manner = self._manner(f"undo {ref}", _UNDO)
        if ref in self._stubborn and not (self._fleet.healed and self._mended):
            manner = msgspec.structs.replace(manner, how="gets lost")
        self._history.event(UNDO, (saga_id, step))
        await self._request(ref, manner, self._undo)

    async def take_back(self, result: str | None) -> None:
        """An undo that knows what to undo by the result of the step, and by nothing else."""
        if result is None:
            self._history.event(NOTHING, None)
            return
        saga_id, _, step = result.rpartition("/")
        await self.undo(saga_id, step)

    async def find(self, saga_id: str, step: str, key: str | None = None) -> Any:
        """For `reconcile`. What is on its way is not found."""
        ref = f"{saga_id}/{step}"
        chance = self._chance(f"find {ref}")
        await sleep(chance.choice((0.02, 0.3)))
        drawn = 1.0 if self._fleet.healed else chance.random()
        if drawn < 0.1:
            raise ConnectionError("the lookup broke")
        if drawn < 0.2:
            return CannotTell
        return Found(ref) if ref in self.there else NotFound

    # --- asked by the person, who sees everything ---

    def is_under_way(self, ref: str) -> bool:
        return self._under_way[ref] > 0

    # --- one request ---

    async def _request(self, ref: str, manner: Manner, arrive: Callable[[str], None]) -> None:
        await sleep(manner.dialling)
        reply: asyncio.Future[None] = self._fleet.loop.create_future()
        self._under_way[ref] += 1
        self._outside(manner.wire, lambda: self._arrive(ref, manner, arrive, reply))
        await reply

    def _arrive(
        self, ref: str, manner: Manner, arrive: Callable[[str], None], reply: asyncio.Future[None]
    ) -> None:
        self._under_way[ref] -= 1
        error: Exception | None = None
        match manner.how:
            case "refuses":
                error = Refused("no, thank you")
            case "gets lost":
                error = ConnectionResetError("cut off")
            case "breaks":
                arrive(ref)
                error = ConnectionResetError("cut off")
            case _:
                arrive(ref)
        self._outside(manner.back, lambda: _answer(reply, error))

    def _do(self, ref: str) -> None:
        if ref in self._undone:
            self._history.event(LATE, ref)
            return
        self.there.add(ref)
        self._history.event(DID, ref)

    def _undo(self, ref: str) -> None:
        self._undone.add(ref)
        self.there.discard(ref)
        self._history.event(UNDID, ref)

    # --- what the seed says ---

    def _chance(self, what: str) -> random.Random:
        """The same for the same question of the same seed, whatever else was asked before."""
        self._calls[what] += 1
        return random.Random(f"desk:{self._fleet.plan.seed}:{what}:{self._calls[what]}")

    def _manner(self, what: str, ways: dict[str, int]) -> Manner:
        chance = self._chance(what)
        how = chance.choices(list(ways), list(ways.values()))[0]
        slow = 6.0 if how == "hangs" else 0.0
        dialling = chance.choice((0.0, 0.0, 0.1, 1.0)) * chance.uniform(0.5, 1)
        wire = chance.choice((0.02, 0.02, 0.3, 1.0)) * chance.uniform(0.5, 1)
        back = chance.choice((0.02, 0.3, 1.0)) * chance.uniform(0.5, 1) + slow
        return Manner(
            "answers" if self._fleet.healed else how, round(dialling, 3), round(wire, 3), round(back, 3)
        )

    def _outside(self, seconds: float, call: Callable[[], None]) -> None:
        self._fleet.loop.call_later(seconds, call, context=self._fleet.outside)


_DO = {"answers": 70, "refuses": 8, "breaks": 8, "gets lost": 8, "hangs": 6}
_UNDO = {"answers": 75, "breaks": 10, "gets lost": 10, "hangs": 5}


def _answer(reply: asyncio.Future[None], error: Exception | None) -> None:
    """Whoever asked may be dead: then nobody need be told."""
    if reply.done():
        return
    if error is None:
        reply.set_result(None)
    else:
        reply.set_exception(error)
        reply.exception()
