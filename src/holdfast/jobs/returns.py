"""Claims on their way back to the store, uncharged. One that does not arrive waits for its lease, and is charged for it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress

from holdfast.kernel.clock import sleep, timeout
from holdfast.kernel.errors import NotOpen
from holdfast.kernel.randomness import jittered
from holdfast.kernel.spawn import over, spawn
from holdfast.kernel.telemetry import note
from holdfast.store.ports import Claims
from holdfast.store.records import Claim

_TRY = 1.0  # seconds for one try
_WAIT = 2.5  # seconds for which someone waits: a store that does not answer must not keep a process
_PAUSE, _LONGEST_PAUSE = 0.2, 5.0  # seconds between tries


class Returns:
    """They go back also when whoever wanted that is cancelled, or does not wait any longer."""

    def __init__(self, claims: Claims) -> None:
        self._claims = claims
        self._held: dict[tuple[str, int], Claim] = {}
        self._task: asyncio.Task[None] | None = None

    def begin(self, claims: Sequence[Claim]) -> None:
        self._held |= {(claim.job_id, claim.token): claim for claim in claims}
        if self._held and (self._task is None or self._task.done()):
            self._task = spawn(self._run(), name="worker-returns")

    async def put_back(self, claims: Sequence[Claim]) -> None:
        self.begin(claims)
        await self.rest()

    async def rest(self) -> None:
        """Wait until all are back, for a while."""
        if self._task is not None:
            with suppress(TimeoutError):
                async with timeout(_WAIT):
                    await over(self._task)

    async def _run(self) -> None:
        pause = _PAUSE
        while self._held:
            claims = list(self._held.values())
            if await self._try(claims):
                continue
            await sleep(jittered(pause))
            pause = min(2 * pause, _LONGEST_PAUSE)
            if len(claims) > 1:  # one of them may stand in the way of all
                await asyncio.gather(*(self._try([claim]) for claim in claims))

    async def _try(self, claims: Sequence[Claim]) -> bool:
        try:
            async with timeout(_TRY):
                await self._claims.release(claims)
        except NotOpen:  # nobody can be asked any more
            self._held.clear()
        except Exception as error:  # noqa: BLE001  whatever it is, it may pass
            note("worker.release_failed", number=len(claims), error=repr(error))
            return False
        for claim in claims:
            self._held.pop((claim.job_id, claim.token), None)
        return True
