"""The dead letters: jobs that will not run again unless a person says so. Every action names who took it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from holdfast.jobs.registry import Registry
from holdfast.kernel.clock import sleep
from holdfast.kernel.codec import encode
from holdfast.kernel.errors import UsageError
from holdfast.kernel.masking import SECRETS_FIELD, unmasked
from holdfast.kernel.names import check_seconds
from holdfast.store.ports import Store
from holdfast.store.records import ARGS_LIMIT, JobRecord, Replayed
from holdfast.store.states import State

_PART = 100  # jobs of one transaction


class DeadLetters:
    def __init__(self, store: Store, registry: Registry) -> None:
        self._store, self._registry = store, registry

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
    ) -> list[Replayed]:
        """Queue them again, at most `rate` a second; `told` hears how many are done."""
        size = _PART if rate is None else max(1, min(_PART, int(check_seconds("rate", rate, minimum=0.001))))
        answers: list[Replayed] = []
        for start in range(0, len(job_ids), size):
            if start and rate is not None:
                await sleep(size / rate)
            answers += await self._store.dead.replay(job_ids[start : start + size], actor=actor)
            if told is not None:
                told(len(answers))
        return answers

    async def replay_edited(self, job_id: str, arguments: Mapping[str, Any], *, actor: str) -> Replayed:
        """Queue it again with other arguments, checked against its task when this program has it.

        A secret given as it is shown, `***`, stays what it was.
        """
        record = await self._store.jobs.get(job_id)
        if record is None or record.state is not State.DEAD:
            raise UsageError(
                f"Job {job_id} is not dead: {'there is none' if record is None else record.state}."
            )
        text = self._encoded(record, unmasked(arguments, record.args))
        [answer] = await self._store.dead.replay([job_id], actor=actor, args=text)
        return answer

    def _encoded(self, record: JobRecord, arguments: dict[str, Any]) -> str:
        if (task := self._registry.get(record.task)) is None:
            return encode(arguments, limit=ARGS_LIMIT, where="arguments")
        arguments.pop(SECRETS_FIELD, None)  # the task says which are secret now
        return task.signature.encode(task.signature.bind((), arguments))

    async def discard(self, job_ids: Sequence[str], *, actor: str, reason: str) -> list[bool]:
        """Cancel them for good."""
        return await self._store.dead.discard(job_ids, actor=actor, reason=reason)
