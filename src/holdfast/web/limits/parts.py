"""Counts the parts of a multipart body while it streams by, and keeps none of it."""

from __future__ import annotations

from email.message import Message
from typing import Any

from holdfast.web.asgi import Scope, header


class TooMany(Exception):
    """More parts, or more bytes in one of them, than are taken."""


class PartCounter:
    """`feed` raises as soon as a limit is passed. What is not well formed is left to the app's own parser."""

    def __init__(self, boundary: str, *, parts: int, part: int) -> None:
        from python_multipart.multipart import MultipartParser  # noqa: PLC0415  an extra

        self._parts, self._part = parts, part
        self._count = self._size = 0
        self._is_broken = False
        callbacks: Any = {"on_part_begin": self._begin, "on_part_data": self._data}
        self._parser = MultipartParser(boundary.encode("latin-1", "replace"), callbacks)

    @classmethod
    def of(cls, scope: Scope, *, parts: int, part: int) -> PartCounter | None:
        """None: the body is no multipart one."""
        kind = Message()
        kind["content-type"] = header(scope, b"content-type") or ""
        boundary = kind.get_param("boundary")
        if kind.get_content_maintype() != "multipart" or not isinstance(boundary, str) or not boundary:
            return None
        return cls(boundary, parts=parts, part=part)

    def feed(self, chunk: bytes) -> None:
        from python_multipart.exceptions import MultipartParseError  # noqa: PLC0415

        if self._is_broken or not chunk:
            return
        try:
            self._parser.write(chunk)
        except MultipartParseError:
            self._is_broken = True

    def _begin(self) -> None:
        self._count, self._size = self._count + 1, 0
        if self._count > self._parts:
            raise TooMany(f"at most {self._parts:,} parts are taken")

    def _data(self, data: bytes, start: int, end: int) -> None:  # noqa: ARG002  the parser's own signature
        self._size += end - start
        if self._size > self._part:
            raise TooMany(f"at most {self._part:,} bytes are taken in one part")
