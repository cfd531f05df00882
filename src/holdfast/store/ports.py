"""What a store can do: one small Protocol for each subject. Every write of a holder names its token."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol

from holdfast.store.breakers import BreakerReport, BreakerState, FleetBreaker, GuardRecord, Probe
from holdfast.store.cache_ports import Cache
from holdfast.store.event_ports import Groups, Inbox, Outbox, Strays
from holdfast.store.findings import Finding
from holdfast.store.idempotency import KeyBusy, KeyClaim, KeyDone, KeyMismatch, KeyScope
from holdfast.store.quota import Grant, Pace, Return, Want
from holdfast.store.records import (
    AuditEntry,
    Claim,
    Count,
    Enqueued,
    Finish,
    Gated,
    JobRecord,
    Lease,
    NewJob,
    Paused,
    Pruned,
    Renewal,
    Replayed,
    Rescue,
    Tick,
)
from holdfast.store.saga_ports import Sagas
from holdfast.store.states import Held, State
from holdfast.store.steps import Resolved, Step, StepRecord, Undecided
from holdfast.store.view_ports import Versions, Views


class Tx(Protocol):
    """A transaction of the store's database: `$1`, `$2` on both stores, rows are tuples."""

    async def execute(self, sql: str, /, *params: Any) -> int:
        """Run one statement; returns how many rows it changed."""

    async def fetch(self, sql: str, /, *params: Any) -> list[tuple[Any, ...]]: ...


class Jobs(Protocol):
    async def enqueue(
        self, jobs: Sequence[NewJob], *, tx: object | None = None, again: bool = False
    ) -> list[Enqueued]:
        """Store the jobs, all or none. `again` repeats a call whose outcome was unknown: same ids, stored once."""

    async def get(self, job_id: str, *, tx: object | None = None) -> JobRecord | None:
        """Inside `tx` it needs no connection of its own, and sees what that has written."""

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
    ) -> list[JobRecord]:
        """Newest first. `before` is the id of a job, such as the last of one page: only older ones are the next."""

    async def count(self) -> list[Count]:
        """How many live jobs there are, by queue, state and reason."""

    async def cancel(self, job_id: str, reason: str) -> State | None:
        """Cancel a queued job, ask a running one to stop. Returns the state it is in now; None: no such job."""


class Claims(Protocol):
    async def claim(self, wants: Mapping[str, int], *, lease: float, worker: str) -> list[Claim]:
        """Take ready jobs, at most so many of each queue; highest priority first, then in order."""

    async def claim_suspect(self, queues: Sequence[str], *, lease: float, worker: str) -> Claim | None:
        """Take one suspect, to be run alone in its process."""

    async def renew(self, claims: Sequence[Claim], *, lease: float) -> list[Renewal]:
        """Hold on for another lease. A claim that is missing in the answer is lost."""

    async def finish(self, finishes: Sequence[Finish], *, tx: object | None = None) -> list[bool]:
        """Write outcomes. False: the claim was lost, and nothing was written for it."""

    async def finish_and_claim(
        self, finishes: Sequence[Finish], wants: Mapping[str, int], *, lease: float, worker: str
    ) -> tuple[Sequence[bool | None], list[Claim]]:
        """Both in one transaction: one commit for the last batch and the next.

        None: another's open transaction is in its way, and nobody else shall wait for that. Finish it by itself.
        """

    async def release(self, claims: Sequence[Claim]) -> list[bool]:
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

    async def replay(self, job_ids: Sequence[str], *, actor: str, args: str | None = None) -> list[Replayed]:
        """Queue dead jobs again, as if nothing had been tried; leaves an audit row for each.

        `args` takes the place of the arguments of the one job given, as its next generation.
        """

    async def discard(self, job_ids: Sequence[str], *, actor: str, reason: str) -> list[bool]:
        """Cancel dead jobs; leaves an audit row for each. False: it was not dead."""


