"""Claims on their way back to the store, uncharged. One that does not arrive waits for its lease, and is charged for it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TypeAlias

from holdfast.jobs.ends_of_runs import EndsOfRuns
from holdfast.kernel.clock import monotonic, patience
from holdfast.kernel.errors import NotOpen
from holdfast.kernel.randomness import jittered
from holdfast.kernel.spawn import over, spawn
from holdfast.kernel.telemetry import note
from holdfast.store.job_ports import Claims
from holdfast.store.ports import Tx
from holdfast.store.records import Claim

Key: TypeAlias = tuple[str, int]
_TOGETHER = 1.0  # seconds until each of them tries by itself, beside the try of all
_TRY = 10.0  # seconds for one try
_WAIT = 2.5  # seconds for which someone waits: a store that does not answer must not keep a process
_PAUSE, _LONGEST_PAUSE = 0.2, 5.0  # seconds between tries


class Returns:
    """They go back also when whoever wanted that is cancelled, or does not wait any longer.

    `is_over` tells of one that has ended meanwhile: it stays. `on_empty` is called when all are back.
    """

    def __init__(
        self,
        claims: Claims,
        ends: EndsOfRuns,
        *,
        lease: float,
        is_over: Callable[[Key], bool],
        on_empty: Callable[[], None],
    ) -> None:
        self._claims, self._ends = claims, ends
        self._lease, self._is_over, self._on_empty = lease, is_over, on_empty
        self._held: dict[Key, Claim] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._again = asyncio.Event()  # set for a moment: it is worth a try now

    @property
    def is_empty(self) -> bool:
        return not self._held

    def begin(self, claims: Sequence[Claim]) -> asyncio.Task[None] | None:
        new = {_key(claim): claim for claim in claims if _key(claim) not in self._held}
        if not new:
            return None
        self._held |= new
        task = spawn(self._put_back(list(new.values())), name="worker-returns")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def put_back(self, claims: Sequence[Claim]) -> None:
        """Wait until they are back, for a while."""
        if (task := self.begin(claims)) is not None:
            await _in_time(task)

    async def rest(self) -> None:
        """Wait until all are back, for a while."""
        self._try_now()
        await _in_time(*self._tasks)

    def _try_now(self) -> None:
        self._again.set()
        self._again.clear()

    async def _put_back(self, claims: Sequence[Claim]) -> None:
        """Together; when that fails or takes long, each by itself: one of them may stand in the way of all."""
        until = monotonic() + self._lease  # nobody renews them: after that they are another's
        together = spawn(self._try(claims), name="worker-returns-try")
        with suppress(TimeoutError):
            async with patience(_TOGETHER if len(claims) > 1 else _TRY):
                await over(together)
        await asyncio.gather(*(self._insist(claim, until) for claim in claims))
        if not self._held:
            self._on_empty()

    async def _insist(self, claim: Claim, until: float) -> None:
        pause = _PAUSE
        while _key(claim) in self._held and monotonic() < until:
            if await self._try([claim]):
                return
            with suppress(TimeoutError):
                async with patience(jittered(pause)):
                    await self._again.wait()
            pause = min(2 * pause, _LONGEST_PAUSE)
        self._held.pop(_key(claim), None)

    async def _try(self, claims: Sequence[Claim]) -> bool:
        wanted = [claim for claim in claims if _key(claim) in self._held and not self._is_over(_key(claim))]
        try:
            if wanted:
                async with patience(_TRY):
                    await self._ends.put_back(wanted, self._release)
        except NotOpen:  # nobody can be asked any more
            pass
        except Exception as error:  # noqa: BLE001  whatever it is, it may pass
            note("worker.release_failed", number=len(wanted), error=repr(error))
            return False
        for claim in claims:
            self._held.pop(_key(claim), None)
        self._try_now()
        return True

    async def _release(self, claims: Sequence[Claim], tx: Tx | None) -> list[bool]:
        return await self._claims.release(claims, tx=tx)


def _key(claim: Claim) -> Key:
    return claim.job_id, claim.token


async def _in_time(*tasks: asyncio.Task[None]) -> None:
    with suppress(TimeoutError):
        async with patience(_WAIT):
            await over(*tasks)
