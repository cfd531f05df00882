"""Flags in the memory of this process: asking costs nothing, and what a person decides arrives within two seconds."""

from __future__ import annotations

import asyncio

from holdfast.kernel.clock import look_after, patience
from holdfast.kernel.forks import tell_child
from holdfast.kernel.randomness import jittered
from holdfast.kernel.spawn import end, spawn
from holdfast.kernel.telemetry import note
from holdfast.store.flag_ports import Flags
from holdfast.store.flag_records import FlagRecord

_EVERY = 1.0  # seconds between two looks
_PATIENCE = 2.0  # seconds that a question waits for the first look, and no other question after that


class FlagCopy:
    """All flags, as they were a moment ago. It looks again and again from the first question on, until it is stopped.

    When the store does not answer, what was known last goes on to count; when nothing was known yet, the default does.
    """

    def __init__(self, flags: Flags) -> None:
        self._flags = flags
        self._version = -1
        self._known: dict[tuple[str, str | None], bool] = {}
        self._begun = self._taken = 0  # looks, numbered as they begin; and the last of them that was taken
        self._looking: asyncio.Task[None] | None = None
        self._seen = asyncio.Event()  # the first look is over, however it ended
        tell_child(self)

    def forked(self) -> None:
        self._looking = None

    async def ask(self, name: str, tenant: str | None, *, default: bool) -> bool:
        looking = self._on_the_watch()
        if not self._seen.is_set():  # also for who asks while another's question has begun it
            await self._first_look(looking)
        if tenant is not None and (found := self._known.get((name, tenant))) is not None:
            return found
        return self._known.get((name, None), default)

    async def _first_look(self, looking: asyncio.Task[None]) -> None:
        is_here, seen = looking.get_loop() is asyncio.get_running_loop(), self._seen
        try:
            async with patience(_PATIENCE):
                await (seen.wait() if is_here else self.look())
        except TimeoutError:
            note("flags.not_read", error=f"the database did not answer within {_PATIENCE:g} s")
            if is_here:
                seen.set()

    async def look(self) -> None:
        """See what is new. It never raises: what was known last counts on, and the next look is near."""
        self._begun += 1
        number = self._begun
        try:
            await self._look(number)
        except Exception as error:  # noqa: BLE001  whatever it is
            note("flags.not_read", error=repr(error))

    async def _look(self, number: int) -> None:
        if await self._flags.version() == self._version:
            return
        found = await self._flags.all()
        if number < self._taken:  # one that began later has been here, and what this one has read is older
            return
        self._known = {(each.name, each.tenant): each.value for each in found.flags}
        self._version, self._taken = found.version, number

    async def find(self) -> list[FlagRecord]:
        return list((await self._flags.all()).flags)

    def _on_the_watch(self) -> asyncio.Task[None]:
        """Who looks: one for the process, whichever loop it runs on."""
        task = self._looking
        if task is None or task.done() or not task.get_loop().is_running():
            self._seen = asyncio.Event()
            self._looking = task = spawn(self._look_on(self._seen), name="flags")
        return task

    async def _look_on(self, seen: asyncio.Event) -> None:
        try:
            while True:
                await self.look()
                seen.set()
                await look_after(jittered(_EVERY))
        finally:
            seen.set()

    async def stop(self) -> None:
        task, self._looking = self._looking, None
        if task is not None and task.get_loop() is asyncio.get_running_loop():
            await end(task)
        self._version = -1  # another time begins with a look
