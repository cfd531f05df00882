"""Frozen rows of idempotency keys: who may do what a key stands for, and what was answered."""

from __future__ import annotations

import msgspec

from holdfast.kernel.errors import HoldfastError
from holdfast.kernel.names import check_name


class KeyScope(msgspec.Struct, frozen=True):
    """Whose key it is: the same text from another tenant, person or route is another key."""

    tenant: str
    principal: str
    route: str

    def __post_init__(self) -> None:
        for kind in ("tenant", "principal", "route"):
            if (name := getattr(self, kind)) != "":  # empty means none: not every program has tenants
                msgspec.structs.force_setattr(self, kind, check_name(kind, name))


class KeyClaim(msgspec.Struct, frozen=True):
    """The right to do what an idempotency key stands for."""

    scope: KeyScope
    key: str
    token: int
    until: float


class KeyDone(msgspec.Struct, frozen=True):
    """It was done before; this is what was answered."""

    response: str  # JSON text


class KeyBusy(msgspec.Struct, frozen=True):
    """Someone is doing it now, and holds the key until then."""

    until: float


class KeyMismatch(msgspec.Struct, frozen=True):
    """The key was used with another request."""


NOT_ONE_OF_OURS = "A key is claimed in a transaction of this store that has not begun: store.transaction()."
LOST = "The key belongs to another by now. Nothing of this transaction was stored."


class KeyLost(HoldfastError):
    """The holder's lease has ended and another has the key: what was to commit with its answer is rolled back."""
