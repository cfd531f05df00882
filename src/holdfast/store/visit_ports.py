"""What keeps the sessions of web pages can do: a store or a Redis, chosen by the program and never by who answers."""

from __future__ import annotations

from typing import Protocol

from holdfast.store.visit_records import NewVisit, Visit


class SharedVisits(Protocol):
    """All times are by the clock of whoever keeps them. One that is over is as if it had never been."""

    async def begin(
        self,
        visit: NewVisit,
        *,
        idle: float,
        last: float,
        replaces: str | None = None,
        tx: object | None = None,
    ) -> None:
        """Keep it from now on, for `idle` seconds without a sign of life and `last` seconds in all, in place of another."""

    async def get(self, visit_id: str) -> Visit | None: ...

    async def touch(self, visit_id: str, *, idle: float) -> bool:
        """A sign of life: it goes on for `idle` seconds, and not beyond its last one. False: it is over."""

    async def write(self, visit_id: str, data: str, *, version: int) -> bool:
        """Keep this data, when it still has the version that was read. False: it has not, or it is over."""

    async def end(self, visit_id: str) -> bool:
        """False: it was over."""

    async def end_of(
        self,
        principal: str,
        *,
        name: str | None = None,
        besides: str | None = None,
        tx: object | None = None,
    ) -> int:
        """End all of this person, at once and everywhere; only the one called `name`; or all `besides` this id."""

    async def find(self, principal: str, *, limit: int = 100) -> list[Visit]:
        """Those of this person that last, seen last first."""


class Visits(SharedVisits, Protocol):
    """And what only a database does."""

    async def secret(self, name: str, candidate: str) -> str:
        """The secret of this name, which all processes share: the candidate, when nobody has kept one yet."""

    async def prune(self, *, limit: int = 1000) -> int:
        """Forget what is over."""
