"""Resources: opened when a worker starts, closed at its end, and given to tasks by the type of a parameter."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from typing import Any, get_args, get_origin, get_type_hints

from holdfast.kernel.errors import UsageError

Factory = Callable[[], Any]
_ITERATORS = ("AsyncIterator", "AsyncGenerator", "Iterator", "Generator")


class Resources:
    """Factories by the type of what they yield: generators, `async` or not, with one `yield`."""

    def __init__(self) -> None:
        self.factories: dict[Any, Factory] = {}

    def add(self, factory: Factory) -> Any:
        """Register a generator function; returns the type of what it yields."""
        kind = _yielded(factory)
        if kind in self.factories:
            raise UsageError(
                f"There is a resource of the type {kind!r} already. A task asks by type, so one is the limit."
            )
        self.factories[kind] = factory
        return kind

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[dict[Any, Any]]:
        """All of them, open; when one cannot be opened, those before it are closed again."""
        async with AsyncExitStack() as stack:
            found: dict[Any, Any] = {}
            for kind, factory in self.factories.items():
                if inspect.isasyncgenfunction(factory):
                    found[kind] = await stack.enter_async_context(asynccontextmanager(factory)())
                else:
                    found[kind] = stack.enter_context(contextmanager(factory)())
            yield found


def _yielded(factory: Factory) -> Any:
    name = getattr(factory, "__qualname__", repr(factory))
    if not (inspect.isasyncgenfunction(factory) or inspect.isgeneratorfunction(factory)):
        raise UsageError(f"{name} must be a generator: open the resource, `yield` it, then close it.")
    if inspect.signature(factory).parameters:
        raise UsageError(f"{name} takes parameters; a resource is opened without any.")
    hint = get_type_hints(factory).get("return")
    origin = get_origin(hint)
    if origin is None or origin.__name__ not in _ITERATORS:
        raise UsageError(
            f"{name} must say what it yields: `-> AsyncIterator[Client]`, or `-> Iterator[Client]`."
        )
    return get_args(hint)[0]
