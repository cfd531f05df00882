"""The function of every simulated saga: it does what its arguments say, one act after the other, and alike in every run."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from holdfast.guards.backoff import Backoff
from holdfast.kernel.clock import sleep
from holdfast.sagas.plans import Undo
from holdfast.sagas.running import RunningSaga
from holdfast.sagas.saga import Saga
from holdfast.testing.simulation.fleet import Life
from holdfast.testing.simulation.sagas.provider import KEY_TTL, Provider, Refused
from holdfast.testing.simulation.sagas.spec import GO, Act


class Failed(Exception):
    """The saga of the simulation says that it has failed."""


class Acting:
    """One run."""

    def __init__(self, life: Life, saga: RunningSaga, leg: Callable[[], Saga]) -> None:
        self._life, self._saga, self._leg = life, saga, leg
        self._provider: Provider = life.fleet.provider

    async def play(self, acts: Sequence[Act]) -> str:
        for act in acts:
            try:
                await _ACTS[act.kind](self, act)
            except Exception:  # as careless as programs are: also what only means that it has to rest
                if not act.catches:
                    raise
        return self._saga.id

    async def step(self, act: Act) -> None:
        saga, provider = self._saga, self._provider
        options: dict[str, Any] = {"pivot": True} if act.pivot else {}
        if act.undo:
            options["undo"] = (
                Undo(provider.undo, saga.id, act.name) if act.undo == "args" else provider.take_back
            )
        if act.policy is not None:
            options |= {"policy": act.policy, "not_done": (Refused,), "key_ttl": KEY_TTL}
        if act.looks:
            options |= {"reconcile": provider.find, "settle": self._life.fleet.plan.settle}
        key = saga.key_for(act.name) if act.policy == "keyed" else None
        retry = Backoff(attempts=act.tries, first=act.pause, ceiling=act.pause)
        await saga.step(
            act.name, provider.do, saga.id, act.name, key, retry=retry, timeout=act.timeout, **options
        )

    async def sleep(self, act: Act) -> None:
        await self._saga.sleep(act.seconds)

    async def linger(self, act: Act) -> None:
        """Between two steps, with its slot."""
        await sleep(act.seconds)

    async def wait(self, act: Act) -> None:
        await self._saga.wait_for(act.name, key=act.key, timeout=act.timeout)

    async def signal(self, act: Act) -> None:
        await self._saga.signal(GO, timeout=act.timeout)

    async def child(self, act: Act) -> None:
        await self._saga.run_child(self._leg(), list(act.acts), id=act.name)

    async def gather(self, act: Act) -> None:
        await self._saga.gather(*(self.play(branch) for branch in act.branches))

    async def fail(self, _: Act) -> None:
        raise Failed(self._saga.id)


_ACTS: dict[str, Callable[[Acting, Act], Awaitable[None]]] = {
    "step": Acting.step,
    "sleep": Acting.sleep,
    "linger": Acting.linger,
    "wait": Acting.wait,
    "signal": Acting.signal,
    "child": Acting.child,
    "gather": Acting.gather,
    "fail": Acting.fail,
}
