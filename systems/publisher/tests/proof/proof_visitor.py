"""People who use the pages while API processes are restarted in turn: what one of them does not answer, the other does."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field
from urllib.parse import urlsplit

import httpx2

PAGES = ("/", "/calendar", "/posts")
EVERY = 0.1  # seconds
PATIENCE = 10.0
AWHILE = 0.05  # seconds until another is asked, when one does not answer


class NotAnswered(Exception):
    """None of the processes did, in time and as it should be."""


@dataclass
class Balancer:
    """As one does it that stands before all of them: the next is asked when one does not answer."""

    addresses: list[str]
    turn: int = 0
    later: int = 0  # times that somebody was told to come later

    async def are_there(self) -> None:
        for address in self.addresses:
            await self._until_ready(address)

    async def _until_ready(self, address: str) -> None:
        end = time.monotonic() + 60
        while True:
            async with httpx2.AsyncClient(trust_env=False) as client:
                try:
                    if (await client.get(f"{address}/probes/ready")).status_code == 200:
                        return
                except httpx2.TransportError:
                    pass
            assert time.monotonic() < end, f"{address} is not ready"
            await asyncio.sleep(0.1)

    async def ask(
        self, client: httpx2.AsyncClient, method: str, path: str, wanted: tuple[int, ...] = (200,)
    ) -> httpx2.Response:
        """Who is told by 429 or 503 to come later does so."""
        told: list[str] = []
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            self.turn += 1
            address = self.addresses[self.turn % len(self.addresses)]
            try:
                answer = await client.request(method, f"{address}{path}")
            except httpx2.TransportError as error:
                told.append(repr(error))
                await asyncio.sleep(AWHILE)
                continue
            if answer.status_code in wanted:
                return answer
            told.append(f"{path}: {answer.status_code} {answer.text[:200]}")
            if answer.status_code not in (429, 503):
                break
            self.later += 1
            await asyncio.sleep(min(1.0, float(answer.headers.get("retry-after", 1))))
        raise NotAnswered("; then ".join(told))


@dataclass
class Visitor:
    """An artist in a browser. `looks` and `presses` are the seconds of what was answered."""

    balancer: Balancer
    name: str
    looks: list[float] = field(default_factory=list)
    presses: list[float] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._client = httpx2.AsyncClient(trust_env=False, timeout=PATIENCE)

    async def log_in(self) -> None:
        ask, client = self.balancer.ask, self._client
        client.headers["x-csrf-token"] = await self._token()
        away = (await ask(client, "POST", "/login", (303,))).headers["location"]
        back = urlsplit((await client.post(away, data={"artist": self.name})).headers["location"])
        await ask(client, "GET", f"{back.path}?{back.query}", (303,))
        client.headers["x-csrf-token"] = await self._token()

    async def _token(self) -> str:
        answer = await self.balancer.ask(self._client, "GET", "/api/account/session")
        return str(answer.json()["csrf"])

    async def look(self) -> None:
        """Until it is cancelled."""
        for number in range(10**9):
            await asyncio.sleep(EVERY)
            await self._timed(self.looks, "GET", PAGES[number % len(PAGES)], (200,))

    async def press(self, posts: list[str], apart: float) -> None:
        """Publish now: what was asked twice, since the first answer was lost, is told so by 409."""
        for post in posts:
            await asyncio.sleep(apart)
            await self._timed(self.presses, "POST", f"/api/posts/{post}/publish-now", (202, 409))

    async def _timed(self, times: list[float], method: str, path: str, wanted: tuple[int, ...]) -> None:
        began = time.monotonic()
        try:
            await self.balancer.ask(self._client, method, path, wanted)
        except NotAnswered as error:
            self.failed.append(str(error))
        else:
            times.append(time.monotonic() - began)

    async def leave(self) -> None:
        await self._client.aclose()
