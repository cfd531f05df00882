"""From a call to a stored job: keys are rendered, the caller's story is carried on, and the store is asked once."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any, TypeVar

from msgspec.structs import replace

from holdfast.guards.deadline import time_left
from holdfast.jobs.blocking import BlockingTx, Portal
from holdfast.jobs.declaration import Keys
from holdfast.jobs.gating import render
from holdfast.jobs.handle import Canceller, Handle
from holdfast.jobs.hooks import Hooks
from holdfast.jobs.options import NONE, Options, by_time, moment, seconds
from holdfast.jobs.stories import story_in
from holdfast.jobs.task import Task
from holdfast.kernel.context import context
from holdfast.kernel.ids import new_id, new_ids
from holdfast.kernel.names import check_name
from holdfast.kernel.templates import Template
from holdfast.kernel.tracing import Tracer, is_traced, traceparent, tracer
from holdfast.store.ports import Store
from holdfast.store.records import Enqueued, NewJob

T = TypeVar("T")


class Enqueuer:
    """The sender of all tasks of one program."""

    _store: Store
    _portal: Portal
    _ends: Canceller

    def __init__(self, hooks: Hooks) -> None:
        self._hooks = hooks

    def send_to(self, store: Store, portal: Portal, ends: Canceller) -> None:
        """From now on jobs are stored there. Tasks know their sender before it is certain which database it will be."""
        self._store, self._portal, self._ends = store, portal, ends

    def build(self, task: Task[Any, Any], arguments: Mapping[str, Any], given: Options) -> NewJob:
        job_id = new_id()
        return _built(task, arguments, job_id, _shared(task, given, job_id), task.declaration.keys)

    def build_many(
        self, task: Task[Any, Any], calls: Sequence[Mapping[str, Any]], given: Options
    ) -> list[NewJob]:
        if not calls:
            return []
        job_ids, keys = new_ids(len(calls)), task.declaration.keys
        shared = _shared(task, given, job_ids[0])
        return [_built(task, each, job_id, shared, keys) for each, job_id in zip(calls, job_ids, strict=True)]

    async def send(self, task: Task[Any, T], jobs: list[NewJob], given: Options) -> list[Handle[T]]:
        tx = given.tx.inner if isinstance(given.tx, BlockingTx) else given.tx
        if (tracing := tracer()) is None:
            stored = await self._store.jobs.enqueue(jobs, tx=tx)
        else:
            jobs, stored = await self._traced(tracing, jobs, tx)
        if self._hooks.heard("on_enqueued"):
            for job, answer in zip(jobs, stored, strict=True):
                if answer.created:
                    await self._hooks.tell("on_enqueued", job)
        returns = task.signature.returns
        return [
            Handle(
                self._store,
                each.id,
                ends=self._ends,
                created=each.created,
                standing=each.standing,
                returns=returns,
            )
            for each in stored
        ]

    async def _traced(
        self, tracing: Tracer, jobs: list[NewJob], tx: object
    ) -> tuple[list[NewJob], list[Enqueued]]:
        first, ids = jobs[0], [job.id for job in jobs]
        with tracing.sends(first.task, first.queue, ids, first.correlation_id) as span:
            if (trace := span.traceparent) is not None:
                jobs = [replace(job, trace=trace) for job in jobs]
            return jobs, await self._store.jobs.enqueue(jobs, tx=tx)

    def blocking(self, work: Callable[[], Coroutine[Any, Any, T]], tx: object, instead: str) -> T:
        return self._portal.run_with(tx, work, instead=instead)


def _built(
    task: Task[Any, Any], arguments: Mapping[str, Any], job_id: str, shared: dict[str, Any], keys: Keys
) -> NewJob:
    args = task.signature.encode(arguments)
    if (lock := task.declaration.lock) is not None:
        _check_lock(lock, task, args)
    guard = task.declaration.gate
    if not keys and guard is None:
        return NewJob(id=job_id, args=args, **shared)
    names = {**task.signature.defaults, **arguments}
    rendered: dict[str, Any] = {
        option: template.render(names) for option, template in keys if option not in shared
    }
    if guard is not None:
        rendered["guard"] = render(guard, names)
    return NewJob(id=job_id, args=args, **rendered, **shared)


def _check_lock(lock: Template, task: Task[Any, Any], args: str) -> None:
    """As a worker will render it: a lock without a name fails every run of the job."""
    check_name("lock", lock.render({**task.signature.defaults, **task.signature.decode(args)}))


def _shared(task: Task[Any, Any], given: Options, first: str) -> dict[str, Any]:
    """What all jobs of one call have, whatever their arguments; without what is not said."""
    says, around = task.declaration, context()
    shared = {
        "task": says.name,
        "queue": says.queue,
        "priority": says.priority,
        "expires": says.expires,
        # That of the job around this call, and of a `with deadline(…)`: the store knows which is earlier, by its own clock.
        "deadline": around.deadline,
        "within": time_left(),
        "concurrency_limit": says.concurrency_limit,
        "max_waiting": says.max_waiting,
        "correlation_id": around.correlation_id,
        "causation_id": around.job_id,
        "trace": traceparent() if is_traced() else around.trace,
    }
    if given is not NONE:  # most calls say nothing
        shared |= _said(given, first, around.correlation_id)
    return {name: value for name, value in shared.items() if value is not None}


def _said(given: Options, first: str, story: str | None) -> dict[str, Any]:
    """What counts in place of the task's own."""
    said = {
        "queue": given.queue,
        "priority": given.priority,
        "delay": seconds(given.delay),
        "at": moment(given.at),
        "expires": seconds(given.expires),
        "unique": given.unique,
        "replace": given.replace or None,
        "ordered": given.ordered,
        "by_time": by_time(given.order_by),
        "tenant": given.tenant,
        "correlation_id": story_in(given.tx, first, given.correlation_id or story),
    }
    return {name: value for name, value in said.items() if value is not None}
