"""Which route a request is for, told by patterns such as `POST /orders/{id}`: middleware runs before any router."""

from __future__ import annotations

import re

from holdfast.kernel.errors import UsageError
from holdfast.kernel.show import show
from holdfast.web.asgi import Scope, path_of

_PATTERN = re.compile(r"([A-Z]+|\*) (/\S*)")
_PART = re.compile(r"\{[a-z_][a-z0-9_]*(?::([a-z]+))?\}", re.IGNORECASE)
_HEX = "[0-9a-fA-F]"
_KINDS = {  # as Starlette has them: what fits less would be walked around, and what fits more would exempt another route
    None: "[^/]+",
    "str": "[^/]+",
    "path": ".*",
    "int": "[0-9]+",
    "float": r"[0-9]+(\.[0-9]+)?",
    "uuid": f"{_HEX}{{8}}-?{_HEX}{{4}}-?{_HEX}{{4}}-?{_HEX}{{4}}-?{_HEX}{{12}}",
}


class Route:
    """One pattern. `{id}` stands for one segment of the path, `{id:int}`, `{id:float}` and `{id:uuid}` for one that is such, `{rest:path}` for all
    that follow, and `*` for every method.

    What a router would bring to the same handler fits, too: HEAD where GET does, and a line break at the end of the path.
    """

    def __init__(self, pattern: str) -> None:
        if (found := _PATTERN.fullmatch(str(pattern))) is None:
            raise UsageError(
                f"A route is a method and a path, such as 'POST /orders/{{id}}'; not {show(pattern)}."
            )
        self.name, self.method, self._path = pattern, found[1], _compiled(found[2])

    def fits(self, method: str, path: str) -> bool:
        is_method = self.method in ("*", method) or (self.method, method) == ("GET", "HEAD")
        return is_method and self._path.match(path) is not None


class Routes:
    """Patterns in their order; the first that fits is the route."""

    def __init__(self, patterns: tuple[str, ...] | list[str]) -> None:
        self._routes = [Route(pattern) for pattern in patterns]

    def find(self, scope: Scope) -> str | None:
        method, path = scope.get("method", "GET"), path_of(scope)  # a socket begins as a GET
        return next((route.name for route in self._routes if route.fits(method, path)), None)


def _compiled(path: str) -> re.Pattern[str]:
    parts, last = [], 0
    for found in _PART.finditer(path):
        parts += [_plain(path[last : found.start()], path), _kind(found[1], path)]
        last = found.end()
    return re.compile("".join([*parts, _plain(path[last:], path), "$"]))  # as Starlette has it


def _kind(name: str | None, path: str) -> str:
    if name not in _KINDS:
        raise UsageError(
            f"The route {show(path)} has a part of the kind {show(name)}; there are {', '.join(filter(None, _KINDS))}. Leave the kind out: "
            "the part stands for one segment then."
        )
    return _KINDS[name]


def _plain(text: str, path: str) -> str:
    """A brace that begins no part would fit nothing, and nobody would notice."""
    if "{" in text or "}" in text:
        raise UsageError(
            f"The route {show(path)} has a brace that stands for no part; write '{{id}}' or '{{rest:path}}'."
        )
    return re.escape(text)
