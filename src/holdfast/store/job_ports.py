"""What a store can do with jobs, from the enqueue to the history. Every write of a holder names its token."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Protocol

from holdfast.store.records import (
    Cancelled,
    Claim,
    Count,
    Ended,
    Enqueued,
    Finish,
    Gated,
    JobRecord,
    NewJob,
    Paused,
    PausedTenant,
    Pruned,
    Renewal,
    Replayed,
    Rescue,
)
from holdfast.store.states import Held, State
from holdfast.store.steps import Resolved, Step, StepRecord, Undecided
from holdfast.store.story import Entry


class Jobs(Protocol):
    async def enqueue(
        self, jobs: Sequence[NewJob], *, tx: object | None = None, again: bool = False
    ) -> list[Enqueued]:
        """Store the jobs, all or none. `again` repeats a call whose outcome was unknown: same ids, stored once."""

    async def get(self, job_id: str, *, tx: object | None = None) -> JobRecord | None:
        """Inside `tx` it needs no connection of its own, and sees what that has written."""

    async def entries(self, job_id: str) -> list[Entry]:
        """What became of its claims that did not succeed, and how it was moved, in order. None of them: an empty list."""

    async def starting(self, prefix: str, *, limit: int = 10) -> list[str]:
        """The ids that begin so, in their order: a range of the primary key."""

    async def find(
        self,
        *,
        state: State | None = None,
        queue: str | None = None,
        task: str | None = None,
        held: Held | None = None,
        tenant: str | None = None,
        correlation_id: str | None = None,
        before: str | None = None,
        limit: int = 100,
        tx: object | None = None,
    ) -> list[JobRecord]:
        """Newest first. `before` is the id of a job, such as the last of one page: only older ones are the next."""

    async def of_unique(
        self, keys: Sequence[str], *, each: int = 1, tx: object | None = None
    ) -> list[JobRecord]:
        """The newest jobs with each of these unique keys, so many of each, in any state."""

    async def of_tenant(
        self,
        tenant: str,
        *,
        states: Collection[State] = (),
        before: str | None = None,
        limit: int = 100,
        tx: object | None = None,
    ) -> list[JobRecord]:
        """The jobs of a tenant in these states (none: in any), newest first, as `find` does."""

    async def count(self) -> list[Count]:
        """How many live jobs there are, by queue, state and reason. Of a crowd, what the last tally said, and when."""

    async def tally(self) -> int:
        """Count what is too much to be counted for each who asks, when it is time to. Returns how many kinds were counted."""

    async def cancel(
        self, job_id: str, reason: str, *, running: bool = True, tx: object | None = None
    ) -> State | None:
        """Cancel a queued, dead or unknown job. Returns the state it is in now; None: no such job.

        One that runs is asked to stop; with `running=False` it is left alone. RUNNING is the answer to both.
        """

    async def end(
        self, job_id: str, reason: str, *, running: bool = True, tx: object | None = None
    ) -> Cancelled | None:
        """The same as `cancel`, for who must know whether it was this call that has ended the job."""

    async def move(
        self,
        job_id: str,
        *,
        at: float | None = None,
        delay: float | None = None,
        priority: int | None = None,
        tx: object | None = None,
    ) -> State | None:
        """Give a queued job another time or priority; it keeps its id, its keys, its attempts and its steps.

        QUEUED: it was moved. Any other state is what was met, and nothing was changed; None: no such job.
        """


class Claims(Protocol):
    async def claim(self, wants: Mapping[str, int], *, lease: float, worker: str) -> list[Claim]:
        """Take ready jobs, at most so many of each queue; highest priority first, then in order."""

    async def claim_suspect(self, queues: Sequence[str], *, lease: float, worker: str) -> Claim | None:
        """Take one suspect, to be run alone in its process."""

    async def renew(self, claims: Sequence[Claim], *, lease: float) -> list[Renewal]:
        """Hold on for another lease. A claim that is missing in the answer is lost."""

    async def finish(
        self, finishes: Sequence[Finish], *, tx: object | None = None, parks: bool = False
    ) -> list[bool]:
        """Write outcomes. False: the claim was lost, and nothing was written for it.

        With `tx` a lost claim raises LeaseLost, and a success or a death with an open effect StepLeft; with `parks` that job is
        unknown then, as it is without `tx`.
        """

    async def finish_and_claim(
        self, finishes: Sequence[Finish], wants: Mapping[str, int], *, lease: float, worker: str
    ) -> tuple[Sequence[bool | None], list[Claim]]:
        """Both in one transaction: one commit for the last batch and the next.

        None: another's open transaction is in its way, and nobody else shall wait for that. Finish it by itself.
        """

    async def release(self, claims: Sequence[Claim], *, tx: object | None = None) -> list[bool]:
        """Put back what was not run, uncharged."""

    async def held_by(self, worker: str) -> list[Claim]:
        """What this worker has claimed and not ended: also what it does not know of, since the answer was lost."""

    async def report(self, claim: Claim, *, progress: float | None = None, note: str | None = None) -> bool:
        """Say how far a running job is, from 0 to 1, and in words. None leaves what was said. False: lost."""

    async def settle(self, job_id: str, token: int) -> bool:
        """Whether the finish of this claim was accepted: the question after a lost answer."""

    async def rescue(self, *, limit: int = 100, tx: object | None = None) -> list[Rescue]:
        """Put back jobs whose lease has ended; each is charged an interruption and is a suspect from then on."""

    async def rescue_worker(self, worker: str, *, tx: object | None = None) -> list[Rescue]:
        """The same, at once, for a worker whose process is known to be dead."""


class Dead(Protocol):
    """What a person decides about jobs that will not run again by themselves."""

    async def replay(
        self, job_ids: Sequence[str], *, actor: str, args: str | None = None, tx: object | None = None
    ) -> list[Replayed]:
        """Queue dead jobs again, as if nothing had been tried; leaves an audit row for each.

        `args` takes the place of the arguments of the one job given, as its next generation.
        """

    async def discard(
        self, job_ids: Sequence[str], *, actor: str, reason: str, tx: object | None = None
    ) -> list[bool]:
        """Cancel dead jobs; leaves an audit row for each. False: it was not dead."""


class StepLog(Protocol):
    """What jobs have done so far, for their later attempts."""

    async def write(self, claim: Claim, step: Step) -> bool:
        """Keep how far a step is, in place of what was kept of it; what is done stays. False: the claim was lost."""

    async def load(self, job_id: str, generation: int) -> list[StepRecord]:
        """The steps of one generation of a job, in the order of their first beginnings."""


class Steps(StepLog, Protocol):
    """The same, and what becomes of effects of which nobody knows."""

    async def undecided(self, job_ids: Sequence[str]) -> list[Undecided]:
        """The effects that wait for a person, job by job and in order: the first 20 of each, without their results."""

    async def to_look(
        self,
        tasks: Sequence[str],
        queues: Sequence[str] | None = None,
        *,
        lease: float,
        limit: int = 100,
    ) -> list[Claim]:
        """Unknown jobs of these tasks that are due to be looked up again, if their queue is not paused.

        They stay unknown: such a claim gives no right to write. Nobody else gets them for `lease` seconds.
        """

    async def looked(self, job_id: str, token: int, *, after: float | None, counted: bool = True) -> bool:
        """It was looked up in vain: again in so many seconds; None: never. `counted`: as one look. False: it was decided."""

    async def resolve(
        self,
        job_id: str,
        *,
        actor: str,
        done: bool,
        effect: str | None = None,
        result: str | None = None,
        token: int | None = None,
        tx: object | None = None,
    ) -> Resolved:
        """A person says whether an effect of an unknown job was done; leaves an audit row.

        The job is queued again once no other effect of it waits for a decision. One that is done has the `result`
        (JSON text); one that is not will be done. Without `effect` the only one is meant.
        With `token` only the doubt of that claim is: one that was decided since, and came up again, is another.
        """


class Holds(Protocol):
    async def promote(self, *, window: int = 100, limit: int = 500) -> int:
        """Look at jobs that have arrived or are due: make them ready, or hold them with the next reason.

        `window` is how many ready jobs a tenant may have in one queue. Returns how many were looked at.
        """

    async def explained(self, records: Sequence[JobRecord]) -> list[JobRecord]:
        """The same, those that are queued with `held_by`: what keeps them from running, and who has it. For people."""

    async def hold(self, claims: Sequence[Claim], reason: Held, *, tx: object | None = None) -> list[bool]:
        """Put back claimed jobs, uncharged, and hold them for a reason that only `unhold` ends."""

    async def unhold(
        self,
        reason: Held,
        *,
        queue: str | None = None,
        tasks: Sequence[str] | None = None,
        guard: str | None = None,
        limit: int = 500,
    ) -> int:
        """Let go of jobs that are held for this reason, the oldest first."""

    async def gated(self, *, after: str | None = None, limit: int = 100) -> list[Gated]:
        """The keys of guards for which jobs are held, in order, and how many. `after`: only keys behind this one."""

    async def gates(self, *, after: str | None = None, limit: int = 1000) -> list[str]:
        """The same keys without the numbers: nobody counts all of them several times a second."""

    async def open_gates(self, numbers: Mapping[str, int]) -> dict[str, int]:
        """Let go of so many jobs of each of these keys, the oldest first, all at once. Returns how many there were."""

    async def shut_gates(
        self,
        queues: Sequence[str],
        *,
        keys: Sequence[str] = (),
        guards: Sequence[str] = (),
        tasks: Sequence[str] = (),
        window: int = 100,
        limit: int = 1000,
    ) -> int:
        """Hold ready jobs that their guard would refuse, so that nobody claims each of them to find out.

        Looks at the next `limit` jobs of each queue: holds those of these rendered `keys`, and those of `tasks` that have any
        key of `guards`. One with a concurrency key is left alone. `window` is that of the tenants, as for promote.
        """

    async def expire(self, *, limit: int = 500) -> int:
        """Cancel queued jobs whose `expires` or deadline has passed."""

    async def end_expired(self, *, limit: int = 500, tx: object | None = None) -> list[Ended]:
        """The same as `expire`, for who must know which jobs those were."""

    async def repair(self, *, limit: int = 500) -> int:
        """Look again at every held key: finds nothing unless a promotion was missed."""


class Wakeups(Protocol):
    """Hints that there may be work, so that nobody polls often. They may be lost: polling is the truth."""

    def hint(self, queues: Iterable[str]) -> None:
        """Say that these queues have news. Never raises and never waits; many become one."""

    async def wait(self, queues: Collection[str], timeout: float) -> bool:  # noqa: ASYNC109  its end is an answer
        """True as soon as one of these queues may have had news since the last wait; False after `timeout` seconds."""


class Queues(Protocol):
    async def pause(self, queue: str, *, by: str) -> None:
        """No job of the queue is claimed from now on, by anyone."""

    async def resume(self, queue: str, *, by: str) -> None: ...
    async def paused(self) -> list[Paused]: ...
    async def waits(self, *, limit: int = 1000) -> dict[str, float]:
        """For how many seconds the oldest ready job of each queue has waited; not of paused ones. Cheap, however many there are."""


class Tenants(Protocol):
    async def pause(self, key: str, *, reason: str, by: str, tx: object | None = None) -> None:
        """No job of the tenant is claimed from the commit on; what runs goes on. One that is paused stays as it is."""

    async def resume(self, key: str, *, by: str, tx: object | None = None) -> None:
        """Its jobs are let go in the order in which they became due, and those that come meanwhile after them."""

    async def paused(self) -> list[PausedTenant]:
        """The longest pause first."""


class History(Protocol):
    async def prune(self, *, keep: float) -> Pruned:
        """Forget jobs, with their steps, that were over more than `keep` seconds ago. Also prepares room for the days ahead."""
