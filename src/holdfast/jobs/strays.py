"""Claims that a worker has and does not know of, because the answer to a claim was lost: they go back uncharged.

Left alone they would wait for the end of their lease, be charged an interruption, and run alone from then on.
"""

from __future__ import annotations

from holdfast.jobs.worker import Worker
from holdfast.kernel.telemetry import note
from holdfast.store.ports import Store


class Strays:
    """A claim that is unknown when every question asked before it was seen has been answered, or given up, is a stray."""

    def __init__(self, store: Store, worker: Worker) -> None:
        self._store, self._worker = store, worker
        # How many questions had been asked when it was first seen.
        self._seen: dict[tuple[str, int], int] = {}

    async def look(self) -> None:
        worker = self._worker
        held = await self._store.claims.held_by(worker.name)
        unknown = {key: claim for claim in held if (key := (claim.job_id, claim.token)) not in worker.runs}
        strays = [
            claim
            for key, claim in unknown.items()
            if key in self._seen and self._seen[key] <= worker.answered
        ]
        self._seen = {key: self._seen.get(key, worker.asked) for key in unknown}
        if strays:
            await self._worker.ends.put_back(strays, lambda some, tx: self._store.claims.release(some, tx=tx))
            note("worker.strays_returned", worker=worker.name, number=len(strays))