class Steps(Protocol):
    """What jobs have done so far, for their later attempts."""

    async def write(self, claim: Claim, step: Step) -> bool:
        """Keep how far a step is, in place of what was kept of it; what is done stays. False: the claim was lost."""

    async def load(self, job_id: str, generation: int) -> list[StepRecord]:
        """The steps of one generation of a job, in the order of their first beginnings."""

    async def undecided(self, job_ids: Sequence[str]) -> list[Undecided]:
        """The effects that wait for a person, job by job and in order: the first 20 of each, without their results."""

    async def resolve(
        self, job_id: str, *, actor: str, done: bool, effect: str | None = None, result: str | None = None
    ) -> Resolved:
        """A person says whether an effect of an unknown job was done; leaves an audit row.

        The job is queued again once no other effect of it waits for a decision. One that is done has the `result`
        (JSON text); one that is not will be done. Without `effect` the only one is meant.
        """


class Holds(Protocol):
    async def promote(self, *, window: int = 100, limit: int = 500) -> int:
        """Look at jobs that have arrived or are due: make them ready, or hold them with the next reason.

        `window` is how many ready jobs a tenant may have in one queue. Returns how many were looked at.
        """

    async def hold(self, claims: Sequence[Claim], reason: Held) -> list[bool]:
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


class History(Protocol):
    async def prune(self, *, keep: float) -> Pruned:
        """Forget jobs, with their steps, that were over more than `keep` seconds ago. Also prepares room for the days ahead."""


class Leases(Protocol):
    async def acquire(self, name: str, *, owner: str, ttl: float) -> Lease | None:
        """Take the lease if it is free or has ended; None: another holds it."""

    async def renew(self, lease: Lease, *, ttl: float) -> Lease | None: ...
    async def release(self, lease: Lease) -> bool: ...
    async def get(self, name: str) -> Lease | None:
        """Who holds it now."""

    async def find(self, *, limit: int = 100) -> list[Lease]:
        """Those that are held now, by name."""

    async def steal(self, name: str, *, actor: str, reason: str) -> bool:
        """End someone's lease by an operator's word; leaves an audit row."""

    async def prune(self, *, limit: int = 1000) -> int:
        """Forget leases that have ended."""


class Schedules(Protocol):
    async def begin(self, schedule: str) -> float:
        """Where the schedule was left: its newest tick, else its beginning, which is when this was first asked.

        So times that pass before its first tick can be made up for. A beginning is no tick, and refuses none.
        """

    async def tick(self, schedule: str, nominal: float, job: NewJob) -> Enqueued | None:
        """Enqueue the job of one nominal time. None: it, or a later one, was enqueued before, by whomever.

        So the times of a schedule are ticked in order, and one that was passed over stays so.
        """

    async def last(self, schedule: str) -> Tick | None: ...
    async def reset(self, schedule: str, *, actor: str) -> bool:
        """Forget the newest tick or the beginning, such as one of a far future that a wrong clock made; leaves an audit row."""


class Keys(Protocol):
    async def begin(
        self, scope: KeyScope, key: str, *, fingerprint: str, lease: float, tx: object | None = None
    ) -> KeyClaim | KeyDone | KeyBusy | KeyMismatch: ...
    async def finish(
        self, claim: KeyClaim, response: str, *, keep: float, tx: object | None = None
    ) -> bool: ...
    async def abandon(self, claim: KeyClaim) -> bool:
        """Free the key: what it stands for was not done."""

    async def prune(self, *, limit: int = 1000) -> int: ...


class SharedGuards(Protocol):
    """What a fleet's breakers and limiters share. They decide by themselves, and look here about once a second."""

    async def take(self, wants: Sequence[Want]) -> list[Grant]:
        """Lease quota, each key once: between `least` and `most` units, or none. The answers are in the wants' order.

        In any time T, at most rate * T + burst units of a key are granted, to whomever; when rates and bursts differ between
        calls, by the largest of that time and the 5 seconds before, for all who ask. When the database's clock is set back, no more is granted, and a bucket goes on
        from there instead of waiting for the clock. A clock that jumps ahead by S counts as time that has passed: for each
        jump, up to rate * S units more, and never more than one burst. A pause ends by so much earlier.
        """

    async def give_back(self, returns: Sequence[Return]) -> None:
        """Put back what was not used, each unit once. What a bucket has drained since then has made room for it already."""

    async def slow(
        self, name: str, key: str, *, rate: float | None, pause: float = 0.0, version: int = 0
    ) -> Pace:
        """The other side asked for less: at most this rate from now on, and nothing for `pause` seconds, a day at most.

        `version` is that of the grant under which it asked. When the rate was lowered since, it stays as it is: many nodes
        that are told the same slow down once. Of several pauses the last to end counts. None leaves the rate.
        """

    async def sped(self, name: str, key: str, *, rate: float | None, version: int) -> Pace:
        """Raise the rate that was lowered; None: to what is wanted. Nothing happens when `version` is not the newest."""

    async def report(self, node: str, reports: Sequence[BreakerReport], *, ttl: float) -> list[FleetBreaker]:
        """Say how this node's breakers are, for `ttl` seconds, and hear of the same guards what holds for the fleet."""

    async def open_fleet(self, name: str, *, generation: int, open_for: float) -> bool:
        """Open it for everyone. False: the fleet's generation is another by now, and nothing was done."""

    async def close_fleet(self, name: str, *, generation: int) -> bool:
        """Close it for everyone before its time, in the same way."""

    async def probe(self, name: str, node: str, *, permits: int, lease: float) -> Probe | None:
        """A permit for one call while half open. None: `permits` of them are out already, and none has ended."""

    async def probed(self, probe: Probe) -> bool:
        """Give the permit back. False: it had ended."""


