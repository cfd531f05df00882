"""A saga that was declared: a function that is started once for each id, and carried to its end by jobs."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator
from types import CodeType
from typing import Any, get_type_hints

from msgspec.structs import replace

from holdfast.events.patterns import is_type
from holdfast.guards.backoff import Backoff
from holdfast.jobs.blocking import BlockingTx, twin
from holdfast.jobs.job import Job
from holdfast.jobs.options import Options
from holdfast.jobs.registry import Registry
from holdfast.jobs.task import Sender, Task
from holdfast.kernel.awaits import Args, is_async, must_await
from holdfast.kernel.errors import UsageError
from holdfast.kernel.ids import new_id
from holdfast.kernel.names import check_name
from holdfast.kernel.show import show
from holdfast.kernel.tracing import tracer
from holdfast.sagas.carrier import carry
from holdfast.sagas.handle import SagaRun
from holdfast.sagas.script import Script
from holdfast.store.ports import Store
from holdfast.store.saga_records import NewSaga

PREFIX = "saga:"  # the task of a saga's jobs
_RETRY = Backoff(
    attempts=1_000, first=1.0, ceiling=60.0
)  # of the job: what fails there is no step of the saga


def _name(args: Args) -> str:
    saga: Saga = args[0]
    return saga.name


class Saga:
    """What `@hf.saga("battle.create")` makes of a function: `run = await create_battle.start(request, id="battle:7")`."""

    def __init__(
        self, name: str, script: Script, *, registry: Registry, sender: Sender, store: Callable[[], Store]
    ) -> None:
        functools.update_wrapper(self, _checked(script.function))
        self.name, self.script, self._store = check_name("saga", name), script, store
        self.function, self.options = script.function, script.options
        given = {
            "name": f"{PREFIX}{name}",
            "aliases": [f"{PREFIX}{each}" for each in self.options.aliases],
            "queue": self.options.queue,
            "priority": self.options.priority,
            "retry": _RETRY,
        }
        self.task: Task[Any, Any] = registry.add(self._carried(), sender, given)
        self.returns: Any = self.task.signature.returns

    def _carried(self) -> Callable[..., Any]:
        """The function as a task: the job stands where the saga does."""

        async def carrying(job: Job, /, *args: Any, **kwargs: Any) -> Any:
            return await carry(job, self._store(), self.script, (list(args), kwargs))

        parameters = list(inspect.signature(self.function).parameters.values())
        first = inspect.Parameter("job", inspect.Parameter.POSITIONAL_ONLY, annotation=Job)
        rest = parameters[1:]
        carrying.__signature__ = inspect.Signature([first, *rest])  # type: ignore[attr-defined]
        hints = _hints(self.function)
        carrying.__annotations__ = {"job": Job} | {
            each.name: hints[each.name] for each in rest if each.name in hints
        }
        if "return" in hints:
            carrying.__annotations__["return"] = hints["return"]
        carrying.__module__, carrying.__qualname__ = self.function.__module__, self.function.__qualname__
        carrying.__name__ = self.function.__name__
        carrying.declared = self.function  # type: ignore[attr-defined]
        return carrying

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the function here and now, with whatever stands for the saga: no job, no store."""
        return self.function(*args, **kwargs)

    @must_await("saga.start", name=_name)
    async def start(self, /, *args: Any, id: str | None = None, tx: Any = None, **kwargs: Any) -> SagaRun:  # noqa: A002  the word of sagas
        """Start the saga, once for each `id`: if there is one, that is what is returned, and `created` is False.

        With `tx`, it exists if and only if that commits.
        """
        new = self.new(args, kwargs, id=id, tx=tx)
        if (tracing := tracer()) is None:
            return await self._start(new, tx)
        job = new.job
        with tracing.sends(job.task, job.queue, [job.id], job.correlation_id) as span:
            trace = span.traceparent or job.trace
            return await self._start(replace(new, job=replace(job, trace=trace)), tx)

    async def _start(self, new: NewSaga, tx: object) -> SagaRun:
        given = tx.inner if isinstance(tx, BlockingTx) else tx
        [started] = await self._store().sagas.start([new], tx=given)
        if started.name not in (None, self.name, *self.options.aliases):
            raise UsageError(
                f"The id {new.id!r} is that of a saga {started.name!r}, so {self.name!r} was not started: there is one saga for each id. "
                f"Give it another, such as {f'{self.name}:{new.id}'!r}."
            )
        return SagaRun(self._store(), started.id, created=started.created, returns=self.returns)

    def new(
        self,
        args: tuple[Any, ...],
        kwargs: dict[str, Any] | None = None,
        *,
        id: str | None,  # noqa: A002  as above
        parent: str | None = None,
        tx: object = None,
    ) -> NewSaga:
        """As it is stored, with the job that will carry it."""
        job = self.task.sender.build(self.task, self.task.signature.bind(args, kwargs or {}), Options(tx=tx))
        story = job.correlation_id or job.id
        job = replace(job, deadline=None, correlation_id=story)  # a caller's deadline is not the saga's
        return NewSaga(
            id=new_id() if id is None else id,
            name=self.name,
            job=job,
            timeout=self.options.timeout,
            parent=parent,
        )

    def hears(self) -> list[str]:
        """Event types that it may wait for: those it says, and the texts in its code that can be one, if it waits for any."""
        return [*self.options.hears, *_named(inspect.unwrap(self.function).__code__)]

    def run(self, id: str) -> SagaRun:  # noqa: A002  as above
        """A handle on a saga that was started before."""
        return SagaRun(self._store(), check_name("saga", id), created=False, returns=self.returns)

    # --- for code without an event loop ---

    @property
    def _kept_in(self) -> Store:
        """Where it is kept."""
        return self._store()

    start_sync = twin(start, "saga")

    def __repr__(self) -> str:
        return f"<Saga {self.name}>"


def _named(code: CodeType) -> Iterator[str]:
    inner = [each for each in code.co_consts if isinstance(each, CodeType)]
    if "wait_for" in code.co_names:
        yield from (each for each in code.co_consts if isinstance(each, str) and is_type(each))
    for each in inner:
        yield from _named(each)


def _hints(function: Callable[..., Any]) -> dict[str, Any]:
    """The first parameter's may be anything: it is the saga."""
    names = dict(getattr(function, "__annotations__", {}))
    first = next(iter(inspect.signature(function).parameters), None)
    try:
        return get_type_hints(function, include_extras=True)
    except NameError:
        names.pop(first or "", None)
        bare = functools.partial(function)
        bare.__annotations__ = names
        return get_type_hints(bare, globalns=getattr(function, "__globals__", {}), include_extras=True)


def _checked(function: Callable[..., Any]) -> Callable[..., Any]:
    if not is_async(function):
        raise UsageError(f"@hf.saga stands on an `async def (saga, …)`; not on {show(function)}.")
    if not inspect.signature(function).parameters:
        raise UsageError(
            f"The function of a saga takes the saga first: async def {function.__name__}(saga, …)."
        )
    return function
