"""An answer that is kept for a key: status, the headers that may be given again, and the body, byte for byte."""

from __future__ import annotations

import base64
from collections.abc import Collection
from typing import Any

import msgspec

from holdfast.web.asgi import Headers, Message, Send, answer

# What says how to read the body, and where to go next. Cookies, dates and limits belong to one answer alone.
HEADERS = frozenset(
    {
        "cache-control", "content-disposition", "content-encoding", "content-language", "content-type",
        "etag", "last-modified", "link", "location", "retry-after", "vary",
    }
)  # fmt: skip
# Of one connection, of one answer, or for one client: nobody else is given them.
NEVER = frozenset({"connection", "content-length", "date", "set-cookie", "transfer-encoding"})
_BARE = frozenset({204, 304})  # answers that have no body, and must not tell its length
_PASSING = frozenset({408, 425, 429})  # another try may end otherwise: those give the key back


class Answer(msgspec.Struct, frozen=True):
    status: int
    headers: Headers
    content: bytes

    @property
    def is_final(self) -> bool:
        """Whether asking again would bring the same."""
        return 200 <= self.status < 500 and self.status not in _PASSING

    def kept(self, allowed: Collection[str]) -> Answer:
        """As it is stored: with the headers that may be given again."""
        fields = tuple(
            (name, value) for name, value in self.headers if name.lower().decode("latin-1") in allowed
        )
        return Answer(self.status, fields, self.content)

    async def send(self, send: Send, *, replayed: bool = False) -> None:
        fields = list(self.headers)
        if replayed:
            fields.append((b"idempotent-replayed", b"true"))
            if self.status not in _BARE:
                fields.append((b"content-length", b"%d" % len(self.content)))
        await answer(send, self.status, self.content, fields)


class _Stored(msgspec.Struct, frozen=True, omit_defaults=True):
    """Text when it is text, since most answers are: base64 is a third longer."""

    status: int
    headers: tuple[tuple[str, str], ...]
    text: str | None = None
    base64: str | None = None


def pack(given: Answer) -> str:
    """As the text that a store keeps."""
    fields = tuple((name.decode("latin-1"), value.decode("latin-1")) for name, value in given.headers)
    try:
        stored = _Stored(given.status, fields, text=given.content.decode())
    except UnicodeDecodeError:
        stored = _Stored(given.status, fields, base64=base64.b64encode(given.content).decode())
    return msgspec.json.encode(stored).decode()


def unpack(text: str) -> Answer:
    stored = msgspec.json.decode(text, type=_Stored)
    content = (stored.text or "").encode() if stored.base64 is None else base64.b64decode(stored.base64)
    fields = tuple((name.encode("latin-1"), value.encode("latin-1")) for name, value in stored.headers)
    return Answer(stored.status, fields, content)


class Gathered:
    """Takes an answer from the app, message by message."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._start: Message | None = None
        self._content = bytearray()
        self.is_whole = self.is_too_large = False

    def take(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._start = message
        elif message["type"] == "http.response.body" and not self.is_too_large:
            self._content += message.get("body", b"")
            self.is_too_large = len(self._content) > self._most
            self.is_whole = not message.get("more_body", False)

    def answer(self) -> Answer:
        start: Any = self._start
        return Answer(
            start["status"],
            tuple((bytes(n), bytes(v)) for n, v in start.get("headers", ())),
            bytes(self._content),
        )
