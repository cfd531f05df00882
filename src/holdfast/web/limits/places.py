"""How many requests a process works on at once. One that waits for its client's body is not worked on, so a thousand that trickle keep nobody out."""

from __future__ import annotations

import asyncio
from collections import deque
from itertools import islice

from holdfast.web.asgi import App, Message, Receive, Scope, Send

_ARRIVING = (
    10  # times as many requests may be here with those whose body still comes: each of them takes memory
)


class Places:
    def __init__(self, most: int) -> None:
        self._most = most
        self._here = self._working = 0
        self._turns: deque[asyncio.Future[None]] = deque()  # of requests whose body has come

    def refusal(self) -> str | None:
        """Why another request is one too many. Those whose body has come go before it."""
        if self._working >= self._most or self._turns:
            return f"{self._working} requests are under way"
        if self._here >= self._most * _ARRIVING:
            return f"the bodies of {self._here - self._working} requests are still to come"
        return None

    async def serve(self, app: App, scope: Scope, receive: Receive, send: Send) -> None:
        request = _Request(self, receive)
        self._here += 1
        self._working += 1
        try:
            await app(scope, request.receive, send)
        finally:
            self._here -= 1
            if request.is_worked_on:
                self.leave()

    def leave(self) -> None:
        self._working -= 1
        self._call_next()

    async def come_back(self) -> None:
        """Waits for its turn, so that bodies that are complete all at once are not worked on all at once."""
        queue_up = self._turns.append
        while self._working >= self._most:
            turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            queue_up(turn)
            try:
                await turn
            except BaseException:
                self._turns.remove(turn)
                self._call_next()  # its turn, if it had been called, is another's
                raise
            self._turns.remove(turn)
            queue_up = self._turns.appendleft  # somebody was faster
        self._working += 1

    def _call_next(self) -> None:
        """As many as there is room for: they stay in the row until they hear of it, so that no new request goes before them."""
        for turn in islice(self._turns, max(0, self._most - self._working)):
            if not turn.done():
                turn.set_result(None)


class _Request:
    def __init__(self, places: Places, receive: Receive) -> None:
        self._places, self._receive = places, receive
        self.is_worked_on, self._is_whole = True, False

    async def receive(self) -> Message:
        if self._is_whole or not self.is_worked_on:
            return await self._receive()
        self._places.leave()
        self.is_worked_on = False
        message = await self._receive()
        self._is_whole = message["type"] != "http.request" or not message.get("more_body", False)
        await self._places.come_back()
        self.is_worked_on = True
        return message
