"""Claims that a worker has and does not know of, because the answer to a claim was lost: they go back uncharged.

Left alone they would wait for the end of their lease, be charged an interruption, and run alone from then on.
"""

from __future__ import annotations

from collections.abc import Mapping

from holdfast.jobs.run import Run
from holdfast.kernel.telemetry import note
from holdfast.store.ports import Store


class Strays:
    """What is not known in two looks is a stray: a claim that is being answered is known by the second."""

    def __init__(self, store: Store, runs: Mapping[tuple[str, int], Run], *, worker: str) -> None:
        self._store, self._runs, self._worker = store, runs, worker
        self._seen: set[tuple[str, int]] = set()

    async def look(self) -> None:
        unknown = {
            (claim.job_id, claim.token): claim
            for claim in await self._store.claims.held_by(self._worker)
            if (claim.job_id, claim.token) not in self._runs
        }
        strays = [claim for key, claim in unknown.items() if key in self._seen]
        self._seen = set(unknown)
        if strays:
            await self._store.claims.release(strays)
            note("worker.strays_returned", worker=self._worker, number=len(strays))