class Guards(SharedGuards, Protocol):
    """And what people decide about them, look at, and forget: that is in a database, whatever holds the rest."""

    async def hold(self, name: str, state: BreakerState, *, actor: str) -> None:
        """A person keeps the breaker open or closed, until `let_go`; leaves an audit row."""

    async def let_go(self, name: str, *, actor: str) -> bool: ...
    async def reset(self, name: str, *, actor: str) -> bool:
        """Begin anew: closed, no permits out, no rate lowered, no pause; leaves an audit row. False: nobody knows it.

        What a person holds stays held. Of slowed or paused keys at most 10,000 are freed at a time.
        """

    async def find(self, *, limit: int = 100) -> list[GuardRecord]:
        """By name."""

    async def prune(self, *, limit: int = 1000) -> int:
        """Forget what nodes said that are not heard of any more, and full buckets that nobody asked for in an hour.

        One whose rate was lowered is kept for a week.
        """


class Audit(Protocol):
    async def write(self, entry: AuditEntry, *, tx: object | None = None) -> None: ...
    async def find(self, *, subject: str | None = None, limit: int = 100) -> list[AuditEntry]:
        """Newest first."""


class Diagnosis(Protocol):
    async def examine(self, *, processes: int = 1) -> tuple[Finding, ...]:
        """Look for whatever could break a promise, for so many worker processes. Changes nothing; needs no open store."""


class Store(Protocol):
    """Everything that is kept. `open` checks that the database can keep the promises."""

    @property
    def jobs(self) -> Jobs: ...
    @property
    def claims(self) -> Claims: ...
    @property
    def holds(self) -> Holds: ...
    @property
    def dead(self) -> Dead: ...
    @property
    def steps(self) -> Steps: ...
    @property
    def wakeups(self) -> Wakeups: ...
    @property
    def queues(self) -> Queues: ...
    @property
    def history(self) -> History: ...
    @property
    def leases(self) -> Leases: ...
    @property
    def schedules(self) -> Schedules: ...
    @property
    def views(self) -> Views: ...
    @property
    def versions(self) -> Versions: ...
    @property
    def keys(self) -> Keys: ...
    @property
    def guards(self) -> Guards: ...
    @property
    def outbox(self) -> Outbox: ...
    @property
    def inbox(self) -> Inbox: ...
    @property
    def groups(self) -> Groups: ...
    @property
    def strays(self) -> Strays: ...
    @property
    def cache(self) -> Cache: ...
    @property
    def sagas(self) -> Sagas: ...
    @property
    def audit(self) -> Audit: ...
    @property
    def diagnosis(self) -> Diagnosis: ...

    async def open(self) -> None: ...
    async def close(self) -> None: ...
    async def migrate(self) -> list[str]:
        """Bring the tables up to date; returns the names of the migrations that were applied."""

    async def pending(self) -> list[str]:
        """The names of the migrations that are still to be applied; raises when the tables are newer or changed."""

    def transaction(self) -> AbstractAsyncContextManager[Tx]:
        """A transaction of our own; the block's end commits, an exception rolls back."""

    def twin(self) -> Store:
        """The same store for another event loop: itself when it serves any, else one to be opened and closed there."""

    async def now(self) -> float:
        """The database's clock."""

    async def raise_epoch(self) -> int:
        """After a restore or a fail-over that may have lost commits: make every later token larger than any before."""
