"""A caller: enqueues and emits, most often together with a row of its own, and keeps a journal of what it was told.

`python -m chaos.caller`. It asks for several at once, so that commits are shared. Some transactions it rolls back.
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
from typing import Any

import asyncpg

from chaos import announcing, settings
from chaos.journal import Journal
from chaos.program import hf
from holdfast.kernel.errors import CommitUnknown, HoldfastError
from holdfast.runtime.inside import inside

_AT_ONCE = 3
_DECLINED = 0.15  # of those with a transaction are rolled back
_BARE = 0.25  # are enqueued without a transaction
_LONGEST = 0.7  # seconds that a job takes


class Declined(Exception):
    """The caller changes its mind."""


class Caller:
    def __init__(self, name: str) -> None:
        self._name = name
        self._journal = Journal(settings.caller_journal(settings.folder(), name))
        self._kinds = os.environ[settings.KINDS].split(",")
        self._pause = _AT_ONCE / float(os.environ[settings.RATE])
        self._left = int(os.environ.get(settings.COUNT, "0")) or 10**9
        self._number = 0
        self._chance = random.Random(name)
        self.leaving = False

    async def run(self) -> None:
        async with hf:
            await asyncio.gather(*(self._ask_on() for _ in range(_AT_ONCE)))

    async def _ask_on(self) -> None:
        while self._left > 0 and not self.leaving:
            self._number += 1
            await self._ask(f"{self._name}-{self._number}", self._chance.choice(self._kinds))
            await asyncio.sleep(self._pause * self._chance.uniform(0.5, 1.5))

    async def _ask(self, item: str, kind: str) -> None:
        bare, declined = self._chance.random() < _BARE, self._chance.random() < _DECLINED
        given = {"item": item, "seconds": self._chance.uniform(0.05, _LONGEST)}
        self._journal.write(item=item, kind=kind, bare=bare, said="asked")
        try:
            handle = await (_enqueue(kind, given) if bare else _order(kind, given, declined=declined))
        except Declined:
            self._journal.write(item=item, kind=kind, bare=bare, said="rolled back")
        except CommitUnknown as error:
            self._journal.write(item=item, kind=kind, bare=bare, said="unknown", error=repr(error))
        except (
            HoldfastError,
            asyncpg.PostgresError,
        ) as error:  # its own statement fails in the driver's words
            self._journal.write(item=item, kind=kind, bare=bare, said="refused", error=repr(error))
        else:
            self._left -= 1
            self._journal.write(item=item, kind=kind, bare=bare, said="acknowledged", job=handle.id)


async def _enqueue(kind: str, given: dict[str, Any]) -> Any:
    return await _asked(kind, given, None)


async def _order(kind: str, given: dict[str, Any], *, declined: bool) -> Any:
    async with hf.transaction() as tx:
        await tx.execute("INSERT INTO orders (item) VALUES ($1)", given["item"])
        handle = await _asked(kind, given, tx)
        if declined:
            raise Declined
    return handle


async def _asked(kind: str, given: dict[str, Any], tx: Any) -> Any:
    """A job of this kind, or an event."""
    if kind == announcing.KIND:
        return await announcing.announce(hf, given["item"], tx=tx)
    task: Any = inside(hf).registry.get(kind)
    return await (task if tx is None else task.options(tx=tx)).enqueue(**given)


async def main() -> None:
    caller = Caller(os.environ[settings.CALLER])
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, lambda: setattr(caller, "leaving", True))
    await caller.run()


if __name__ == "__main__":
    asyncio.run(main())
