"""End claimed jobs for many callers: those whose keys are free together and at once; the others wait by key.

A key may be held by someone's open transaction for long. For each such key there is one line, and its first in line asks
for all of them; nobody else waits.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

from holdfast.kernel.clock import monotonic
from holdfast.kernel.errors import CommitUnknown
from holdfast.kernel.loops import PerLoop
from holdfast.kernel.spawn import spawn
from holdfast.store.batching import Batcher, is_one_items_fault
from holdfast.store.parts import in_parts, partly
from holdfast.store.postgres import finishes as f
from holdfast.store.postgres.connection import IMPATIENT, Database
from holdfast.store.postgres.failures import Blocked
from holdfast.store.postgres.locks import Lock
from holdfast.store.postgres.patience import LIMIT
from holdfast.store.postgres.promotion import CHUNK
from holdfast.store.postgres.settling import settled

MANY = 1_000  # jobs without keys in one transaction
Answer: TypeAlias = bool | Lock  # whether it was accepted, or the lock that it lacks


@dataclass(frozen=True, slots=True)
class Place:
    """In the line for one key."""

    ending: f.Ending
    answer: asyncio.Future[Answer]
    give_up: float  # on the monotonic clock


class Endings:
    def __init__(self, database: Database) -> None:
        self._database = database
        self._together: PerLoop[Batcher[f.Ending, Answer]] = PerLoop(
            lambda: Batcher(self._write, limit=CHUNK, name="end")
        )
        self._lines: PerLoop[dict[Lock, list[Place]]] = PerLoop(dict)

    async def end(self, endings: Sequence[f.Ending]) -> list[bool]:
        self._database.pool.check()
        size = CHUNK if any(item.is_keyed for item in endings) else MANY
        answers = await in_parts(endings, size, self._end_free)
        late = [
            self._wait(item, answer)
            for item, answer in zip(endings, answers, strict=True)
            if isinstance(answer, Lock)
        ]
        if not late:
            return [answer is True for answer in answers]
        waited = await asyncio.gather(*late, return_exceptions=True)
        for failure in waited:
            if isinstance(failure, BaseException):
                number = len(answers) - sum(isinstance(answer, BaseException) for answer in waited)
                raise partly(number, len(answers), failure) if number else failure
        told = iter(waited)
        return [(next(told) if isinstance(answer, Lock) else answer) is True for answer in answers]

    async def _end_free(self, endings: Sequence[f.Ending]) -> list[Answer]:
        try:
            return await self._together.get().add(endings)
        except Blocked:  # by someone who has a row of the batch: from now on each caller is by itself
            return await self._database.patience.wait(partial(self._write, endings))

    async def _write(self, endings: Sequence[f.Ending], *, first: Lock | None = None) -> list[Answer]:
        make = partial(f.end_free, endings, first=first)
        try:
            return await self._database.atomic(make, urgent=True, begin=IMPATIENT)
        except CommitUnknown as unknown:
            return [*await settled(self._database, endings, unknown, partial(f.end, endings))]

    # Who lacks a lock.

    async def _wait(self, ending: f.Ending, lock: Lock) -> bool:
        give_up = monotonic() + LIMIT
        answer: Answer = lock
        while isinstance(answer, Lock):
            answer = await self._join(answer, ending, give_up)
        return answer

    async def _join(self, lock: Lock, ending: f.Ending, give_up: float) -> Answer:
        place = Place(ending, asyncio.get_running_loop().create_future(), give_up)
        lines = self._lines.get()
        line = lines.get(lock)
        if line is None:
            line = lines[lock] = [place]
            serving = spawn(self._serve(lock), name="end:line")
            serving.add_done_callback(lambda _: self._left(lock, line))
        else:
            line.append(place)
        return await place.answer

    async def _serve(self, lock: Lock) -> None:
        """Until nobody is in line."""
        lines = self._lines.get()
        line = lines[lock]
        while line:
            await self._serve_some(lock, line[:CHUNK])
            line[:] = [place for place in line if not place.answer.done()]
        del lines[lock]  # now: whoever comes next begins a line of its own

    def _left(self, lock: Lock, line: list[Place]) -> None:
        """It was cancelled, before its first step even, or has failed."""
        lines = self._lines.get()
        if lines.get(lock) is line:
            del lines[lock]
            told = "The wait for a key was given up: its task has ended. It happened or it did not."
            _fail(line, CommitUnknown(told))

    async def _serve_some(self, lock: Lock, places: Sequence[Place]) -> None:
        try:
            async with self._database.patience.turn:
                answers = await self._write([place.ending for place in places], first=lock)
        except Blocked as error:
            _fail([place for place in places if monotonic() >= place.give_up], error)
        except Exception as error:  # noqa: BLE001  it is the answer to who waits
            if len(places) == 1 or not is_one_items_fault(error):
                _fail(places, error)
                return
            for place in places:
                await self._serve_some(lock, [place])
        else:
            for place, answer in zip(places, answers, strict=True):
                if not place.answer.done():  # or its caller has gone
                    place.answer.set_result(answer)


def _fail(places: Sequence[Place], error: Exception) -> None:
    for place in places:
        if not place.answer.done():
            place.answer.set_exception(error)
