"""Finds the token of a form in a request, in a header or among the first bytes of the body, which the app still gets whole."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from email.message import Message as Headers
from functools import partial
from urllib.parse import parse_qsl

from holdfast.web.asgi import Message, Receive, Scope, header

HEADER = b"x-csrf-token"
FIELD = "csrf_token"
_LOOKED_AT = 64 * 1024  # bytes of a body; our forms begin with the token
_FIELDS = 1000


async def told_token(scope: Scope, receive: Receive) -> tuple[str | None, Receive]:
    """The token, and what the app receives from now on."""
    if (told := header(scope, HEADER)) is not None:
        return told, receive
    if (find := _finder(scope)) is None:
        return None, receive
    held: deque[Message] = deque()
    body, more, next_look = bytearray(), True, 1
    found: str | None = None
    while more and found is None and len(body) < _LOOKED_AT:
        message = await receive()
        held.append(message)
        more = message["type"] == "http.request" and message.get("more_body", False)
        body += message.get("body", b"")
        if len(body) >= min(next_look, _LOOKED_AT) or not more:
            next_look = 2 * len(body)  # not for each byte of a body that trickles: that would cost its square
            found = find(bytes(body[:_LOOKED_AT]), not more)

    async def again() -> Message:
        return held.popleft() if held else await receive()

    return found, again


Finder = Callable[[bytes, bool], str | None]  # what has come so far, and whether that is all


def _finder(scope: Scope) -> Finder | None:
    """None: the body is no form."""
    kind = Headers()
    kind["content-type"] = header(scope, b"content-type") or ""
    if kind.get_content_type() == "application/x-www-form-urlencoded":
        return _in_urlencoded
    boundary = kind.get_param("boundary")
    if kind.get_content_type() != "multipart/form-data" or not isinstance(boundary, str) or not boundary:
        return None
    return partial(_in_multipart, boundary)


def _in_urlencoded(body: bytes, is_all: bool) -> str | None:
    """Without the last pair, while more of it may come."""
    text = body.decode("latin-1")
    whole = text if is_all else text.rpartition("&")[0]
    try:
        pairs = parse_qsl(whole, max_num_fields=_FIELDS)
    except ValueError:  # too many fields
        return None
    return next((value for name, value in pairs if name == FIELD), None)


def _in_multipart(boundary: str, body: bytes, _is_all: bool) -> str | None:
    """The value of the first part of this name that has come whole."""
    mark = b"\r\n--" + boundary.encode("latin-1", "replace")
    for part in (b"\r\n" + body).split(mark)[1:-1]:  # the last may still come
        head, found, value = part.partition(b"\r\n\r\n")
        if found and FIELD.encode() in head and _name_of(head) == FIELD:
            return value.decode("latin-1")
    return None


def _name_of(head: bytes) -> str | None:
    for line in head.split(b"\r\n"):
        name, _, value = line.decode("latin-1").partition(":")
        if name.strip().lower() == "content-disposition":
            parsed = Headers()
            parsed["content-disposition"] = value.strip()
            found = parsed.get_param("name", header="content-disposition")
            return found if isinstance(found, str) else None
    return None
