"""The session of one request: what it knows, who has logged in, and logging in and out."""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping
from typing import Any, NamedTuple

import msgspec

from holdfast.jobs.blocking import Blocks, inner, portal_of
from holdfast.kernel.clock import recover
from holdfast.kernel.errors import PayloadError, StoreUnavailable, UsageError
from holdfast.kernel.randomness import random
from holdfast.kernel.show import show
from holdfast.store.ports import Store
from holdfast.store.visit_ports import SharedVisits
from holdfast.store.visit_records import Login, NewVisit, Visit, to_login
from holdfast.web.asgi import HasScope, Scope, scope_of
from holdfast.web.sessions.tokens import id_of, new_token

IN_SCOPE = "holdfast.session"
_TRIES, _REST, _LONGEST = 12, 0.01, 0.5  # to write over what others have written meanwhile; seconds between
_UNSEEN = 600.0  # seconds that a session of nobody lasts until its client has shown the cookie once
_MISSING = object()


class Terms(msgspec.Struct, frozen=True):
    """How long sessions last, in seconds: without a sign of life, and in all."""

    idle: float
    last: float


class Kept(msgspec.Struct, frozen=True):
    """Where sessions are kept, and on which terms."""

    store: Store
    visits: SharedVisits
    terms: Terms


class Client(msgspec.Struct, frozen=True):
    """From where it is used, to be shown to the person."""

    address: str | None
    agent: str | None


class _Before(NamedTuple):
    """What a session was before a login that may be rolled back."""

    token: str | None
    visit: Visit | None
    data: dict[str, Any]
    is_given: bool


