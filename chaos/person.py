"""The person on duty: decides about what is unknown after looking, and replays what died with its workers."""

from __future__ import annotations

import json
import time

from chaos import settings
from chaos.place import Place
from chaos.publishing import Client
from holdfast.store.records import JobRecord

ACTOR = "the person on duty"
# What may be dead here: it has killed three workers, or its steps were recorded by a newer version. All else is a failure.
_EXPECTED = ("its worker died under it", "the code has changed since")


class Person:
    def __init__(self, place: Place) -> None:
        self._place = place
        self._seen: dict[str, float] = {}  # by job: since when it is known to be unknown
        self._client: Client | None = None
        self.listed: set[str] = set()  # jobs that hf.unknown has listed
        self.replayed: set[str] = set()
        self.decided: dict[
            str, float
        ] = {}  # by job: when it was last decided or replayed, on the monotonic clock
        self.failed: dict[
            str, str
        ] = {}  # by job: why it is dead, when that is no one's fault but the program's

    async def turn(self) -> int:
        """Look once at what waits for a person; returns how many there are."""
        hf = self._place.hf
        unknown = await hf.unknown.find(limit=1000)
        for record in unknown:
            self.listed.add(record.id)
            await self._decide(record)
        dead = [each for each in await hf.dead.find(limit=1000) if each.id not in self.failed]
        for record in dead:
            await self._replay(record)
        return len(unknown) + len(dead)

    async def _decide(self, record: JobRecord) -> None:
        """What is on its way may still arrive: not before that has settled."""
        since = self._seen.setdefault(record.id, time.monotonic())
        if time.monotonic() - since < settings.SETTLE:
            return
        done = await self._was_done(record)
        if done is not None:
            result = json.loads(record.args)["item"] if done and record.task.startswith("publish") else None
            await self._place.hf.unknown.resolve(record.id, actor=ACTOR, done=done, result=result)
            self.decided[record.id] = time.monotonic()
            del self._seen[record.id]

    async def _was_done(self, record: JobRecord) -> bool | None:
        item = json.loads(record.args)["item"]
        if not record.task.startswith("publish"):
            return self._place.there.is_tallied(item)
        self._client = self._client or Client(self._place.folder)
        return await self._client.is_published(item)

    async def _replay(self, record: JobRecord) -> None:
        reason = record.reason or ""
        if any(word in reason for word in _EXPECTED):
            self.replayed.add(record.id)
            self.decided[record.id] = time.monotonic()
            await self._place.hf.dead.replay([record.id], actor=ACTOR)
        else:
            self.failed[record.id] = reason
