"""A service that programs call over TCP, in the test's own process: it keeps a ledger of what it did, and can be made to lose answers."""

from __future__ import annotations

import asyncio
import json
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Self

_LINE = 2**16


@dataclass(frozen=True)
class Entry:
    """What it has done: an answer that gets lost changes nothing here."""

    verb: str
    subject: str
    at: float
    key: str | None = None


@dataclass
class Provider:
    """Its faults are what a test sets here while it runs."""

    down: bool = False  # it answers 503 and does nothing
    lost: set[str] = field(default_factory=set)  # done, and the answer is lost, once each
    unsent: set[str] = field(default_factory=set)  # not done, and the answer is lost, once each
    shows: bool = True  # whether it lists what it did
    ledger: list[Entry] = field(default_factory=list)
    refused: int = 0

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, backlog=1000)
        host, port = self._server.sockets[0].getsockname()
        self.address = f"{host}:{port}"
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        await self._server.wait_closed()

    def count(self, verb: str) -> Counter[str]:
        return Counter(each.subject for each in self.ledger if each.verb == verb)

    def at(self, verb: str, subject: str) -> float:
        [at] = [each.at for each in self.ledger if (each.verb, each.subject) == (verb, subject)]
        return at

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):
            asked = json.loads(await reader.readline() or "{}")
            if asked and (answer := self._answer(**asked)) is not None:
                writer.write(json.dumps(answer).encode() + b"\n")
                await writer.drain()
        writer.close()

    def _answer(self, verb: str, subject: str, key: str | None = None) -> dict[str, object] | None:
        """None: the connection ends without one."""
        if self.down:
            self.refused += 1
            return {"status": 503}
        if verb == "look":
            return {"status": 200 if self.shows else 504, "found": self.count("publish")[subject]}
        if subject in self.unsent and verb != "submit":
            self.unsent.remove(subject)
            return None
        if key is None or not any(each.key == key for each in self.ledger):
            self.ledger.append(Entry(verb, subject, time.time(), key))
        if subject in self.lost and verb != "submit":
            self.lost.remove(subject)
            return None
        return {"status": 200}


class Unavailable(Exception):
    """503: it was not done."""


class Slow(Exception):
    """504: it says nothing about what was asked."""


async def ask(address: str, verb: str, subject: str, key: str | None = None) -> dict[str, int]:
    """One call, on a connection of its own. An answer that does not come is a ConnectionResetError."""
    host, port = address.split(":")
    reader, writer = await asyncio.open_connection(host, int(port), limit=_LINE)
    try:
        writer.write(json.dumps({"verb": verb, "subject": subject, "key": key}).encode() + b"\n")
        line = await reader.readline()
    finally:
        writer.close()
    if not line:
        raise ConnectionResetError("no answer")
    answer = json.loads(line)
    if answer["status"] != 200:
        raise {503: Unavailable, 504: Slow}[answer["status"]](f"{verb} of {subject}: {answer['status']}")
    return answer
