"""The service that guards stand before. It lives outside all processes, misbehaves in phases, and notes what it is asked."""

from __future__ import annotations

import asyncio
import random
from email.utils import formatdate
from typing import Any

import msgspec

from holdfast.kernel.clock import sleep
from holdfast.testing.simulation.fleet import Fleet
from holdfast.testing.simulation.process import Process, running

REQUEST = "request"


class Asked(msgspec.Struct, frozen=True, array_like=True):
    """One attempt, as the provider sees it and as its caller was when it was made."""

    guard: str
    key: str  # of the limiter
    call: int  # all attempts of one call share its number
    attempt: int
    rate: float  # of the limiter of that process, then


class Answer(Exception):
    """An HTTP answer that is no success, as clients raise it."""

    def __init__(self, status_code: int, headers: dict[str, str] | None = None) -> None:
        super().__init__(f"{status_code} {headers or ''}")
        self.status_code, self.headers = status_code, headers or {}


class CutOff(Exception):
    """Nobody waits for the answer any more."""


class Provider:
    def __init__(self, fleet: Fleet) -> None:
        self._fleet, self._history = fleet, fleet.history
        self._calls = self._requests = 0

    def next_call(self) -> int:
        self._calls += 1
        return self._calls

    async def answer(self, asked: Asked) -> str:
        """One request, written into the history at the moment of its admission."""
        caller = running()
        assert caller is not None
        request = self._history.ask(REQUEST, asked)
        try:
            answer = await self._answered(caller)
        except Exception as error:
            self._history.fail(request, error)
            raise
        except BaseException:
            if caller.alive:
                self._history.fail(request, CutOff())
            raise
        self._history.answer(request, answer)
        return answer

    async def _answered(self, caller: Process) -> str:
        self._requests += 1
        chance = random.Random(f"guards provider:{self._fleet.plan.seed}:{self._requests}")
        how = self._how(caller)
        await sleep(_seconds(how, chance))
        match how:
            case "errors":
                raise _error(chance)
            case "flaky" if chance.random() < 0.5:
                raise _error(chance)
            case "throttles" if chance.random() < 0.8:
                raise Answer(429, self._retry_after(chance))
            case "hangs" if chance.random() < 0.9:
                await asyncio.get_running_loop().create_future()  # until someone gives up
        return how

    def _how(self, caller: Process) -> str:
        traffic = self._fleet.plan.traffic
        assert traffic is not None
        if self._fleet.healed:
            return "well"
        return traffic.phase(self._fleet.loop.time(), self._fleet.nodes.index(caller.node))

    def _retry_after(self, chance: random.Random) -> dict[str, str]:
        """In seconds or as a date, and what no sane service would say."""
        date = formatdate(self._fleet.host.now() + chance.choice((2, 30)), usegmt=True)
        said: Any = chance.choice(
            (None, "0", "1", "2", "1.5", date, "1000000000", "-1", "soon", "", "9" * 400)
        )
        return {} if said is None else {"Retry-After": said}


def _seconds(how: str, chance: random.Random) -> float:
    if how == "slow":
        return chance.uniform(0.2, 2.0)
    return chance.choice((0.0, 0.01, 0.05, 0.2)) * chance.uniform(0.5, 1)


def _error(chance: random.Random) -> Exception:
    return chance.choice(
        (ConnectionRefusedError(111, "refused"), Answer(500), Answer(503), ConnectionResetError("cut"))
    )
