"""Sessions: middleware that gives each request the session of its cookie, and refuses what other sites send."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Protocol, TypeAlias

from holdfast.kernel.clock import monotonic
from holdfast.kernel.errors import TROUBLE, UsageError
from holdfast.kernel.names import check_seconds
from holdfast.kernel.show import show
from holdfast.store.ports import Store
from holdfast.store.visit_ports import SharedVisits
from holdfast.store.visit_records import AGENT_LIMIT, Visit
from holdfast.web.asgi import App, Message, Receive, Scope, Send, header
from holdfast.web.idempotency.whose import PRINCIPAL, TENANT
from holdfast.web.limits.addresses import Addresses
from holdfast.web.problems import Problem, problem_of, tell_failure
from holdfast.web.routes import Routes
from holdfast.web.sessions.cookie import Cookie, SameSite
from holdfast.web.sessions.forms import told_token
from holdfast.web.sessions.places import Origins, is_safe
from holdfast.web.sessions.session import IN_SCOPE, Client, Kept, Session, Terms
from holdfast.web.sessions.tokens import form_token, id_of, is_same, new_secret

CSRF = "holdfast.csrf"  # in the scope: a function that gives the token for forms of this request
_DAY = 86_400.0
_SIGN = 60.0  # seconds between two signs of life that are written
_KNOWN = 10_000  # sessions of which a process remembers when it has written one


class Logins(Protocol):
    @property
    def visits(self) -> SharedVisits: ...


class Program(Protocol):
    @property
    def store(self) -> Store: ...
    @property
    def logins(self) -> Logins: ...


class Sessions:
    """Middleware: `app = Sessions(app, hf)`; in handlers `session = session_of(request)`.

    A session ends after `idle` seconds without a request, and `last` seconds after it has begun. `secure=False` is for development
    over plain HTTP alone. `same_site="strict"` keeps the cookie back also when somebody follows a link to here; not with logins by
    OAuth. Requests that change something need the form's token (a field `csrf_token`, or the header `X-CSRF-Token`)
    when they have the cookie, and come from our own pages or from `origins`; `exempt` names routes that
    are asked by other programs, such as `"POST /webhooks/{rest:path}"`. `proxies` are as for RateLimits.
    """

    def __init__(
        self,
        app: App,
        hf: Program,
        *,
        idle: float = _DAY,
        last: float = 30 * _DAY,
        secure: bool = True,
        same_site: SameSite = "lax",
        exempt: Sequence[str] = (),
        origins: Sequence[str] = (),
        proxies: Sequence[str] = (),
    ) -> None:
        if same_site not in ("lax", "strict"):
            raise UsageError(f'same_site is "lax" or "strict", not {show(same_site)}.')
        self._app, self._hf = app, hf
        self._terms = Terms(check_seconds("idle", idle, minimum=1), check_seconds("last", last, minimum=1))
        self._cookie = Cookie(secure, same_site)
        self._exempt, self._origins, self._addresses = (
            Routes(tuple(exempt)),
            Origins(origins),
            Addresses(proxies),
        )
        self._secret: str | None = None
        self._signs: dict[str, float] = {}  # by session: when the next sign of life is due

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            await self._socket(scope, receive, send)
        elif scope["type"] == "http":
            await self._request(scope, receive, send)
        else:
            await self._app(scope, receive, send)

    async def _request(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            token = self._token(scope)
            refusal, receive = await self._refusal(scope, receive, token)
            session = None if refusal is not None else await self._session(scope, token)
        except TROUBLE as error:
            await _answer(scope, send, error)
            return
        if session is None:
            await (refusal or _FOREIGN).send(scope, send)
            return
        await _Exchange(self._app, session, self._cookie).run(await self._with(scope, session), receive, send)

    def _token(self, scope: Scope) -> str | None:
        """What the cookie has. Where other sites may send requests, theirs are nobody's, whatever cookie they bring."""
        is_open = not is_safe(scope) and self._exempt.find(scope) is not None
        return None if is_open and self._origins.are_foreign(scope) else self._cookie.read(scope)

    async def _socket(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._origins.is_foreign_socket(scope):
            await send({"type": "websocket.close", "code": 1008, "reason": "another origin"})
            return
        session = await self._session(scope, self._cookie.read(scope))
        await self._app(await self._with(scope, session), receive, send)

    async def _refusal(
        self, scope: Scope, receive: Receive, token: str | None
    ) -> tuple[Problem | None, Receive]:
        """Why it may have been made by another site; None: it was not."""
        if is_safe(scope) or self._exempt.find(scope) is not None:
            return None, receive
        if self._origins.are_foreign(scope):
            return _FOREIGN, receive
        if token is None:  # whoever it is, he gets here what anybody gets
            return None, receive
        told, receive = await told_token(scope, receive)
        wanted = form_token(await self._form_secret(), token)
        return (None if told is not None and is_same(told, wanted) else _OUTDATED), receive

    async def _form_secret(self) -> str:
        """Kept in the store, so that forms stay good when a process starts anew, and whichever process gets them."""
        if self._secret is None:
            self._secret = await self._hf.store.visits.secret("forms", new_secret())
        return self._secret

    async def _session(self, scope: Scope, token: str | None) -> Session:
        visit = None if token is None else await self._hf.logins.visits.get(id_of(token))
        if visit is not None:
            await self._sign(visit)
        agent = header(scope, b"user-agent")
        client = Client(self._addresses.key(scope), agent and _plain(agent))
        return Session(Kept(self._hf.store, self._hf.logins.visits, self._terms), client, token, visit)

    async def _sign(self, visit: Visit) -> None:
        """Now and then: a write for each request would cost more than most requests."""
        now = monotonic()
        if now < self._signs.get(visit.id, 0.0):
            return
        if len(self._signs) >= _KNOWN:
            self._signs.clear()
        self._signs[visit.id] = now + min(_SIGN, self._terms.idle / 10)
        with suppress(*TROUBLE):  # it lasts a while without
            await self._hf.logins.visits.touch(visit.id, idle=self._terms.idle)

    async def _with(self, scope: Scope, session: Session) -> Scope:
        secret = await self._form_secret()
        state = {**scope.get("state", {})}
        if session.principal is not None:
            state |= {PRINCIPAL: session.principal, TENANT: session.tenant}
        return {
            **scope,
            "state": state,
            IN_SCOPE: session,
            CSRF: lambda: form_token(secret, session.token),
        }


class _Exchange:
    """One request: what its session has changed is written before the answer begins, which brings the cookie."""

    def __init__(self, app: App, session: Session, cookie: Cookie) -> None:
        self._app, self._session, self._cookie = app, session, cookie
        self._is_over = False  # the answer is one of ours, and the app's comes too late

    async def run(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def watched(message: Message) -> None:
            if message["type"] == "http.response.start":
                try:
                    await self._session.save()
                except TROUBLE as error:
                    self._is_over = True
                    await _answer(scope, send, error)
                message = self._begun(message)
            if not self._is_over:
                await send(message)

        await self._app(scope, receive, watched)

    def _begun(self, message: Message) -> Message:
        session = self._session
        fields = list(message.get("headers", ()))
        if session.is_to_be_given:
            fields = [
                *_kept_from_others(fields, b"no-store"),
                self._cookie.given(session.token, session.lasts),
            ]
        elif session.principal is not None and not _says(fields, b""):
            fields.append((b"cache-control", b"private"))
        return {**message, "headers": fields}


Fields: TypeAlias = list[tuple[bytes, bytes]]


def _kept_from_others(fields: Fields, instead: bytes) -> Fields:
    """No cache between us and the client gives this cookie to somebody else, whatever the app says of its page."""
    if _says(fields, b"no-store") or _says(fields, b"private"):
        return fields
    return [pair for pair in fields if pair[0].lower() != b"cache-control"] + [(b"cache-control", instead)]


def _says(fields: Fields, word: bytes) -> bool:
    return any(name.lower() == b"cache-control" and word in value.lower() for name, value in fields)


async def _answer(scope: Scope, send: Send, error: BaseException) -> None:
    problem = problem_of(error)
    tell_failure(scope, problem, error)
    await problem.send(scope, send)


def _plain(agent: str) -> str:
    return "".join(letter if letter.isprintable() else " " for letter in agent[:AGENT_LIMIT])


_FOREIGN = Problem(
    status=403,
    title="This request came from another site",
    code="CROSS_SITE_REQUEST",
    detail="Only our own pages may send it.",
)
_OUTDATED = Problem(
    status=403,
    title="This page is too old",
    code="FORM_TOKEN_WRONG",
    detail="Its form has no token, or that of another session. Load the page again, and send it once more.",
)
