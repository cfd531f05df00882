"""The running job, as its task sees it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any

from holdfast.guards.backoff import Backoff
from holdfast.guards.guard import Guard, Keyed
from holdfast.jobs.calls import Call, refuse_inside
from holdfast.jobs.doors import door_of
from holdfast.jobs.effects import KEY_TTL, SETTLE, Manner, Policy
from holdfast.jobs.shown import arguments_of, event_of
from holdfast.jobs.story import Story
from holdfast.jobs.sync_job import BlockingJob
from holdfast.kernel.awaits import Args, Awaits, Block, must_await
from holdfast.kernel.errors import UsageError
from holdfast.store.ports import Tx

if TYPE_CHECKING:
    from holdfast.jobs.attempt import Attempt


def attempt_of(job: Job) -> Attempt:
    """What the engine knows of the run."""
    return job._attempt  # noqa: SLF001  hidden from programs, and not from the engine


def _of_job(verb: str) -> Callable[[Args, dict[str, Any]], Awaits]:
    """Where a verb of a running job is noticed. In a plain function nobody could await it."""

    def awaits(args: Args, _: dict[str, Any]) -> Awaits:
        if asyncio._get_running_loop() is None:  # noqa: SLF001  the public one raises where there is none
            raise UsageError(
                f"job.{verb} is to be awaited, and this thread has no event loop: nothing would be done. "
                f"In a plain function, call job.blocking.{verb}(…)."
            )
        return attempt_of(args[0]).awaits

    return awaits


_of_commit = _of_job("commit")


class Job:
    """One run of a job: a first parameter annotated `Job` receives it."""

    __slots__ = ("__weakref__", "_attempt")

    def __init__(self, attempt: Attempt) -> None:
        self._attempt = attempt

    @property
    def id(self) -> str:
        return self._attempt.claim.job_id

    @property
    def task(self) -> str:
        return self._attempt.claim.task

    @property
    def queue(self) -> str:
        return self._attempt.claim.queue

    @property
    def token(self) -> int:
        """Grows with every claim of any job: hand it to what must refuse a late write of an earlier run."""
        return self._attempt.claim.token

    @property
    def attempt(self) -> int:
        """Which run this is, from 1."""
        return self._attempt.claim.attempt

    @property
    def interruptions(self) -> int:
        """How many workers died under it."""
        return self._attempt.claim.interruptions

    @property
    def tenant(self) -> str | None:
        return self._attempt.claim.tenant

    @property
    def correlation_id(self) -> str | None:
        return self._attempt.claim.correlation_id

    @property
    def arguments(self) -> dict[str, Any]:
        """Its arguments by name, in the types of its task and with its defaults; what is secret is `***`.

        For handlers of an end and for middleware. As plain JSON values when they are not what the task takes (any more).
        """
        return arguments_of(self._attempt.task, self._attempt.claim.args)

    @property
    def event(self) -> Any:
        """The Event that it brings to a handler of `@hf.on`; None for other jobs. Data with secret parts is `***`."""
        return event_of(self._attempt.task, self._attempt.claim.args)

    @property
    def reason(self) -> str | None:
        """Why it is dead, unknown or cancelled, for handlers of that end; None while it runs."""
        return self._attempt.reason

    @property
    def stop_reason(self) -> str | None:
        """Why it is asked to stop; a long loop may look at it."""
        return self._attempt.stop_reason

    def key_for(self, name: str) -> str:
        """A key for another side that accepts them: the same in every attempt of this job, and in no other job.

        Only an operator's replay with other arguments starts a new one.
        """
        return self._attempt.key_for(name)

    @must_await("job.heartbeat", to=_of_job("heartbeat"))
    async def heartbeat(self, progress: float | None = None, note: str | None = None) -> None:
        """Say how far it is, for people: `progress` from 0 to 1, and a few words, of which the store keeps what fits.

        Raises LeaseLost when it is no longer ours.
        """
        await self._attempt.heartbeat(progress, note)

    @must_await("job.story", to=_of_job("story"))
    async def story(self) -> Story:
        """What has become of this job so far, as `hf.jobs.story` tells it: this run is its last claim.

        Ask for it before `job.commit()`, and store it there: then the receipt stays when the job is forgotten.
        """
        return await self._attempt.story()

    # --- what is done once, whatever happens to the worker ---

    @must_await("job.step", to=_of_job("step"))
    async def step(
        self,
        name: str,
        function: Callable[..., Any],
        /,
        *args: Any,
        guard: Guard[Any] | Keyed[Any] | None = None,
        retry: Backoff | None = None,
        timeout: float | None = None,  # noqa: ASYNC109  an option of the step
    ) -> Any:
        """Call the function, unless an earlier attempt has recorded its result: then that is returned.

        The result is recorded, as JSON, before this returns; a later attempt gets the same. The name is unique in the job.
        The call is made through the `guard`, which is asked first: refused, the job is held under its key, uncharged and
        without a slot. What is recorded asks nobody.
        """
        refuse_inside(name)
        call = Call(
            function, args, retry=retry, limit=timeout, threads=self._attempt.threads, door=door_of(guard)
        )
        return await self._attempt.step(name, call)

    @must_await("job.effect", to=_of_job("effect"))
    async def effect(
        self,
        name: str,
        function: Callable[..., Any],
        /,
        *args: Any,
        policy: Policy,
        reconcile: Callable[..., Any] | None = None,
        not_done: tuple[type[Exception], ...] = (),
        settle: float = SETTLE,
        key_ttl: float = KEY_TTL,
        look_again: Backoff | None = None,
        guard: Guard[Any] | Keyed[Any] | None = None,
        retry: Backoff | None = None,
        timeout: float | None = None,  # noqa: ASYNC109  an option of the effect
    ) -> Any:
        """Call what changes the world elsewhere. The intent is recorded before the call, the result after it.

        When nobody knows whether it was done (the worker died, the call timed out or failed): with `at_least_once` it is
        called again; with `keyed` too, while the other side remembers `job.key_for(name)`, for `key_ttl` seconds; with
        `at_most_once`, `reconcile(*args)` is asked, and answers Found(result), NotFound, which counts after `settle`
        seconds, or CannotTell. Without an answer the job is `unknown` and waits for a person; with `look_again` it is looked up
        again on that schedule as well. Exceptions of the types in
        `not_done` say that nothing was done. The `guard` is asked before the intent is written, as for a step; it does not
        repeat an `at_most_once` call.
        """
        refuse_inside(name)
        manner = Manner.of(
            policy=policy,
            reconcile=reconcile,
            not_done=not_done,
            settle=settle,
            key_ttl=key_ttl,
            look_again=look_again,
        )
        call = Call(
            function, args, retry=retry, limit=timeout, threads=self._attempt.threads, door=door_of(guard)
        )
        return await self._attempt.effect(name, call, manner)

    # --- success together with the task's own rows ---

    def commit(self, result: Any = None) -> AbstractAsyncContextManager[Tx]:
        """These rows and the job's success commit together, or neither does.

        `async with job.commit() as tx:` raises LeaseLost, and rolls back, when someone else may run the job now.
        """
        block = Block("async with")
        _of_commit((self,), {}).add(block, "job.commit", None)
        return self._attempt.commit(result, block)

    @must_await("job.complete", to=_of_job("complete"))
    async def complete(self, *, tx: Any, result: Any = None) -> None:
        """The same in the caller's own transaction: the job has succeeded if and only if that commits.

        If it was rolled back, this may be done again in the next one.
        """
        await self._attempt.complete(tx, result)

    @property
    def blocking(self) -> BlockingJob:
        """The same for tasks that are plain functions."""
        return BlockingJob(self._attempt)

    def __repr__(self) -> str:
        return f"<Job {self.id} of {self.task}, attempt {self.attempt}>"
