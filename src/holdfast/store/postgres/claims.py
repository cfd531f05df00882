"""Claim ready jobs and hold on to them; what becomes of them is in finishes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial

from holdfast.kernel.errors import CommitUnknown, HoldfastError, StoreError
from holdfast.kernel.loops import PerLoop
from holdfast.kernel.telemetry import note
from holdfast.store.batching import Batcher
from holdfast.store.checks import all_held
from holdfast.store.edge import checked
from holdfast.store.postgres import claiming as c
from holdfast.store.postgres import finishes as f
from holdfast.store.postgres.connection import IMPATIENT
from holdfast.store.postgres.failures import Blocked
from holdfast.store.postgres.low_water import LowWater, count_dead
from holdfast.store.postgres.promotion import CHUNK
from holdfast.store.postgres.settling import settled
from holdfast.store.postgres.subject import Home, Subject
from holdfast.store.postgres.transaction import PostgresTx
from holdfast.store.records import Claim, Finish, Renewal, Rescue


@checked
class Claims(Subject):
    def __init__(self, home: Home) -> None:
        super().__init__(home)
        # What has keys stands apart (see endings), so that plain jobs never wait for a key.
        self._plain: PerLoop[Batcher[Finish, bool | None]] = PerLoop(
            lambda: Batcher(self._finish_batch, limit=500, name="finish")
        )
        self._water = LowWater()

    async def claim(self, wants: Mapping[str, int], *, lease: float, worker: str) -> list[Claim]:
        if not any(number > 0 for number in wants.values()):
            return []
        await self._look_for_dead()
        with self._water.timed(wants):
            make = partial(c.claim, wants, lease=lease, worker=worker, water=self._water)
            claims = await self._database.write(make)
        return await self._and_hidden(claims, wants, lease=lease, worker=worker)

    async def _and_hidden(
        self, claims: list[Claim], wants: Mapping[str, int], *, lease: float, worker: str
    ) -> list[Claim]:
        """With what a mark has hidden. A failure is no reason to keep back what is claimed already."""
        hidden = self._water.hidden(wants, claims)
        if not hidden:
            return claims
        make = partial(c.claim, hidden, lease=lease, worker=worker, water=self._water, top=True)
        try:
            with self._water.timed(hidden, top=True):
                claims += await self._database.write(make)
        except HoldfastError as error:
            note("claim.answer_lost", worker=worker, error=repr(error))
        places = {queue: place for place, queue in enumerate(wants)}
        return sorted(claims, key=lambda claim: places[claim.queue])

    async def claim_suspect(self, queues: Sequence[str], *, lease: float, worker: str) -> Claim | None:
        return await self._database.write(partial(c.claim_suspect, queues, lease=lease, worker=worker))

    async def renew(self, claims: Sequence[Claim], *, lease: float) -> list[Renewal]:
        if not claims:
            return []
        return await self._database.write(partial(c.renew, claims, lease=lease), urgent=True, repeatable=True)

    async def finish(
        self, finishes: Sequence[Finish], *, tx: object | None = None, parks: bool = False
    ) -> list[bool]:
        if not finishes:
            return []
        if tx is None:
            self._database.pool.check()
            if f.is_plain(finishes):
                return await self._finish_plain(finishes)
            return await self._home.endings.end([f.ending(item) for item in finishes])
        executor = await self._home.adopt(tx)
        if not isinstance(executor, PostgresTx):
            accepted = await executor.run(f.finish(finishes, beside=not parks))
        elif f.is_one_in_order(finishes):
            accepted = await executor.run(f.finish(finishes, beside=not parks, plans=True), plans=True)
        else:
            ending = f.finish(finishes, beside=not parks)
            accepted = await executor.run(ending, is_large=not f.is_plain(finishes))
        return all_held(finishes, accepted)

    async def finish_and_claim(
        self, finishes: Sequence[Finish], wants: Mapping[str, int], *, lease: float, worker: str
    ) -> tuple[Sequence[bool | None], list[Claim]]:
        if not finishes:
            return [], await self.claim(wants, lease=lease, worker=worker)
        await self._look_for_dead()
        make = partial(c.finish_and_claim, finishes, wants, lease=lease, worker=worker, water=self._water)
        write = self._database.write
        if not f.is_plain(finishes):
            write = partial(self._database.atomic, begin=IMPATIENT)
        try:
            if not any(wants.values()) and f.is_plain(finishes):
                return await self._plain.get().add(finishes), []
            with self._water.timed(wants):
                accepted, claims = await write(make, urgent=True)
        except Blocked:  # by someone who has a row of the batch
            return [None] * len(finishes), []
        except CommitUnknown as error:
            # What was claimed, if anything, is a stray: its worker finds it by its own name, and puts it back.
            note("claim.answer_lost", worker=worker, error=repr(error))
            return await self._settled(finishes, error), []
        return accepted, await self._and_hidden(claims, wants, lease=lease, worker=worker)

    async def _look_for_dead(self) -> None:
        """In passing: never a reason to wait for a connection, or to fail."""
        if self._database.pool.has_room and self._water.wants_to_know():
            with suppress(StoreError):
                self._water.tell(await self._database.read(count_dead))

    async def release(self, claims: Sequence[Claim], *, tx: object | None = None) -> list[bool]:
        if tx is not None:
            return await (await self._home.adopt(tx)).run(f.end(f.putting_back(claims)))
        return await self._home.endings.end(f.putting_back(claims))

    async def held_by(self, worker: str) -> list[Claim]:
        return await self._database.read(partial(c.held, worker))

    async def report(self, claim: Claim, *, progress: float | None = None, note: str | None = None) -> bool:
        make = partial(c.report, claim, progress=progress, note=note)
        return await self._database.write(make, repeatable=True)

    async def settle(self, job_id: str, token: int) -> bool:
        [accepted] = await self._database.read(partial(f.settle, [job_id], [token]))
        return accepted

    async def rescue(self, *, limit: int = 100, tx: object | None = None) -> list[Rescue]:
        if tx is not None:
            return await (await self._home.adopt(tx)).run(f.interrupt_ended(limit))
        rescued: list[Rescue] = []
        passed_over = 0  # their holders are finishing or renewing them, or another has their keys
        while len(rescued) < limit:
            found = await self._database.read(partial(f.find_ended, limit - len(rescued), passed_over))
            if not found:
                break
            part = await self._interrupt(found, None)
            rescued += part
            passed_over += len(found) - len(part)
        return rescued

    async def rescue_worker(self, worker: str, *, tx: object | None = None) -> list[Rescue]:
        """At once for all that nobody is about to end; the rest key by key, and what is still busy then waits for its lease."""
        if tx is not None:
            return await (await self._home.adopt(tx)).run(f.interrupt_all_of(worker))
        find = partial(f.find_of_worker, worker)
        found = await self._database.read(find)
        rescued = await self._interrupt(found, worker)
        if len(rescued) == len(found):
            return rescued
        for group in f.by_keys(await self._database.read(find)):
            make = partial(f.interrupt, group, worker=worker, waits=True)
            try:
                rescued += await self._database.atomic(make, begin=IMPATIENT)
            except Blocked as error:  # by one of them, perhaps
                free = await self._interrupt(group, worker)
                rescued += free
                note("rescue.passed_over", worker=worker, jobs=len(group) - len(free), error=str(error))
        return rescued

    async def _interrupt(self, found: Sequence[f.Interrupted], worker: str | None) -> list[Rescue]:
        rescued: list[Rescue] = []
        for start in range(0, len(found), CHUNK):
            part = found[start : start + CHUNK]
            rescued += await self._database.atomic(partial(f.interrupt, part, worker=worker))
        return rescued

    async def _finish_plain(self, finishes: Sequence[Finish]) -> list[bool]:
        """With those of others, unless another's open transaction has a row of theirs: that is waited for alone.

        So are those that have steps.
        """
        try:
            accepted = await self._plain.get().add(finishes)
        except Blocked:
            return await self._database.patience.wait(partial(self._finish_alone, finishes))
        with_steps = [f.ending(item) for item, ok in zip(finishes, accepted, strict=True) if ok is None]
        told = iter(await self._home.endings.end(with_steps) if with_steps else ())
        return [next(told) if ok is None else ok for ok in accepted]

    async def _finish_alone(self, finishes: Sequence[Finish]) -> list[bool]:
        try:
            return await self._database.atomic(partial(f.finish, finishes), urgent=True, begin=IMPATIENT)
        except CommitUnknown as unknown:
            return await self._settled(finishes, unknown)

    async def _finish_batch(self, finishes: Sequence[Finish]) -> Sequence[bool | None]:
        try:
            return await self._database.write(partial(f.finish_plain, finishes), urgent=True)
        except CommitUnknown as unknown:
            return await self._settled(finishes, unknown)

    async def _settled(self, finishes: Sequence[Finish], unknown: CommitUnknown) -> list[bool]:
        endings = [f.ending(item) for item in finishes]
        return await settled(self._database, endings, unknown, partial(f.finish, finishes))
