"""Refuse a request whose body still comes, so that its client reads why: a connection that is closed with unread bytes takes the answer back."""

from __future__ import annotations

from holdfast.kernel.clock import timeout
from holdfast.web.asgi import Message, Receive, Scope, Send
from holdfast.web.problems import Problem

_MORE = 4 * 1024 * 1024  # bytes, and
_TIME = 2.0  # seconds, that are read and dropped for that; who has more to say is cut off
_CLOSE = [(b"connection", b"close")]  # what was not read stands in the way of another request


async def refuse(problem: Problem, scope: Scope, send: Send, *, left: Receive | None = None) -> None:
    """`left`: where the rest of the body comes from; None: there is none, or it is not waited for."""
    if left is None:
        await problem.send(scope, send, fields=_CLOSE)
        return

    async def held(message: Message) -> None:
        is_last = message["type"] == "http.response.body"
        await send({**message, "more_body": True} if is_last else message)

    await problem.send(scope, held, fields=_CLOSE)
    await _drop(left)
    await send({"type": "http.response.body", "body": b""})


async def _drop(receive: Receive) -> None:
    size = 0
    try:
        async with timeout(_TIME):
            while size <= _MORE:
                message = await receive()
                size += len(message.get("body", b""))
                if not message.get("more_body", False):
                    return
    except TimeoutError:
        return
