"""One run of the app for a request: its answer is held back until what the handler wrote, and the answer itself, are kept."""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import partial

import msgspec

from holdfast.kernel.clock import recover, timeout
from holdfast.kernel.errors import TROUBLE
from holdfast.kernel.spawn import to_its_end
from holdfast.kernel.telemetry import note
from holdfast.store.fleet_ports import Keys
from holdfast.store.idempotency import KeyClaim
from holdfast.web.asgi import App, Message, Receive, Scope, Send
from holdfast.web.idempotency.answers import Answer, Gathered, pack
from holdfast.web.idempotency.exchange import IN_SCOPE, Exchange, NotKept
from holdfast.web.problems import Problem, problem_of, tell_failure

_TRIES, _REST = 3, 0.2  # to keep an answer whose rows are committed already
_MARGIN = 0.8  # of the lease: a handler has ended before its key is free for another


class Terms(msgspec.Struct, frozen=True):
    """What the program has said of keys."""

    lease: float
    keep: float
    headers: Collection[str]
    most: int

    @property
    def allowed(self) -> float:
        """How long a handler may take."""
        return self.lease * _MARGIN


class Run:
    """`keeps` hears what was kept for the key; `is_lost`: another holds it by now, and nothing was sent."""

    def __init__(
        self, app: App, exchange: Exchange, terms: Terms, *, key: str = "", keeps: Callable[[Answer], None]
    ) -> None:
        self._app, self._exchange, self._terms, self._key, self._keeps = app, exchange, terms, key, keeps
        self._gathered = Gathered(terms.most)
        self._is_answered = False
        self.is_lost = False

    @property
    def _is_over(self) -> bool:
        """What the app still sends comes too late."""
        return self._is_answered or self.is_lost or self._exchange.elsewhere is not None

    async def run(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._scope, self._send = {**scope, IN_SCOPE: self._exchange}, send
        if not self._exchange.has_key:
            await self._guarded(receive, self._pass_on)
            return
        self._scope["extensions"] = {}  # files that the server sends by itself would not be seen here
        try:
            async with timeout(self._terms.allowed):
                await self._guarded(receive, self._hold_back)
        except TimeoutError as error:
            if self._exchange.is_answered:
                raise
            await self._give_up(TOO_SLOW, error)

    async def _guarded(self, receive: Receive, send: Send) -> None:
        """Whatever becomes of the app: what it has not answered for is rolled back."""
        try:
            await self._app(self._scope, receive, send)
        except NotKept:
            return
        except BaseException as error:
            if not self._is_over:
                await to_its_end(self._take_back(error))
            if self._exchange.elsewhere is not None and isinstance(error, Exception):
                return  # whatever the app has made of being told to end
            raise
        if not self._is_over and not self._exchange.is_answered:
            await self._take_back(RuntimeError("The app has not answered."))

    # --- without a key ---

    async def _pass_on(self, message: Message) -> None:
        """What was written is committed before the first byte of the answer leaves."""
        if self._is_over:
            return
        if message["type"] == "http.response.start" and not self._exchange.is_answered:
            self._exchange.is_answered = True
            if not Answer(message["status"], (), b"").is_final:
                await self._exchange.roll_back(_Refusing())
            else:
                await self._committed(None)
        await self._send(message)

    # --- with a key ---

    async def _hold_back(self, message: Message) -> None:
        if self._is_over:
            return
        self._gathered.take(message)
        if self._gathered.is_too_large:
            await self._give_up(TOO_LARGE, None)
            raise NotKept
        if self._gathered.is_whole:
            await to_its_end(self._settle(self._gathered.answer()))

    async def _settle(self, answer: Answer) -> None:
        self._exchange.is_answered = True
        if not answer.is_final:
            await self._take_back(_Refusing())
        else:
            kept = answer.kept(self._terms.headers)
            await self._committed(kept)
            self._keeps(kept)
        self._is_answered = True
        await answer.send(self._send)

    async def _committed(self, kept: Answer | None) -> None:
        """Commit, with the answer when there is a key; or answer that nothing is kept, and end the app."""
        try:
            is_mine = await self._commit(kept)
        except TROUBLE as error:
            problem = problem_of(error)
            tell_failure(self._scope, problem, error)
            await self._give_up(problem, error)
            raise NotKept from error
        if not is_mine:
            note("request.key_lost", key=self._key)
            self.is_lost = True
            raise NotKept

    async def _commit(self, kept: Answer | None) -> bool:
        if kept is None:
            return await self._exchange.commit(None)
        if self._exchange.is_writing:
            return await self._finish(kept)
        for _ in range(_TRIES - 1):  # the handler has done its work: only its answer is missing
            try:
                return await self._finish(kept)
            except TROUBLE:
                await recover(_REST)
        return await self._finish(kept)

    async def _finish(self, kept: Answer) -> bool:
        if self._exchange.claims_late:
            await self._exchange.begin()
        if (claim := self._exchange.claim) is None:
            raise NotKept
        keys = self._exchange.store.keys
        return await self._exchange.commit(partial(_kept, keys, claim, pack(kept), self._terms.keep))

    async def _give_up(self, problem: Problem, error: BaseException | None) -> None:
        await to_its_end(self._take_back(error or _Refusing()))
        self._is_answered = self._exchange.is_answered = True
        await problem.send(self._scope, self._send)

    async def _take_back(self, error: BaseException) -> None:
        """Nothing is kept, and the key is free. Where the database does not answer, its lease ends."""
        try:
            await self._exchange.roll_back(error)
            if self._exchange.claim is not None:
                await self._exchange.store.keys.abandon(self._exchange.claim)
        except TROUBLE as trouble:
            note("request.key_kept", key=self._key, error=repr(trouble))


async def _kept(keys: Keys, claim: KeyClaim, response: str, keep: float, tx: object | None) -> None:
    await keys.answer(claim, response, keep=keep, tx=tx)


class _Refusing(Exception):
    """The handler has answered that it did not do it."""


TOO_LARGE = Problem(
    status=500,
    title="The answer is too large to be kept for its Idempotency-Key",
    code="ANSWER_TOO_LARGE",
    detail="What was written with it is rolled back. Answer with a link to what is large.",
)
TOO_SLOW = Problem(
    status=503,
    title="It took too long",
    code="HANDLER_TOO_SLOW",
    retry_after=1,
    detail="What was written with it is rolled back. Send the same request again.",
)
