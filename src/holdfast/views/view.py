"""What a program holds of a view: its rows, also those that it has just caused, and how to build it anew."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

import msgspec

from holdfast.events.event import AnyEvent
from holdfast.jobs.blocking import twin
from holdfast.kernel.awaits import must_await_all
from holdfast.kernel.clock import monotonic
from holdfast.kernel.codec import decode_stored
from holdfast.kernel.errors import PayloadError, ViewBehind
from holdfast.kernel.names import check_seconds
from holdfast.store.bell import VIEWS
from holdfast.store.ports import Store
from holdfast.store.view_records import Aside, Checkpoint, ViewRow
from holdfast.views.goal import AtLeast, Goal
from holdfast.views.lag import Lag, lag_of
from holdfast.views.projection import Projection, key_text
from holdfast.views.projector import LEASE_NAME
from holdfast.views.rebuilding import rebuild

R = TypeVar("R")
_LOOK = 0.05  # seconds between looks without a hint


class Entry(msgspec.Struct, Generic[R], frozen=True, kw_only=True):
    """A row, with what is known of it."""

    key: str
    row: R
    version: int | None  # of the events' key that it is made of; None: of several, or of events without
    position: int  # of the newest event in it: it only grows, whatever the row is made of
    updated_at: float  # seconds since 1970, on the database's clock


@must_await_all("view")
class View(Generic[R]):
    """Made by `@hf.view(…)`. The function stays callable as it is: `view(row, event)` gives the next row."""

    def __init__(self, projection: Projection, store: Callable[[], Store]) -> None:
        self.projection, self._of = projection, store
        self.name = projection.name
        self.__doc__ = projection.function.__doc__

    def __call__(self, row: R | None, event: AnyEvent) -> R | None:
        found: R | None = self.projection.function(row, event)
        return found

    async def get(self, key: str | int, *, at_least: AtLeast | None = None, wait: float = 2.0) -> R | None:
        """The row of this key, or None.

        `at_least` is what `hf.emit` returned, an event, or a version: the row has it, or whatever came after it. Waits for that
        for up to `wait` seconds, then raises ViewBehind, whose `row` is the one that is there.
        """
        entry = await self.entry(key, at_least=at_least, wait=wait)
        return None if entry is None else entry.row

    async def entry(
        self, key: str | int, *, at_least: AtLeast | None = None, wait: float = 2.0
    ) -> Entry[R] | None:
        """The same, with the row's version and position."""
        name = key_text(key)
        if at_least is None:
            return self._entry(await self._store.views.get(self.name, name))
        return self._entry(await self._caught_up(name, at_least, check_seconds("wait", wait)))

    async def find(self, *, prefix: str = "", after: str | None = None, limit: int = 100) -> list[Entry[R]]:
        """Rows by key. `after` is the last key of one page: the next begins behind it."""
        found = await self._store.views.find(self.name, prefix=prefix, after=after, limit=limit)
        return [entry for row in found if (entry := self._entry(row)) is not None]

    async def lag(self) -> Lag | None:
        """How far it is behind what is published; None: nobody has run it yet."""
        return await lag_of(self._store, self.name)

    async def aside(self, *, limit: int = 100) -> list[Aside]:
        """Events that its function could not take, with the reason. Their rows wait for them."""
        return await self._store.views.aside(self.name, limit=limit)

    async def rebuild(self, *, partial: bool = False, actor: str = "code") -> Checkpoint:
        """Build it anew from the log, by its workers; the old rows serve until the new ones are as far.

        Refused when events are gone that the present rows have, unless it may be `partial`.
        """
        return await rebuild(self._store, self.name, partial=partial, actor=actor)

    @property
    def _store(self) -> Store:
        return self._of()

    def _entry(self, row: ViewRow | None) -> Entry[R] | None:
        if row is None or row.data is None:
            return None
        try:
            data: R = decode_stored(row.data, self.projection.row_type)
        except PayloadError as error:
            raise PayloadError(
                f"The row {row.key!r} of the view {self.name!r} was made by other code: {error} Rebuild the view."
            ) from error
        return Entry(
            key=row.key, row=data, version=row.version, position=row.position, updated_at=row.updated_at
        )

    # --- reading one's own writes ---

    async def _caught_up(self, key: str, at_least: AtLeast, wait: float) -> ViewRow | None:
        give_up = monotonic() + wait
        goal = Goal(
            self._store, self.name, key, at_least, source=key if self.projection.has_keys_of_events else None
        )
        while not await goal.is_reached():
            if (left := give_up - monotonic()) <= 0:
                entry = self._entry(goal.row)
                raise ViewBehind(
                    f"The view {self.name!r} is not as far as {goal.told} after {wait:g} s: {goal.why}.",
                    row=None if entry is None else entry.row,
                )
            await self._store.wakeups.wait((LEASE_NAME.format(self.name), VIEWS), min(left, _LOOK))
        return goal.row

    # --- for code without an event loop ---

    @property
    def _kept_in(self) -> Store:
        """Where it is kept."""
        return self._store

    get_sync = twin(get, "view")
    entry_sync = twin(entry, "view")
    find_sync = twin(find, "view")
    lag_sync = twin(lag, "view")
    aside_sync = twin(aside, "view")
    rebuild_sync = twin(rebuild, "view")

    def __repr__(self) -> str:
        return f"<View {self.name}>"
