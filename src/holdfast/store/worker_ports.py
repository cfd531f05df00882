"""What a store keeps of workers: who is alive, and who has died lately. Only people read it; no promise depends on it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from holdfast.store.worker_records import NewWorker, WorkerRecord


class Workers(Protocol):
    async def register(self, worker: NewWorker, *, ttl: float) -> None:
        """It has started now, and is alive for `ttl` seconds. What was known by that name is replaced."""

    async def beat(self, name: str, *, ttl: float, draining: bool = False) -> bool:
        """It is alive for `ttl` seconds from now. False: nobody knows it, so it must register again."""

    async def leave(self, name: str) -> bool:
        """It has left in order: forget it."""

    async def bury(self, name: str) -> bool:
        """Its process is known to have died. False: nobody knows it, such as one that has left in order."""

    async def charge(self, rescued: Mapping[str, int]) -> None:
        """So many more jobs of these workers were put back; of unknown workers nothing is kept."""

    async def find(self, *, limit: int = 100) -> list[WorkerRecord]:
        """Those that are alive first, the oldest first; then the dead, those that died last first."""

    async def prune(self, *, keep: float, limit: int = 1000) -> int:
        """Forget those that have been dead for longer than `keep` seconds."""
