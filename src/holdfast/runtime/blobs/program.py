"""`hf.blobs`: stage bytes, commit them with your rows, read them, and let them go. Every key is one of the context's tenant."""

from __future__ import annotations

from holdfast.blobs.port import BlobStore
from holdfast.blobs.records import Blob, Checked, Swept
from holdfast.blobs.settings import BlobSettings
from holdfast.guards import Backoff, Breaker
from holdfast.jobs.control import Reject
from holdfast.jobs.job import Job
from holdfast.kernel.awaits import must_await_all
from holdfast.kernel.clock import now
from holdfast.runtime.blobs import sweeping
from holdfast.runtime.blobs.base import Program, shown
from holdfast.runtime.blobs.bringing import BringsIn
from holdfast.runtime.blobs.guarded import GuardedBlobs, fault_of_blobs
from holdfast.runtime.blobs.reading import Reads
from holdfast.runtime.blobs.settling import settle
from holdfast.runtime.blobs.turning import Turns

GUARD, SETTLE, SWEEP = "blobs", "holdfast.blobs.settle", "holdfast.blobs.sweep"
_EVERY = 3_600.0  # seconds between sweeps
_FAILURES, _REST = 5, 10.0  # of the guard's breaker


@must_await_all("hf.blobs")
class ProgramBlobs(BringsIn, Reads, Turns):
    """`staged = await hf.blobs.stage(content)`, then `await hf.blobs.commit(staged, "posts/7/cover.png", tx=tx)`."""

    def __init__(self, program: Program, settings: BlobSettings | None) -> None:
        self._program, self.settings = program, settings
        self._settle = None
        if settings is not None:
            self._declare(settings)

    async def sweep(self) -> Swept:
        """Remove what was staged and never committed, and what was deleted long ago. Workers do it every hour."""
        return await self._sweep(_no_beat)

    async def check(self, *, remove_orphans: bool = False) -> Checked:
        """Compare all rows with all objects. A row without object is marked `missing`; objects without row are named, and stay unless you say so."""
        rows, objects, place = 0, 0, self._place()
        missing: list[Blob] = []
        async for row, is_lost in sweeping.lost_rows(self._program.store.blobs, place):
            rows += 1
            if is_lost:
                missing.append(shown(row))
        strange, size = [], 0
        async for stat, is_orphan in sweeping.orphans(
            self._program.store.blobs, place, now() - self._its_settings().unused
        ):
            objects += 1
            if is_orphan:
                strange.append(stat.name)
                size += stat.size
                if remove_orphans:
                    await place.delete([stat.name])
        return Checked(rows, objects, tuple(missing), tuple(strange), size)

    def place(self) -> BlobStore:
        """The place itself, without keys, tenants and rows."""
        self._place()
        found = self._objects
        return found.inner if isinstance(found, GuardedBlobs) else self._place()

    def _declare(self, settings: BlobSettings) -> None:
        self._guard = self._program.guard(
            GUARD, classify=fault_of_blobs, retry=Backoff(attempts=settings.attempts, first=0.2, ceiling=5.0),
            breaker=Breaker(failures=_FAILURES, cooldown=_REST),
        )  # fmt: skip

        @self._program.task(
            name=SETTLE, queue=settings.queue, retry=Backoff(attempts=60, first=5, ceiling=3_600)
        )
        async def settle_blob(blob: str) -> None:
            if not await settle(blob, self._program.store.blobs, self._place()):
                raise Reject(
                    f"The object of the blob {blob} is gone: somebody else has removed it. The blob is marked as missing."
                )

        @self._program.every(_EVERY, name=SWEEP, queue=settings.queue, unique=SWEEP)
        async def sweep_blobs(job: Job) -> dict[str, int]:
            swept = await self._sweep(lambda text: job.heartbeat(note=text))
            return {
                "unused": swept.unused,
                "remains": swept.remains,
                "settled": swept.settled,
                "purged": swept.purged,
            }

        self._settle = settle_blob

    async def _sweep(self, beat: sweeping.Beat) -> Swept:
        settings = self._its_settings()
        return await sweeping.sweep(
            self._program.store.blobs, self._place(), unused=settings.unused, restorable=settings.restorable, beat=beat
        )  # fmt: skip

    def __repr__(self) -> str:
        return f"Blobs({self.settings!r})"


async def _no_beat(_text: str) -> None:
    return
