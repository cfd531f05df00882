"""Looks again at effects of which nobody knows, on the schedule of `look_again=`, and decides as a person would."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from holdfast.guards.backoff import Backoff
from holdfast.jobs.executor import Executor
from holdfast.jobs.look import Answer, Look
from holdfast.kernel.crashpoints import crashpoint
from holdfast.kernel.randomness import jittered
from holdfast.kernel.spawn import end, over, start
from holdfast.kernel.telemetry import note
from holdfast.store.ports import Store
from holdfast.store.records import Claim

LEASE = 120.0  # seconds for which nobody else looks at a job: a look ends before
LIMIT = 60.0  # seconds of one look, of a task without a timeout
EVERY = 1.0  # seconds between the questions what is due
LOOKED_BY = "look-up"  # who decides, in the audit log
_AT_ONCE = 8  # looks of one worker
_ELSE = Backoff(attempts=12, first=60, ceiling=3600)  # when its task did not come to the effect
_MOMENT = 0.1  # seconds more than what is not found has to settle
_SOON = 10.0  # seconds, about, until one whose lock is held is looked at


class Lookups:
    """`turn` looks at what is due, and says whether there was anything."""

    def __init__(
        self,
        store: Store,
        executor: Executor,
        tasks: Callable[[], Sequence[str]],
        queues: Sequence[str] | None = None,
    ) -> None:
        self._store, self._executor, self._tasks, self._queues = store, executor, tasks, queues

    async def look(self) -> None:
        while await self.turn():
            pass

    async def turn(self) -> bool:
        if not (tasks := self._tasks()):
            return False
        claims = await self._store.steps.to_look(tasks, self._queues, lease=LEASE, limit=_AT_ONCE)
        looks = [start(self._look_at(claim), name="look-up") for claim in claims]
        try:
            await over(*looks)
        except asyncio.CancelledError:
            for look in looks:
                await end(look)
            raise
        for look in looks:
            look.result()
        return bool(claims)

    async def _look_at(self, claim: Claim) -> None:
        crashpoint("look.taken")
        look = await self._executor.look(claim, LIMIT)
        if look is None:  # its lock is held
            await self._again(claim, jittered(_SOON), counted=False)
            return
        await self._decide(claim, look)

    async def _decide(self, claim: Claim, look: Look) -> None:
        waits = list[float | None]()  # of those that are still unknown: until the next look
        is_counted = False
        for answer in look.answers.values():
            crashpoint("look.answered")
            if not answer.is_told:
                is_counted = True
                waits.append(_next(answer))
            elif (rest := _settles(answer)) > 0:
                waits.append(rest + jittered(_MOMENT))
            else:
                await self._resolve(claim, answer)
        if not look.answers:
            await self._in_vain(claim, look)
        elif waits:
            after = min((wait for wait in waits if wait is not None), default=None)
            await self._again(claim, after, counted=is_counted)

    async def _in_vain(self, claim: Claim, look: Look) -> None:
        steps = await self._store.steps.load(claim.job_id, claim.generation)
        looks = max((each.looks for each in steps), default=0) + 1
        wait = _ELSE.delay(looks) if looks < _ELSE.attempts else None
        if await self._again(claim, wait, counted=True):  # else it was decided meanwhile
            why = look.why or "its task did not come to the effect"
            note("look.in_vain", job=claim.job_id, task=claim.task, why=why)

    async def _resolve(self, claim: Claim, answer: Answer) -> None:
        """The first decision counts: a person's that came before leaves nothing to decide."""
        resolved = await self._store.steps.resolve(
            claim.job_id, actor=LOOKED_BY, done=answer.found, effect=answer.record.name,
            result=answer.result, token=claim.token,
        )  # fmt: skip
        crashpoint("look.decided")
        note(
            "look.decided", job=claim.job_id, task=claim.task, effect=answer.record.name,
            done=answer.found, outcome=resolved.outcome,
        )  # fmt: skip

    async def _again(self, claim: Claim, after: float | None, *, counted: bool) -> bool:
        return await self._store.steps.looked(claim.job_id, claim.token, after=after, counted=counted)


def _settles(answer: Answer) -> float:
    """Seconds for which one that was not found may still appear: since nobody knows of it, nobody has begun its call."""
    if answer.found:
        return 0.0
    return answer.manner.settle - (answer.record.now - answer.record.at)


def _next(answer: Answer) -> float | None:
    """Until the next look; None: there was the last one. The first lookup was that of the run itself."""
    backoff = answer.manner.look_again
    made = answer.record.looks + 2
    return backoff.delay(made) if backoff is not None and made < backoff.attempts else None
