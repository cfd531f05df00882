"""`hf.vault`: the vault with the program's keys, the columns that are sealed, and the job that brings them under a new key."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol

from holdfast.jobs.control import Reject, Retry
from holdfast.jobs.handle import Handle
from holdfast.jobs.job import Job
from holdfast.kernel.awaits import must_await_all
from holdfast.kernel.errors import UsageError
from holdfast.store.ports import Tx
from holdfast.vault.keyring import VARIABLE, Keyring
from holdfast.vault.resealing import SealedColumn, count_by_key, reseal_page
from holdfast.vault.vault import Vault

TASK = "holdfast.vault.rotate"
_AGAIN = 30.0  # seconds after which another worker may take the rotation, or this one with other keys
_SHOWN = 20  # rows that do not open, in the error


class _Program(Protocol):
    """As much of Holdfast as this needs."""

    def task(self, /, **options: Any) -> Callable[[Any], Any]: ...
    def transaction(self) -> AbstractAsyncContextManager[Tx]: ...


@must_await_all("hf.vault")
class ProgramVault(Vault):
    """A Vault that reads its keys when they are first needed: `Holdfast(keys=…)`, else HOLDFAST_KEYS."""

    def __init__(self, program: _Program, keys: Keyring | str | None) -> None:
        self._program = program
        self._ring = Keyring.read(keys) if isinstance(keys, str) else keys
        self._columns: dict[str, SealedColumn] = {}
        self._task: Any = None

    def keyring(self) -> Keyring:
        if self._ring is None:
            self._ring = Keyring.from_environment()
        return self._ring

    def check(self) -> None:
        """Whether the keys that were given are keys: said before work begins. None at all are needed where no secret is opened."""
        if self._ring is None and os.environ.get(VARIABLE):
            self.keyring()

    @property
    def columns(self) -> tuple[SealedColumn, ...]:
        return tuple(self._columns.values())

    def column(self, table: str, column: str, *, row: str = "id", tenant: str | None = None) -> SealedColumn:
        """Say that this column keeps sealed text, so that `rotate` knows it. `row` and `tenant` are columns of the same table."""
        found = SealedColumn(table, column, row, tenant)
        if self._columns.setdefault(found.name, found) != found:
            raise UsageError(
                f"The sealed column {found.name} is declared twice, with other columns for row or tenant."
            )
        if self._task is None:
            self._task = self._declared()
        return found

    def _declared(self) -> Any:
        @self._program.task(name=TASK, unique=TASK)
        async def rotate(job: Job, key: str | None = None) -> int:
            self._must_seal_under(key)
            return await self._rotate(job)

        return rotate

    async def rotate(self, *, queue: str = "default", tx: object | None = None) -> Handle[int]:
        """Enqueue the job that seals all declared columns under the current key. One at a time; it may be killed and goes on."""
        if self._task is None:
            raise UsageError(
                'No sealed column is declared. Say hf.vault.column("accounts", "refresh_token") first.'
            )
        options = {"queue": queue} if tx is None else {"queue": queue, "tx": tx}
        handle: Handle[int] = await self._task.options(**options).enqueue(key=self._known_current())
        return handle

    def _known_current(self) -> str | None:
        """None: who asks for the rotation needs no keys, and then the worker's count."""
        return self.keyring().current if self._ring is not None or os.environ.get(VARIABLE) else None

    def _must_seal_under(self, key: str | None) -> None:
        """A worker that was not started again since would bring what is new under the old key."""
        if key not in (None, current := self.keyring().current):
            raise Retry(
                after=_AGAIN,
                error=f"The rotation is to the key {key!r}, and in this worker the current one is {current!r}. Give it the HOLDFAST_KEYS of the "
                "others, and start it again.",
            )

    async def counts(self) -> dict[str, dict[str, int]]:
        """For each declared column, how many rows each key has sealed; rows that no key of the keyring sealed are under ""."""
        async with self._program.transaction() as tx:
            return {each.name: await count_by_key(tx, each, self.keyring().ids) for each in self.columns}

    async def _rotate(self, job: Job) -> int:
        total, broken = 0, []
        for position, column in enumerate(self.columns):
            last, more = None, True
            while more:
                async with self._program.transaction() as tx:
                    page = await reseal_page(tx, self, column, last)
                total, last, more = total + page.resealed, page.last, page.last is not None
                broken += [f"{column.name} of {row}" for row in page.broken]
                await job.heartbeat(
                    progress=position / len(self.columns), note=f"{column.name}: {total} sealed anew"
                )
        if broken:
            raise Reject(
                f"{total} values were sealed anew; {len(broken)} do not open: {', '.join(broken[:_SHOWN])}. "
                "Look at these rows, and rotate again."
            )
        return total

    def __repr__(self) -> str:
        return f"Vault({self._ring or 'keys not read yet'!r})"
