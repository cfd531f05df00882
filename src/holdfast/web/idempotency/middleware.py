"""IdempotencyKeys: the ASGI middleware. One of all requests with a key is run; the others are answered as it was."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import TypeAlias

from holdfast.kernel.clock import monotonic, sleep, timeout
from holdfast.kernel.errors import TROUBLE, UsageError
from holdfast.kernel.loops import call_in_thread
from holdfast.kernel.names import check_int, check_seconds
from holdfast.kernel.randomness import jittered
from holdfast.kernel.telemetry import note
from holdfast.store.idempotency import KeyBusy, KeyClaim, KeyDone, KeyMismatch, KeyScope
from holdfast.web.asgi import App, Message, Receive, Scope, Send, path_of
from holdfast.web.idempotency.answers import HEADERS, NEVER, Answer, unpack
from holdfast.web.idempotency.body import IN_MEMORY, Body, Gone, TooLarge
from holdfast.web.idempotency.claiming import Claiming, Elsewhere
from holdfast.web.idempotency.exchange import IN_SCOPE, Exchange, Program
from holdfast.web.idempotency.fingerprint import fingerprint
from holdfast.web.idempotency.flights import Asked, Flight, Flights
from holdfast.web.idempotency.key import MISSING, read_key
from holdfast.web.idempotency.run import Run, Terms
from holdfast.web.idempotency.whose import WhoIs, name_of, principal_of, tenant_of
from holdfast.web.problems import Problem, problem_of, tell_failure
from holdfast.web.routes import Routes

Receiver: TypeAlias = Callable[[], Receive]  # each run of the handler receives the body anew
METHODS = frozenset({"POST", "PATCH"})  # the others may be repeated as they are
_MB = 1024 * 1024
_FIRST_LOOK, _LONGEST_LOOK = 0.02, 0.5  # seconds between looks at a key that another process holds


class IdempotencyKeys:
    """Middleware: `app = IdempotencyKeys(app, hf, required=True)`. A request that is sent again with its key is answered as the first was.

    `required`: a POST or PATCH without a key is refused. `routes`, such as `["POST /orders", "POST /orders/{id}/pay"]`: only these
    take keys. `tenant` and `principal` are functions of the ASGI scope that say whose key it is; without them `request.state.tenant`,
    `request.state.principal` or the Authorization header do. `lease` is how long a handler may take, `wait` how long another request with
    its key waits for the answer before it gets a 409, `keep` how long answers are kept, in seconds. `headers` are those that are given
    again, beside the usual ones. Answers above `most` bytes and requests above `body` bytes are refused.

    `one_commit`: the key is claimed where the handler enters `request_tx`, in that transaction, and not before the handler: one commit
    instead of two, and nothing to wait for after a death. What the handler does before that may be done again by each try.
    """

    def __init__(
        self,
        app: App,
        hf: Program,
        *,
        required: bool = False,
        one_commit: bool = False,
        routes: Sequence[str] | None = None,
        tenant: WhoIs = tenant_of,
        principal: WhoIs = principal_of,
        lease: float = 60.0,
        wait: float = 10.0,
        keep: float = 72 * 3600.0,
        headers: Collection[str] = (),
        most: int = _MB,
        body: int = 100 * _MB,
    ) -> None:
        if isinstance(routes, str):
            raise UsageError(f"routes is a list of patterns: routes=[{routes!r}].")
        self._app, self._hf, self._required, self._one_commit = app, hf, required, one_commit
        self._routes = None if routes is None else Routes(tuple(routes))
        self._tenant, self._principal = tenant, principal
        self._wait = check_seconds("wait", wait)
        self._terms = Terms(
            lease=check_seconds("lease", lease, minimum=1.0),
            keep=check_seconds("keep", keep, minimum=1.0),
            headers=HEADERS | _kept(headers),
            most=check_int("most", most, 1, 4 * _MB),
        )
        self._body = check_int("body", body, 1, 2**40)
        self._flights = Flights()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began = False

        async def watched(message: Message) -> None:
            nonlocal began
            began = True
            await send(message)

        try:
            await self._answered(scope, receive, watched)
        except TROUBLE as error:
            if began:  # by an app that answers what it raises
                raise
            problem = problem_of(error)
            tell_failure(scope, problem, error)
            await problem.send(scope, send)

    async def _answered(self, scope: Scope, receive: Receive, send: Send) -> None:
        route = self._route(scope)
        key = None if route is None else read_key(scope)
        if isinstance(key, Problem):
            await key.send(scope, send)
        elif route is not None and key is not None:
            await self._with_key(scope, receive, send, route, key)
        elif route is not None and self._required:
            await MISSING.send(scope, send)
        elif route is None and IN_SCOPE in scope:
            await self._app(
                scope, receive, send
            )  # another of these stands outside, and the route is one of its own
        else:
            await self._run(scope, receive, send)

    def _route(self, scope: Scope) -> str | None:
        """What the key is for; None: this request takes none."""
        if self._routes is not None:
            return self._routes.find(scope)
        return f"{scope['method']} {path_of(scope)}" if scope["method"] in METHODS else None

    async def _with_key(self, scope: Scope, receive: Receive, send: Send, route: str, key: str) -> None:
        try:
            body = await Body.of(receive, most=self._body)
        except Gone:
            return
        except TooLarge:
            await _too_large(self._body).send(scope, send)
            return
        try:
            asked = Asked(self._whose(scope, route), key, await _fingerprint(scope, body))
            await self._first_or_again(scope, partial(body.receiver, receive), send, asked)
        finally:
            body.close()

    def _whose(self, scope: Scope, route: str) -> KeyScope:
        tenant, principal = self._tenant(scope), self._principal(scope)
        return KeyScope(name_of("tenant", tenant), name_of("principal", principal), name_of("route", route))

    async def _first_or_again(self, scope: Scope, receiver: Receiver, send: Send, asked: Asked) -> None:
        """Run it, or answer as it was answered, or wait until one of the two can be done."""
        until = monotonic() + self._wait
        while not await self._try(scope, receiver, send, asked, until):
            if monotonic() >= until:
                note("request.repeated", key=asked.key, what="busy")
                await BUSY.send(scope, send)
                return

    async def _try(self, scope: Scope, receiver: Receiver, send: Send, asked: Asked, until: float) -> bool:
        """Whether it is answered."""
        flight = self._flights.find(asked)
        if flight is None:
            flight = self._flights.begin(asked)
            try:
                return await self._fly(scope, receiver, send, flight, until)
            finally:
                self._flights.end(flight)
        if flight.asked.fingerprint != asked.fingerprint:
            note("request.repeated", key=asked.key, what="mismatched")
            await MISMATCH.send(scope, send)
            return True
        if (answer := await _landed(flight, until)) is not None:
            note("request.repeated", key=asked.key, what="replayed")
            await answer.send(send, replayed=True)
            return True
        return False

    async def _fly(self, scope: Scope, receiver: Receiver, send: Send, flight: Flight, until: float) -> bool:
        """The one of this process that asks the database. False: nothing was sent, and the key may be free."""
        if self._one_commit:
            claiming = Claiming(self._hf.store.keys, flight.asked, lease=self._terms.lease, until=until)
            exchange = Exchange(self._hf, claims=claiming)
        else:
            found = await self._begun(flight.asked, until)
            if not isinstance(found, KeyClaim):
                return await self._told(found, scope, send, flight)
            exchange = Exchange(self._hf, claim=found)
        run = Run(self._app, exchange, self._terms, key=flight.asked.key, keeps=flight.land)
        await run.run(scope, receiver(), send)
        if exchange.elsewhere is None:
            return not run.is_lost
        if isinstance(exchange.elsewhere, KeyBusy):
            await sleep(min(jittered(_LONGEST_LOOK), max(0.0, until - monotonic())))
        return await self._told(exchange.elsewhere, scope, send, flight)

    async def _told(self, found: Elsewhere, scope: Scope, send: Send, flight: Flight) -> bool:
        """Whether it is answered: with what another request has brought."""
        match found:
            case KeyDone(response):
                answer = unpack(response)
                flight.land(answer)
                note("request.repeated", key=flight.asked.key, what="replayed")
                await answer.send(send, replayed=True)
                return True
            case KeyMismatch():
                note("request.repeated", key=flight.asked.key, what="mismatched")
                await MISMATCH.send(scope, send)
                return True
            case _:
                return False

    async def _begun(self, asked: Asked, until: float) -> KeyClaim | KeyDone | KeyBusy | KeyMismatch:
        """Looks again and again while another process holds it."""
        pause = _FIRST_LOOK
        while True:
            found = await self._hf.store.keys.begin(
                asked.scope, asked.key, fingerprint=asked.fingerprint, lease=self._terms.lease
            )
            left = until - monotonic()
            if not isinstance(found, KeyBusy) or left <= 0:
                return found
            await sleep(min(jittered(pause), left))
            pause = min(2 * pause, _LONGEST_LOOK)

    async def _run(self, scope: Scope, receive: Receive, send: Send) -> None:
        run = Run(self._app, Exchange(self._hf), self._terms, keeps=lambda _: None)
        await run.run(scope, receive, send)


def _kept(headers: Collection[str]) -> set[str]:
    if isinstance(headers, str):
        raise UsageError(f"headers is a list of names: headers=[{headers!r}].")
    names = {name.lower() for name in headers}
    if never := sorted(names & NEVER):
        raise UsageError(
            f"An answer that is given again has no {', '.join(never)} of the first one. Leave it out of headers."
        )
    return names


async def _fingerprint(scope: Scope, body: Body) -> str:
    """Of a large one in a thread: others are served meanwhile."""
    if body.size > IN_MEMORY:
        return await call_in_thread(partial(fingerprint, scope, body))
    return fingerprint(scope, body)


async def _landed(flight: Flight, until: float) -> Answer | None:
    """Its answer; None: it brought none, or not in time."""
    try:
        async with timeout(max(0.0, until - monotonic())):
            return await asyncio.shield(flight.landed)
    except TimeoutError:
        return None


def _too_large(most: int) -> Problem:
    return Problem(
        status=413,
        title="The request is too large",
        code="REQUEST_TOO_LARGE",
        detail=f"At most {most:,} bytes are taken with an Idempotency-Key.",
    )


MISMATCH = Problem(
    status=422,
    title="Idempotency-Key is already used",
    code="IDEMPOTENCY_KEY_REUSED",
    detail="The key was sent before with another request. Take a new key for another request; send the same one to repeat it.",
)
BUSY = Problem(
    status=409,
    title="A request is outstanding for this Idempotency-Key",
    code="IDEMPOTENCY_KEY_BUSY",
    retry_after=1,
    detail="The first request with this key is still under way. Send the same request again later.",
)
