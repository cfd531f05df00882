"""What a request asks for, as one hash: a key that comes back with another hash was used for something else.

JSON is compared by what it says, not by its spaces or the order of its names; a form of several parts without the boundary
between them, which clients choose anew each time. All else is compared byte by byte.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from email.message import Message
from typing import Any

import msgspec

from holdfast.web.asgi import Scope, header, path_of
from holdfast.web.idempotency.body import IN_MEMORY, Body

_VERSION = b"1"


def fingerprint(scope: Scope, body: Body) -> str:
    """The method, the path with its query, and the body."""
    found = hashlib.sha256()
    for part in (_VERSION, scope["method"].encode(), path_of(scope).encode(), scope.get("query_string", b"")):
        _add(found.update, part)
    kind = header(scope, b"content-type") or ""
    media = kind.partition(";")[0].strip().lower()
    if media == "application/json" or media.endswith("+json"):
        _add_json(found.update, body)
    elif media.startswith("multipart/") and (boundary := _boundary(kind)):
        _add_parts(found, body, boundary)
    else:
        _add_raw(found.update, body)
    return found.hexdigest()


def _boundary(kind: str) -> str | None:
    message = Message()
    message["content-type"] = kind
    found = message.get_param("boundary")
    return found if isinstance(found, str) else None


def _add(update: Callable[[bytes], None], part: bytes) -> None:
    """With its length before it, so that no two lists of parts look alike."""
    update(b"%d:" % len(part))
    update(part)


def _add_raw(update: Callable[[bytes], None], body: Body) -> None:
    update(b"raw%d:" % body.size)
    for chunk in body.chunks():
        update(chunk)


def _add_json(update: Callable[[bytes], None], body: Body) -> None:
    """A large one byte by byte: it would be in memory three times."""
    if body.size > IN_MEMORY:
        return _add_raw(update, body)
    try:
        value = msgspec.json.decode(body.whole())
        canonical = msgspec.json.encode(value, order="sorted")
    except (msgspec.DecodeError, RecursionError):
        return _add_raw(update, body)  # the handler says what is wrong with it
    return _add(update, canonical)


def _add_parts(found: Any, body: Body, boundary: str) -> None:
    """Each part by its headers and a hash of its content. What cannot be taken apart is compared as it is."""
    from python_multipart.exceptions import MultipartParseError  # noqa: PLC0415  an extra
    from python_multipart.multipart import MultipartParser  # noqa: PLC0415

    parts = _Parts()
    try:
        parser = MultipartParser(boundary.encode("latin-1", "replace"), parts.callbacks())
        for chunk in body.chunks():
            parser.write(chunk)
        parser.finalize()
    except MultipartParseError:
        _add_raw(found.update, body)
        return
    found.update(b"parts%d:" % len(parts.digests))
    for digest in parts.digests:
        found.update(digest)


class _Parts:
    """Hears what the parser finds."""

    def __init__(self) -> None:
        self.digests: list[bytes] = []
        self._part = hashlib.sha256()
        self._name, self._value = bytearray(), bytearray()
        self._headers: list[bytes] = []

    def callbacks(self) -> Any:
        return {
            "on_part_begin": self._begin,
            "on_header_field": lambda data, start, end: self._name.extend(data[start:end]),
            "on_header_value": lambda data, start, end: self._value.extend(data[start:end]),
            "on_header_end": self._header,
            "on_headers_finished": self._content,
            "on_part_data": lambda data, start, end: self._part.update(data[start:end]),
            "on_part_end": lambda: self.digests.append(self._part.digest()),
        }

    def _begin(self) -> None:
        self._part, self._headers = hashlib.sha256(), []

    def _header(self) -> None:
        self._headers.append(bytes(self._name).lower() + b":" + bytes(self._value).strip())
        self._name.clear()
        self._value.clear()

    def _content(self) -> None:
        for line in sorted(self._headers):
            _add(self._part.update, line)
        self._part.update(b"content:")
