"""Calls through a guard, by callers who may lose patience and by the bodies of jobs; each is written into the history."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from holdfast.guards.guard import Guard
from holdfast.kernel.clock import sleep
from holdfast.kernel.spawn import over
from holdfast.testing.simulation.fleet import Life
from holdfast.testing.simulation.guards.provider import Asked, CutOff, Provider
from holdfast.testing.simulation.guards.spec import GuardSpec
from holdfast.testing.simulation.guards.watched import WatchedBreaker

CALL = "guarded call"


class Calling:
    """Of one process."""

    def __init__(self, life: Life, guards: Mapping[str, Guard[Any]]) -> None:
        self._life, self._guards = life, guards
        self.under_way = 0
        self.requests: Counter[str] = Counter()  # that were made of the provider, by guard

    async def begin(self, spec: GuardSpec, user: str, patience: float | None) -> None:
        """A caller's, who is not surprised by any failure."""
        work = self._life.process.start(self.call(spec, user), "guarded")
        if patience is not None:
            await sleep(patience)
            work.cancel()
        await over(work)

    async def call(self, spec: GuardSpec, user: str, job: str | None = None) -> str:
        """One call through the guard, with all its attempts."""
        life, guard = self._life, self._guards[spec.name]
        provider: Provider = life.fleet.provider
        number, attempts = provider.next_call(), 0
        assert guard.limiter is not None
        key = "" if spec.per is None else guard.limiter.key_for(user=user)

        async def attempt() -> str:
            nonlocal attempts
            attempts += 1
            self.requests[spec.name] += 1
            assert guard.limiter is not None
            return await provider.answer(Asked(spec.name, key, number, attempts, guard.limiter.rate(key=key)))

        told = life.history.ask(CALL, (spec.name, key, number, job))
        self.under_way += 1
        try:
            answer: str = await (guard.keyed(user=user) if spec.per else guard).call(attempt)
        except Exception as error:
            life.history.fail(told, error)
            raise
        except BaseException:
            if life.process.alive:
                life.history.fail(told, CutOff())
            raise
        finally:
            self.under_way -= 1
        life.history.answer(told, answer)
        return answer

    def look(self, guard: Guard[Any]) -> None:
        """What it holds while no call is under way."""
        breaker, bulkhead = guard.breaker, guard.bulkhead
        assert isinstance(breaker, WatchedBreaker)
        held = (0, 0) if bulkhead is None else (bulkhead.in_flight, bulkhead.line)
        counts = tuple(breaker.counts[what] for what in ("admitted", "ended", "cut off", "not made"))
        self._life.history.event("at rest", (guard.name, held, counts, self.requests[guard.name]))
