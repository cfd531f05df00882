"""What a store does for alerts: it finds what holds, keeps what programs say, and keeps what was told."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from holdfast.store.alert_records import AlertRecord, Looked
from holdfast.store.records import Lease


class Alerts(Protocol):
    async def say(
        self,
        kind: str,
        cause: str,
        *,
        due: float | None = None,
        expires: float | None = None,
        tx: object | None = None,
    ) -> None:
        """A program says that this holds: from now on, or from `due` on. Said again, its number grows by one.

        With `expires` the number is 1 until that moment and 2 from then on, and what is said last counts.
        """

    async def unsay(self, kind: str, cause: str, *, tx: object | None = None) -> bool:
        """It does not hold any more. False: nobody has said that it does."""

    async def look(self, *, patience: float) -> Looked:
        """What holds: dead and unknown jobs by task, quarantined events by type, and what programs say.

        Unknown jobs that will be looked up again by themselves count after `patience` seconds.
        """

    async def standing(
        self, lease: Lease | None = None, *, tx: object | None = None
    ) -> list[AlertRecord] | None:
        """The alerts that are open. With a lease nobody else can have it until the transaction ends; None: it is lost."""

    async def write(self, alerts: Sequence[AlertRecord], *, tx: object | None = None) -> None:
        """Keep these, new or changed. The kind, the cause and the beginning of one never change."""

    async def find(self, *, limit: int = 100) -> list[AlertRecord]:
        """Open ones first, then those that are over, each newest first."""

    async def prune(self, *, keep: float, limit: int = 1000) -> int:
        """Forget alerts that were over more than `keep` seconds ago."""
