"""What a store does with flags. Each change leaves an audit row."""

from __future__ import annotations

from typing import Protocol

from holdfast.store.flag_records import Flagged


class Flags(Protocol):
    async def set(
        self,
        name: str,
        value: bool,
        *,
        tenant: str | None = None,
        actor: str,
        reason: str,
        tx: object | None = None,
    ) -> None:
        """For this tenant, or for everyone for whom nothing else is said."""

    async def unset(
        self, name: str, *, tenant: str | None = None, actor: str, reason: str, tx: object | None = None
    ) -> bool:
        """Forget that decision. False: there was none."""

    async def version(self) -> int:
        """It grows with each change, and tells whether there is anything new."""

    async def all(self) -> Flagged: ...
