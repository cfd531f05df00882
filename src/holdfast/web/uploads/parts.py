"""A multipart body, taken apart while it comes: nothing of it is kept but what one chunk of the connection holds."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator
from email.message import Message as Header
from typing import Any

import msgspec

from holdfast.web.asgi import Receive, Scope, header
from holdfast.web.problems import Problem, ProblemError

_MOST_HEADERS, _LONGEST_HEADERS = 16, 8 * 1024  # of one part
_LONGEST_NAME = 200
_JOINERS = "\u200c\u200d"  # without which some scripts are written wrongly


class Limits(msgspec.Struct, frozen=True):
    total: int  # bytes of the body
    part: int  # bytes of one file
    parts: int
    field: int  # bytes of one field that is no file


class Part(msgspec.Struct, frozen=True):
    """What stands before the content of a part."""

    name: str
    filename: str | None  # as the client calls it, for people to read: never a path
    told: str | None  # the type that the client names


class Parts:
    """`async for part in parts:` and `async for piece in parts.content():`, in this order."""

    def __init__(self, scope: Scope, receive: Receive, limits: Limits) -> None:
        from python_multipart.multipart import MultipartParser  # noqa: PLC0415  an extra

        self._receive, self._limits = receive, limits
        self._events: deque[tuple[str, bytes]] = deque()
        self._size = self._count = self._part = 0
        self._is_read = False
        callbacks: Any = {
            "on_part_begin": self._begin,
            "on_header_field": lambda data, start, end: self._add("field", data[start:end]),
            "on_header_value": lambda data, start, end: self._add("value", data[start:end]),
            "on_header_end": lambda: self._add("line", b""),
            "on_headers_finished": lambda: self._add("headers", b""),
            "on_part_data": self._data,
            "on_part_end": lambda: self._add("end", b""),
            "on_end": lambda: self._add("over", b""),
        }
        self._parser = MultipartParser(_boundary(scope), callbacks)

    async def __aiter__(self) -> AsyncIterator[Part]:
        while (event := await self._next())[0] != "over":
            if event[0] == "begin":
                yield _part(await self._headers())
        while not self._is_read:  # what comes behind the end is read, and counts
            await self._more()

    async def content(self) -> AsyncIterator[bytes]:
        while (event := await self._next())[0] != "end":
            yield event[1]

    async def _headers(self) -> list[tuple[str, str]]:
        lines: list[tuple[str, str]] = []
        name, value, size = bytearray(), bytearray(), 0
        while (event := await self._next())[0] != "headers":
            size += len(event[1])
            if size > _LONGEST_HEADERS or len(lines) > _MOST_HEADERS:
                raise refused(400, "A part has too many headers", "PART_HEADERS_TOO_LARGE")
            match event[0]:
                case "field":
                    name += event[1]
                case "value":
                    value += event[1]
                case "line":
                    lines.append((name.decode("latin-1").lower(), value.decode("utf-8", "replace").strip()))
                    name, value = bytearray(), bytearray()
        return lines

    async def _next(self) -> tuple[str, bytes]:
        while not self._events:
            if self._is_read:
                raise refused(400, "The form breaks off", "FORM_INCOMPLETE")
            await self._more()
        return self._events.popleft()

    async def _more(self) -> None:
        from python_multipart.exceptions import MultipartParseError  # noqa: PLC0415

        message = await self._receive()
        if message["type"] == "http.disconnect":
            raise refused(400, "The client has hung up", "CLIENT_GONE")
        chunk = message.get("body", b"")
        self._size += len(chunk)
        if self._size > self._limits.total:
            raise refused(
                413,
                "The form is too large",
                "REQUEST_TOO_LARGE",
                f"At most {self._limits.total:,} bytes are taken.",
            )
        self._is_read = not message.get("more_body", False)
        try:
            self._parser.write(chunk)
        except MultipartParseError:
            raise refused(400, "This is no form that can be read", "FORM_MALFORMED") from None

    def _begin(self) -> None:
        self._count, self._part = self._count + 1, 0
        if self._count > self._limits.parts:
            raise refused(
                413,
                "The form has too many parts",
                "TOO_MANY_PARTS",
                f"At most {self._limits.parts:,} are taken.",
            )
        self._add("begin", b"")

    def _data(self, data: bytes, start: int, end: int) -> None:
        self._part += end - start
        if self._part > self._limits.part:
            raise refused(
                413,
                "A file is too large",
                "FILE_TOO_LARGE",
                f"At most {self._limits.part:,} bytes are taken in one.",
            )
        self._add("data", data[start:end])

    def _add(self, kind: str, data: bytes) -> None:
        self._events.append((kind, data))


def refused(status: int, title: str, code: str, detail: str = "") -> ProblemError:
    return ProblemError(Problem(status=status, title=title, code=code, detail=detail))


def _boundary(scope: Scope) -> bytes:
    kind = Header()
    kind["content-type"] = header(scope, b"content-type") or ""
    found = kind.get_param("boundary")
    if (
        kind.get_content_type() != "multipart/form-data"
        or not isinstance(found, str)
        or not 0 < len(found) <= 70
    ):
        raise refused(415, "This is no form", "NOT_A_FORM", "Send multipart/form-data.")
    return found.encode("latin-1", "replace")


def _part(lines: list[tuple[str, str]]) -> Part:
    said = Header()
    for name, value in lines:
        if name in {"content-disposition", "content-type"} and name not in said:
            said[name] = value.replace("\r", " ").replace("\n", " ")
    field = said.get_param("name", header="content-disposition")
    name = field if isinstance(field, str) else ""
    if said.get_content_disposition() != "form-data" or not 0 < len(name) <= _LONGEST_NAME:
        raise refused(400, "A part of the form has no name", "FORM_MALFORMED")
    filename = said.get_filename()
    told = said.get_content_type() if "content-type" in said else None
    return Part(name, None if filename is None else _shown(filename), told)


def _shown(filename: str) -> str:
    """Its last part, in letters that can be seen."""
    last = filename.replace("\\", "/").rpartition("/")[2]
    return "".join(each for each in last if each.isprintable() or each in _JOINERS)[:_LONGEST_NAME]
