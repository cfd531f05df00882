"""What bodies do in steps and effects: in sequence, side by side, with failures that they handle or give up waiting for."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

from holdfast.guards.backoff import Backoff
from holdfast.jobs.control import Control
from holdfast.jobs.effects import Policy
from holdfast.jobs.job import Job
from holdfast.kernel.clock import sleep, timeout
from holdfast.kernel.errors import HoldfastError, StepFailed
from holdfast.testing.simulation.fleet import Life
from holdfast.testing.simulation.service.provider import KEY_TTL, Asked, Provider, Refused

LOOKS = 4  # of one effect, that of its run too

_AGAIN = Backoff(attempts=2, first=0.2, ceiling=0.4)
_LOOKS = Backoff(attempts=LOOKS, first=1.0, ceiling=3.0)


class Broken(Exception):
    """A step of the simulation failed."""


class Acts:
    """Those of one run. Whatever is decided here is decided alike in every run of the job."""

    def __init__(self, life: Life, job: Job) -> None:
        self._life, self._job, self._history = life, job, life.history
        self._provider: Provider = life.fleet.provider

    async def play(self, names: Sequence[str]) -> None:
        for place, name in enumerate(names):
            await _ACTS[name](self, f"{name}:{place}")

    # --- acts ---

    async def sequence(self, name: str) -> None:
        await self._step(f"{name}.a")
        await self._step(f"{name}.b", fails=0.2)

    async def beside(self, name: str) -> None:
        """Three coroutines of two steps each. Sometimes the task does not wait for the others when one fails."""
        waits = self._provider.chance("waits", self._job.id, name).random() < 0.5
        found = await asyncio.gather(
            *(self._branch(f"{name}.{letter}") for letter in "abc"), return_exceptions=waits
        )
        for each in found:
            if isinstance(each, BaseException):
                raise each

    async def _branch(self, name: str) -> None:
        await self._step(name)
        await self._step(f"{name}{name[-1]}", fails=0.15)

    async def ahead(self, name: str) -> None:
        """One that is begun early and awaited late. It is not handled by what the task does in between."""
        early = asyncio.gather(self._step(f"{name}.a", fails=0.6))
        await self._step(f"{name}.b")
        await sleep(0.8)
        await self._step(f"{name}.c")  # by now the early one may have failed
        try:
            await early
        except StepFailed as error:
            self._history.event("not handled", (self._job.id, f"{name}.a", self._job.token, str(error)))
            raise

    async def handled(self, name: str) -> None:
        """Without the first, the second: in a later run too."""
        try:
            await self._step(f"{name}.a", fails=0.6)
        except Broken:
            await self._step(f"{name}.b")
        await self._step(f"{name}.c")

    async def hurried(self, name: str) -> None:
        """The same with a step that it does not wait for."""
        try:
            async with timeout(0.4):
                await self._step(f"{name}.a")
        except TimeoutError:
            await self._step(f"{name}.b")
        await self._step(f"{name}.c")

    async def bare(self, name: str) -> None:
        await self._effect(name, "at_most_once")

    async def looked_up(self, name: str) -> None:
        await self._effect(name, "at_most_once", looks=True)

    async def looked_up_again(self, name: str) -> None:
        await self._effect(name, "at_most_once", looks=True, look_again=_LOOKS)

    async def often(self, name: str) -> None:
        looks = self._provider.chance("looks", self._job.id, name).random() < 0.3
        await self._effect(name, "at_least_once", looks=looks)

    async def keyed(self, name: str) -> None:
        await self._effect(name, "keyed")

    async def refused(self, name: str) -> None:
        """What a provider refuses is done by another."""
        try:
            await self._effect(f"{name}.a", "at_most_once", looks=True)
        except Refused:
            await self._effect(f"{name}.b", "keyed")

    async def effects_beside(self, name: str) -> None:
        await asyncio.gather(
            self._effect(f"{name}.a", "at_most_once", looks=True),
            self._effect(f"{name}.b", "at_most_once"),
            self._effect(f"{name}.c", "keyed"),
            self._step(f"{name}.d"),
        )

    async def impatient(self, name: str) -> None:
        """A task that stops waiting, and goes on as if nothing had been."""
        looks = self._provider.chance("looks", self._job.id, name).random() < 0.5
        with suppress(Exception):
            async with timeout(0.5):
                await self._effect(name, "at_most_once", looks=looks)

    # --- how they are asked for ---

    async def _step(self, name: str, fails: float = 0.0) -> None:
        await self._seen(name, self._job.step(name, partial(self._work, name, fails)))

    async def _work(self, name: str, fails: float) -> str:
        """Each run of it has another result, so that nobody can confuse them."""
        runs = self._life.fleet.runs
        runs[f"{self._job.id} {name}"] += 1
        number = runs[f"{self._job.id} {name}"]
        self._history.event("step run", (self._job.id, name, self._job.token, number))
        chance = self._provider.chance("step", self._job.id, name, number)
        await sleep(chance.choice((0.0, 0.02, 0.3, 1.5)) * chance.uniform(0.5, 1))
        if chance.random() < fails:
            raise Broken(f"run {number} of {name} broke")
        return f"run {number}"

    async def _effect(
        self, name: str, policy: Policy, *, looks: bool = False, look_again: Backoff | None = None
    ) -> None:
        chance = self._provider.chance("options", self._job.id, name)
        key = self._job.key_for(name) if policy == "keyed" else None
        options: dict[str, Any] = {
            "policy": policy,
            "not_done": (Refused,),
            "key_ttl": KEY_TTL,
            "settle": self._life.fleet.plan.settle,
            "look_again": look_again,
            "retry": chance.choice((None, _AGAIN)),
            "timeout": chance.choice((None, None, 2.5)),
        }
        asking = self._job.effect(
            name,
            partial(self._call, name, key),
            **(options | ({"reconcile": partial(self._find, name)} if looks else {})),
        )
        await self._seen(name, asking)

    async def _call(self, name: str, key: str | None) -> str:
        return await self._provider.call(Asked(self._job.id, self._job.token, name, key))

    async def _find(self, name: str) -> Any:
        return await self._provider.find(Asked(self._job.id, self._job.token, name))

    async def _seen(self, name: str, asking: Awaitable[Any]) -> None:
        """Write down what the task gets."""
        who = (self._job.id, name, self._job.token)
        try:
            value = await asking
        except Exception as error:
            kind = "handled" if isinstance(error, StepFailed) else "failed"
            if kind == "failed" and isinstance(error, Control | HoldfastError):
                kind = "ended"  # not by what it does itself
            self._history.event("saw", (*who, kind, str(error)))
            raise
        self._history.event("saw", (*who, "got", value))


_ACTS: dict[str, Callable[[Acts, str], Awaitable[None]]] = {
    "sequence": Acts.sequence,
    "beside": Acts.beside,
    "ahead": Acts.ahead,
    "handled": Acts.handled,
    "hurried": Acts.hurried,
    "bare": Acts.bare,
    "looked up": Acts.looked_up,
    "often": Acts.often,
    "keyed": Acts.keyed,
    "refused": Acts.refused,
    "effects beside": Acts.effects_beside,
    "impatient": Acts.impatient,
}
NAMES = tuple(_ACTS)  # from which all seeds draw
LOOKED_UP_AGAIN = "looked up again"
_ACTS[LOOKED_UP_AGAIN] = Acts.looked_up_again
