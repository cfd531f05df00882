"""From a call to a stored job: keys are rendered, the caller's story is carried on, and the store is asked once."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from typing import Any, TypeVar

from holdfast.jobs.blocking import Portal
from holdfast.jobs.handle import Handle
from holdfast.jobs.hooks import Hooks
from holdfast.jobs.options import Options, moment, seconds
from holdfast.jobs.task import Task
from holdfast.jobs.templates import Template
from holdfast.kernel.context import context
from holdfast.kernel.ids import new_id
from holdfast.store.ports import Store
from holdfast.store.records import NewJob

T = TypeVar("T")


class Enqueuer:
    """The sender of all tasks of one program."""

    _store: Store
    _portal: Portal

    def __init__(self, hooks: Hooks) -> None:
        self._hooks = hooks

    def send_to(self, store: Store, portal: Portal) -> None:
        """From now on jobs are stored there. Tasks know their sender before it is certain which database it will be."""
        self._store, self._portal = store, portal

    def build(
        self, task: Task[Any, Any], arguments: Mapping[str, Any], given: Options, job_id: str | None = None
    ) -> NewJob:
        says, around = task.declaration, context()
        names = {**task.signature.defaults, **arguments}
        return NewJob(
            id=job_id or new_id(),
            task=says.name,
            args=task.signature.encode(arguments),
            queue=says.queue if given.queue is None else given.queue,
            priority=says.priority if given.priority is None else given.priority,
            delay=seconds(given.delay),
            at=moment(given.at),
            expires=says.expires if given.expires is None else seconds(given.expires),
            deadline=around.deadline,
            unique=_key(given.unique, says.unique, names),
            ordered=_key(given.ordered, says.ordered, names),
            tenant=_key(given.tenant, says.tenant, names),
            concurrency=_key(None, says.concurrency, names),
            concurrency_limit=says.concurrency_limit,
            max_waiting=says.max_waiting,
            correlation_id=given.correlation_id or around.correlation_id,
            causation_id=around.job_id,
            trace=around.trace,
        )

    async def send(self, task: Task[Any, T], jobs: list[NewJob], given: Options) -> list[Handle[T]]:
        stored = await self._store.jobs.enqueue(jobs, tx=given.tx)
        if self._hooks.heard("on_enqueued"):
            for job, answer in zip(jobs, stored, strict=True):
                if answer.created:
                    await self._hooks.tell("on_enqueued", job)
        returns = task.signature.returns
        return [Handle(self._store, each.id, created=each.created, returns=returns) for each in stored]

    def blocking(self, work: Callable[[], Coroutine[Any, Any, T]], tx: object) -> T:
        return self._portal.run(work) if tx is None else self._portal.run_here(work)


def _key(given: str | None, declared: Template | None, names: Mapping[str, Any]) -> str | None:
    if given is not None or declared is None:
        return given
    return declared.render(names)
