"""The dead letters: jobs that will not run again unless a person says so. Every action names who took it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from holdfast.jobs.blocking import inner
from holdfast.jobs.ends_by_hand import EndsByHand
from holdfast.jobs.options import NONE
from holdfast.jobs.registry import Registry
from holdfast.jobs.signature import NewerArguments
from holdfast.jobs.task import Task
from holdfast.kernel.awaits import must_await_all
from holdfast.kernel.clock import sleep
from holdfast.kernel.codec import encode
from holdfast.kernel.errors import UsageError
from holdfast.kernel.masking import SECRETS_FIELD, unmasked
from holdfast.kernel.names import check_seconds
from holdfast.kernel.show import show
from holdfast.store.ports import Store
from holdfast.store.records import ARGS_LIMIT, JobRecord, NewJob, Replayed
from holdfast.store.states import State

_PART = 100  # jobs of one transaction


@must_await_all("hf.dead")
class DeadLetters:
    def __init__(self, store: Store, registry: Registry, ends: EndsByHand) -> None:
        self._store, self._registry, self._ends = store, registry, ends

    async def find(
        self, *, task: str | None = None, queue: str | None = None, limit: int = 100
    ) -> list[JobRecord]:
        """Newest first."""
        return await self._store.jobs.find(state=State.DEAD, task=task, queue=queue, limit=limit)

    async def replay(
        self,
        job_ids: Sequence[str],
        *,
        actor: str,
        rate: float | None = None,
        told: Callable[[int], None] | None = None,
        tx: Any = None,
    ) -> list[Replayed]:
        """Queue them again, at most `rate` a second; `told` hears how many are done. With `tx`, when that commits."""
        if rate is not None and tx is not None:
            raise UsageError(
                "A replay at a rate takes a while, and no transaction waits for it: give rate or tx."
            )
        size = _PART if rate is None else max(1, min(_PART, int(check_seconds("rate", rate, minimum=0.001))))
        answers: list[Replayed] = []
        for start in range(0, len(job_ids), size):
            if start and rate is not None:
                await sleep(size / rate)
            part = job_ids[start : start + size]
            answers += await self._store.dead.replay(part, actor=actor, tx=inner(tx))
            if told is not None:
                told(len(answers))
        return answers

    async def replay_edited(
        self, job_id: str, arguments: Mapping[str, Any], *, actor: str, tx: Any = None
    ) -> Replayed:
        """Queue it again with other arguments, checked against its task when this program has it.

        A secret given as it is shown, `***`, stays what it was. A job keeps its keys, so arguments that make others of
        them are refused: it would run beside a job of its new key, or stand in the way of one of its old key.
        """
        tx = inner(tx)
        record = await self._store.jobs.get(job_id, tx=tx)
        if record is None or record.state is not State.DEAD:
            raise UsageError(
                f"Job {job_id} is not dead: {'there is none' if record is None else record.state}."
            )
        text = self._encoded(record, unmasked(arguments, record.args))
        [answer] = await self._store.dead.replay([job_id], actor=actor, args=text, tx=tx)
        return answer

    def _encoded(self, record: JobRecord, arguments: dict[str, Any]) -> str:
        if (task := self._registry.get(record.task)) is None:
            return encode(arguments, limit=ARGS_LIMIT, where="arguments")
        arguments.pop(SECRETS_FIELD, None)  # the task says which are secret now
        job = task.sender.build(task, task.signature.bind((), arguments), NONE)
        _refuse_other_keys(task, record, job)
        return job.args

    async def discard(self, job_ids: Sequence[str], *, actor: str, reason: str, tx: Any = None) -> list[bool]:
        """Cancel them for good. With `tx`, when that commits."""
        return await self._ends.discard(job_ids, actor=actor, reason=reason, tx=tx)


def _refuse_other_keys(task: Task[Any, Any], record: JobRecord, job: NewJob) -> None:
    before = _as_declared(task, record)
    for option, _ in task.declaration.keys:
        has, gets = getattr(record, option), getattr(job, option)
        # Else the caller has said it, and it stays.
        is_declared = before is None or getattr(before, option) == has
        if gets != has and is_declared:
            raise UsageError(
                f"With these arguments {option} is {show(gets)}, and job {record.id} has {show(has)}, which a replay keeps. "
                "Enqueue a new job with them, and discard this one."
            )


def _as_declared(task: Task[Any, Any], record: JobRecord) -> NewJob | None:
    """The job as its task makes it from the arguments that it has; None when the task does not take them any more."""
    try:
        return task.sender.build(task, task.signature.decode(record.args), NONE)
    except (UsageError, NewerArguments):
        return None