class Session(MutableMapping[str, Any]):
    """`session["cart"] = [7]`: a mapping of JSON values, written when the answer begins. `principal` is who has logged in.

    Requests that run side by side keep each other's values, as long as they write different names.
    """

    def __init__(self, kept: Kept, client: Client, token: str | None, visit: Visit | None) -> None:
        self._store, self._visits, self._terms, self._client = kept.store, kept.visits, kept.terms, client
        self._token, self._visit = token, visit
        self._is_given = False  # the client shall get the token that it has not yet
        self._data: dict[str, Any] = {} if visit is None else msgspec.json.decode(visit.data)
        self._changes: dict[str, Any] = {}
        self._before: _Before | None = (
            None  # a login in a transaction, of which nobody knows yet whether it commits
        )
        self.blocking = BlockingSession(self)

    # --- who ---

    @property
    def principal(self) -> str | None:
        """Who has logged in; None: nobody."""
        return None if self._visit is None else self._visit.principal

    @property
    def tenant(self) -> str | None:
        return None if self._visit is None else self._visit.tenant

    async def login(self, principal: str, *, tenant: str | None = None, tx: Any = None) -> None:
        """This person has shown who he is. The session goes on under a new token. What it knew stays, unless somebody else was logged in.

        With `tx` it is kept when that commits.
        """
        token, data = new_token(), self._data
        if self.principal is not None and (self.principal, self.tenant) != (principal, tenant):
            data = {}  # it was somebody else's
        visit = self._new(id_of(token), principal, tenant, data)
        await self._begin(visit, tx)
        before = self._before or _Before(self._token, self._visit, self._data, self._is_given)
        self._data, self._before = data, None if tx is None else before
        self._go_on(token, visit)

    async def logout(self) -> None:
        """End this session, at once and for every process. It knows nothing from then on."""
        if self._visit is not None:
            await self._visits.end(self._visit.id)
        self._forget()

    async def logout_everywhere(self) -> int:
        """End all sessions of this person, this one too. Returns how many there were."""
        who = self.principal
        ended = 0 if who is None else await self._visits.end_of(who)
        self._forget()
        return ended

    async def logins(self) -> list[Login]:
        """Where this person is logged in, this session among them; seen last first."""
        if self._visit is None or self._visit.principal is None:
            return []
        found = await self._visits.find(self._visit.principal)
        return [to_login(each, this=self._visit.id) for each in found]

    async def end_login(self, name: str) -> bool:
        """End another session of this person by its name. False: it was over, or is not his."""
        who = self.principal
        return who is not None and await self._visits.end_of(who, name=name) > 0

    async def end_other_logins(self, *, tx: Any = None) -> int:
        """End all other sessions of this person, as after a change of the password. Returns how many there were."""
        if self._visit is None or self._visit.principal is None:
            return 0
        return await self._visits.end_of(self._visit.principal, besides=self._visit.id, tx=inner(tx))

    # --- what it knows ---

    def __getitem__(self, name: str) -> Any:
        return self._data[name]

    def __setitem__(self, name: str, value: Any) -> None:
        try:
            text = msgspec.json.encode(value)
        except (TypeError, ValueError, msgspec.ValidationError) as error:
            raise PayloadError(
                f"A session keeps what JSON can say; {name!r} is {show(value)} ({error})."
            ) from error
        self._data[name] = self._changes[name] = msgspec.json.decode(text)

    def __delitem__(self, name: str) -> None:
        del self._data[name]
        self._changes[name] = _MISSING

    def __iter__(self) -> Iterator[str]:
        return iter(self._data)

    def __len__(self) -> int:
        return len(self._data)

    async def save(self) -> None:
        """Write now what was changed. In a request that happens by itself, before the answer begins."""
        await self._look_back()
        for turn in range(_TRIES):
            if not self._changes:
                return
            if self._visit is None:
                await self._first_data()
                return
            text = msgspec.json.encode(self._data).decode()
            if await self._visits.write(self._visit.id, text, version=self._visit.version):
                self._visit = msgspec.structs.replace(self._visit, data=text, version=self._visit.version + 1)
                self._changes = {}
                return
            await recover(random() * min(_REST * 2**turn, _LONGEST))
            if not await self._read_again():
                return
        raise StoreUnavailable(
            "The data of a session was changed again and again by others. Nothing was stored."
        )

    async def _look_back(self) -> None:
        """A login whose transaction was rolled back is none: the client keeps the session that it had."""
        before, self._before = self._before, None
        if before is None or self._visit is None or await self._visits.get(self._visit.id) is not None:
            return
        self._token, self._visit, self._is_given = before.token, before.visit, before.is_given
        self._data = {
            name: value for name, value in {**before.data, **self._changes}.items() if value is not _MISSING
        }

    async def _read_again(self) -> bool:
        """Somebody else has written meanwhile: what he wrote under other names stays. False: it is over."""
        assert self._visit is not None
        self._visit = await self._visits.get(self._visit.id)
        if self._visit is None:  # ended or replaced elsewhere, and nothing brings it back
            # The client keeps its cookie: it may be a newer one, of a login beside this request.
            self._data, self._changes = {}, {}
            return False
        self._data = msgspec.json.decode(self._visit.data)
        for name, value in self._changes.items():
            if value is _MISSING:
                self._data.pop(name, None)
            else:
                self._data[name] = value
        return True

    async def _first_data(self) -> None:
        """Under a token that we have made: not under one that somebody may have given to the client."""
        token = new_token()
        visit = self._new(id_of(token), None, None, self._data)
        await self._begin(visit, None)
        self._go_on(token, visit)

    # --- its token ---

    @property
    def token(self) -> str:
        """What the cookie has, or will have."""
        if self._token is None:
            self._token, self._is_given = new_token(), True
        return self._token

    @property
    def is_to_be_given(self) -> bool:
        return self._is_given

    @property
    def lasts(self) -> float:
        """Seconds for which the client keeps its cookie."""
        return self._terms.idle if self._visit is None else self._terms.last

    # --- steps ---

    def _new(
        self, visit_id: str, principal: str | None, tenant: str | None, data: dict[str, Any]
    ) -> NewVisit:
        if principal is not None and not isinstance(principal, str):
            raise UsageError(f"The principal is the text by which you know a person, not {show(principal)}.")
        client = self._client
        return NewVisit(
            id=visit_id,
            principal=principal,
            tenant=tenant,
            data=msgspec.json.encode(data).decode(),
            address=client.address,
            agent=client.agent,
        )

    async def _begin(self, visit: NewVisit, tx: Any) -> None:
        old = None if self._visit is None else self._visit.id
        idle, last = self._terms.idle, self._terms.last
        if visit.principal is None:  # who sends requests without cookies makes no sessions that last
            idle = min(idle, _UNSEEN)
        await self._visits.begin(visit, idle=idle, last=last, replaces=old, tx=inner(tx))

    def _go_on(self, token: str, visit: NewVisit) -> None:
        self._token, self._is_given, self._changes = token, True, {}
        given = msgspec.structs.asdict(visit)
        self._visit = Visit(**given, version=1, created_at=0.0, seen_at=0.0, until=0.0, last=0.0)

    def _forget(self) -> None:
        self._before = None
        self._visit, self._data, self._changes = None, {}, {}
        self._token, self._is_given = new_token(), True

    def __repr__(self) -> str:
        return f"<Session of {self.principal or 'nobody'}>"


class BlockingSession:
    """`session.blocking`: the verbs of a session for handlers that are plain functions."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def login(self, principal: str, *, tenant: str | None = None, tx: Any = None) -> None:
        self._made()(self._session.login)(principal, tenant=tenant, tx=tx)

    def logout(self) -> None:
        self._made()(self._session.logout)()

    def logout_everywhere(self) -> int:
        return self._made()(self._session.logout_everywhere)()

    def logins(self) -> list[Login]:
        return self._made()(self._session.logins)()

    def end_login(self, name: str) -> bool:
        return self._made()(self._session.end_login)(name)

    def end_other_logins(self, *, tx: Any = None) -> int:
        return self._made()(self._session.end_other_logins)(tx=tx)

    def _made(self) -> Blocks:
        return Blocks(portal_of(self._session._store), "session")  # noqa: SLF001  the other half of it


def session_of(request: HasScope | Scope) -> Session:
    """The session of this request: `session = session_of(request)`."""
    found = scope_of(request).get(IN_SCOPE)
    if not isinstance(found, Session):
        raise UsageError("session_of needs Sessions around the app: app = Sessions(app, hf).")
    return found
