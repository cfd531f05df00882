"""Sessions of people on web pages, as they are kept. The store calls them visits, since its databases have sessions, too."""

from __future__ import annotations

import msgspec

from holdfast.kernel.names import check_name, check_text

DATA_LIMIT = 64 * 1024  # bytes of JSON
AGENT_LIMIT = 300  # characters of what a browser calls itself
_NAME_LENGTH = 16


class NewVisit(msgspec.Struct, frozen=True, kw_only=True):
    """`id` is the SHA-256 of what the cookie has, in hex: who reads the database cannot take anybody's place."""

    id: str
    principal: str | None = None
    tenant: str | None = None
    data: str = "{}"  # a JSON object
    address: str | None = None
    agent: str | None = None

    def __post_init__(self) -> None:
        check_name("visit", self.id)
        for kind in ("principal", "tenant", "address"):
            if (name := getattr(self, kind)) is not None:
                check_name(kind, name)
        check_text("data", self.data, DATA_LIMIT)
        if self.agent is not None:
            check_text("agent", self.agent, 4 * AGENT_LIMIT)


class Visit(msgspec.Struct, frozen=True, kw_only=True):
    """One that lasts. Times are seconds since 1970 on the database's clock."""

    id: str
    principal: str | None
    tenant: str | None
    data: str
    version: int  # of the data: it grows with each write
    address: str | None
    agent: str | None
    created_at: float
    seen_at: float
    until: float  # without another sign of the person
    last: float  # whatever happens

    @property
    def name(self) -> str:
        """What people call it by: the beginning of its id, which opens nothing."""
        return self.id[:_NAME_LENGTH]


class Login(msgspec.Struct, frozen=True, kw_only=True):
    """One session of a person, as a page shows it. `name` opens nothing. Times are seconds since 1970."""

    name: str
    principal: str
    tenant: str | None
    address: str | None
    agent: str | None
    created_at: float
    seen_at: float
    until: float
    is_this: bool = False  # the one that asks


def to_login(visit: Visit, *, this: str | None = None) -> Login:
    return Login(
        name=visit.name,
        principal=visit.principal or "",
        tenant=visit.tenant,
        address=visit.address,
        agent=visit.agent,
        created_at=visit.created_at,
        seen_at=visit.seen_at,
        until=visit.until,
        is_this=visit.id == this,
    )
