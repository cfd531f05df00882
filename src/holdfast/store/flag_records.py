"""Flags: what the program does or leaves, by a decision of a person that every process hears of."""

from __future__ import annotations

import msgspec

from holdfast.kernel.errors import UsageError
from holdfast.store.records import AuditEntry

MOST_FLAGS = 10_000  # with those for single tenants: every process keeps them all


class FlagRecord(msgspec.Struct, frozen=True):
    """One decision: for everyone, or for one tenant."""

    name: str
    tenant: str | None
    value: bool
    reason: str
    set_by: str
    set_at: float


class Flagged(msgspec.Struct, frozen=True):
    """All of them, as of one moment. The version grows with each change."""

    version: int
    flags: tuple[FlagRecord, ...]


class FlagChange(msgspec.Struct, frozen=True):
    """What a person decides. `value` None: the decision of before is taken back."""

    name: str
    tenant: str | None
    value: bool | None
    actor: str
    reason: str

    def entry(self, before: bool | None) -> AuditEntry:
        """Its audit row."""
        action = "flag.unset" if self.value is None else "flag.set"
        texts = [_json(self.tenant, before, None), _json(self.tenant, self.value, self.reason)]
        return AuditEntry(
            actor=self.actor, action=action, subject=f"flag:{self.name}", before=texts[0], after=texts[1]
        )

    def check_room(self, known: int) -> None:
        if known >= MOST_FLAGS:
            raise UsageError(
                f"There are {known:,} flags already, and every process keeps them all: {self.name!r} is not set. "
                "Unset those that nobody asks for any more."
            )


def _json(tenant: str | None, value: bool | None, reason: str | None) -> str:
    told = {"tenant": tenant, "value": value, "reason": reason}
    return msgspec.json.encode({name: each for name, each in told.items() if each is not None}).decode()
