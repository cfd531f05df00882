"""How a function is called with an event: which of its parameters is what, and in which type it wants the data."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from types import FunctionType
from typing import Any, TypeVar, get_args, get_origin

from msgspec.structs import replace

from holdfast.events.envelope import Envelope
from holdfast.events.event import Event
from holdfast.jobs.blocking import BlockingTx
from holdfast.jobs.control import Reject
from holdfast.jobs.job import Job
from holdfast.jobs.signature import hints_of
from holdfast.kernel.awaits import is_async
from holdfast.kernel.codec import decode_stored
from holdfast.kernel.errors import PayloadError, UsageError
from holdfast.kernel.masking import MASK
from holdfast.kernel.show import show
from holdfast.store.ports import Tx

_HOW = (
    "A handler is a function (event), (event, tx), whose parameters have these names or are annotated (`order: Event`), "
    "and takes `job: Job` when it is asked for"
)


class Handler:
    """A function that hears events: `(event)` or `(event, tx)`, with `job: Job` and resources by their types beside them."""

    def __init__(self, function: Any) -> None:
        self.function: Callable[..., Any] = _checked(function)
        self.where = f"{function.__module__}.{function.__qualname__}"
        self.is_async = is_async(function)
        self._parameters = list(inspect.signature(function).parameters.values())
        hints = hints_of(function)
        self._roles = {each.name: _role(each, hints.get(each.name)) for each in self._parameters}
        self._check_roles()
        self.takes_tx = "tx" in self._roles.values()
        self.data = _data_type(hints.get(self._named("event")))
        self._check_data()
        # What is neither event, tx nor job is for the worker to supply.
        self.others = [
            each.replace(kind=inspect.Parameter.KEYWORD_ONLY, annotation=hints.get(each.name, Any))
            for each in self._parameters
            if self._roles[each.name] == "other"
        ]

    def _named(self, role: str) -> str:
        return next(name for name, its in self._roles.items() if its == role)

    def _check_roles(self) -> None:
        for each in self._parameters:
            if each.kind in (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD):
                raise UsageError(
                    f"{self.where} takes {each}, and nobody can tell what it wants. {_HOW}; "
                    "a decorator around it needs functools.wraps."
                )
        roles = list(self._roles.values())
        for role in ("event", "tx", "job"):
            if roles.count(role) > 1 or (role == "event" and role not in roles):
                raise UsageError(
                    f"{self.where} takes {roles.count(role)} parameters that are the {role}. {_HOW}."
                )

    def _check_data(self) -> None:
        """Now, and not with the first event."""
        try:
            decode_stored("null", self.data)
        except PayloadError:
            pass
        except UsageError as error:
            raise UsageError(f"{self.where}: the data of its event: {error}") from None

    def event(self, envelope: Envelope) -> Event[Any]:
        """With its data in the type that the function wants; what does not fit will not fit the next time either."""
        try:
            return envelope.event(self.data)
        except PayloadError as error:
            raise Reject(
                f"The data of event {envelope.id} ({envelope.type}) is not what {self.where} takes: {error}"
            ) from None

    def shown(self, envelope: Envelope, hidden: bool) -> Event[Any]:
        """For who looks at its job: also when its data is not what the function wants; without it when that is secret."""
        if hidden:
            return replace(envelope.event(), data=MASK)
        with suppress(PayloadError):
            return envelope.event(self.data)
        return envelope.event()

    def call(self, event: Event[Any], job: Job, tx: object, others: Mapping[str, Any]) -> Any:
        """What the function returns; of an async one, what is to be awaited."""
        given = {"event": event, "job": job, "tx": tx}
        args: list[Any] = []
        named: dict[str, Any] = {}
        for each in self._parameters:
            role = self._roles[each.name]
            if role == "other" and each.name not in others:
                continue  # it has a default
            value = others[each.name] if role == "other" else given[role]
            if each.kind is inspect.Parameter.POSITIONAL_ONLY:
                args.append(value)
            else:
                named[each.name] = value
        return self.function(*args, **named)


class EitherTx(BlockingTx):
    """For a plain function that may hand its `tx` to a coroutine: on a loop its verbs are awaited, elsewhere they wait."""

    def execute(self, sql: str, /, *params: Any) -> Any:
        return self.inner.execute(sql, *params) if _on_loop() else super().execute(sql, *params)

    def execute_many(self, sql: str, rows: Iterable[Sequence[Any]], /) -> Any:
        return self.inner.execute_many(sql, rows) if _on_loop() else super().execute_many(sql, rows)

    def fetch(self, sql: str, /, *params: Any) -> Any:
        return self.inner.fetch(sql, *params) if _on_loop() else super().fetch(sql, *params)

    def savepoint(self) -> Any:
        return self.inner.savepoint() if _on_loop() else super().savepoint()


def _on_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _checked(function: Any) -> FunctionType:
    if not isinstance(function, FunctionType):
        raise UsageError(f"@hf.on stands on a function; here it is on {show(function)}. {_HOW}.")
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise UsageError(f"{function.__qualname__} yields: a handler runs to its end.")
    return function


def _role(parameter: inspect.Parameter, hint: Any) -> str:
    if hint is Job:
        return "job"
    if hint in (Tx, BlockingTx) or (parameter.name == "tx" and hint is None):
        return "tx"
    if hint is Event or get_origin(hint) is Event or (parameter.name == "event" and hint in (None, Any)):
        return "event"
    return "other"


def _data_type(hint: Any) -> Any:
    found = get_args(hint)[:1] if get_origin(hint) is Event else ()
    return Any if not found or isinstance(found[0], TypeVar) else found[0]
