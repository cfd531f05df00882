"""What a program sees of its fleet: `hf.workers`."""

from __future__ import annotations

from holdfast.kernel.awaits import must_await_all
from holdfast.store.ports import Store
from holdfast.store.worker_records import WorkerRecord


@must_await_all("hf.workers")
class WorkersView:
    """Look at workers: who is alive, what each serves and runs, and who has died lately."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def list(self, *, limit: int = 100) -> list[WorkerRecord]:
        """Those that are alive first; then those that have died within a day, the last first."""
        return await self._store.workers.find(limit=limit)
