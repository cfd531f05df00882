"""ASGI in types, and how headers and paths of a request are read: nothing here depends on a framework."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from typing import Any, Protocol, TypeAlias

Scope: TypeAlias = MutableMapping[str, Any]
Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]
App: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]
Headers: TypeAlias = tuple[tuple[bytes, bytes], ...]


class HasScope(Protocol):
    """A request of Starlette or FastAPI."""

    @property
    def scope(self) -> MutableMapping[str, Any]: ...


def scope_of(request: HasScope | Scope) -> Scope:
    """Handlers have a request, middleware has its scope: both will do."""
    return request if isinstance(request, MutableMapping) else request.scope


def header(scope: Scope, name: bytes) -> str | None:
    """The one header of this name, in Latin-1 as HTTP has it. Of several, the last."""
    found = [value for key, value in scope["headers"] if key.lower() == name]
    return found[-1].decode("latin-1") if found else None


def headers(scope: Scope, name: bytes) -> list[str]:
    return [value.decode("latin-1") for key, value in scope["headers"] if key.lower() == name]


def path_of(scope: Scope) -> str:
    """The path below the mount of this app, as Starlette's router has it: a root ends where a segment does."""
    path, root = str(scope["path"]), str(scope.get("root_path", ""))
    below = path[len(root) :] if root and path.startswith(root) else path
    return below or "/" if below[:1] in ("", "/") else path


async def answer(
    send: Send, status: int, content: bytes, fields: Iterable[tuple[bytes, bytes]], *, empty: bool = False
) -> None:
    """Send a whole answer. `empty` leaves the body out, as for HEAD."""
    await send({"type": "http.response.start", "status": status, "headers": list(fields)})
    await send({"type": "http.response.body", "body": b"" if empty else content})
