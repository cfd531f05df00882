"""What a store can do for machines that share something: leases, schedules, idempotency keys, and guards."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from holdfast.store.breakers import BreakerReport, BreakerState, FleetBreaker, GuardRecord, GuardSeen, Probe
from holdfast.store.idempotency import KeyBusy, KeyClaim, KeyDone, KeyMismatch, KeyScope
from holdfast.store.quota import Grant, Pace, Return, Want
from holdfast.store.records import (
    Enqueued,
    Lease,
    NewJob,
    Tick,
)


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


class Sessions(Protocol):
    async def end_stuck(self, *, after: float) -> int:
        """End sessions of ours whose client has stood still in the middle of a statement for so long: others wait for their locks."""


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
    async def enter(
        self, tx: object, scope: KeyScope, key: str, *, fingerprint: str, lease: float, wait: float
    ) -> KeyClaim | KeyDone | KeyBusy | KeyMismatch:
        """Begin this transaction, and claim the key in it. Whatever is answered, it has begun; who raises has ended it.

        Another transaction that has the key is waited for so long. The claim commits with what follows, or was never there.
        """

    async def finish(
        self, claim: KeyClaim, response: str, *, keep: float, tx: object | None = None
    ) -> bool: ...
    async def answer(self, claim: KeyClaim, response: str, *, keep: float, tx: object | None = None) -> None:
        """The same as the last thing in a transaction, which the caller commits now. One of the two raises KeyLost."""

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

    async def ahead(self, name: str, keys: Sequence[str], *, seconds: float) -> list[float]:
        """How many units of each key may be had within so many seconds, on the terms of who asked last; nothing is taken.

        Of a key that nobody has asked for there is no bound: `inf`.
        """

    async def give_back(self, returns: Sequence[Return]) -> None:
        """Put back what was not used, each unit once. What a bucket has drained since then has made room for it already."""

    async def slow(
        self,
        name: str,
        key: str,
        *,
        rate: float | None,
        pause: float = 0.0,
        version: int = 0,
        in_row: int = 0,
    ) -> Pace:
        """The other side asked for less: at most this rate from now on, and nothing for `pause` seconds, a day at most.

        `version` is that of the grant under which it asked. When the rate was lowered since, it stays as it is: many nodes
        that are told the same slow down once. Of several pauses the last to end counts. None leaves the rate.
        `in_row`: how often it was too much since it last answered, as far as the one who asks knows. The largest counts.
        """

    async def calm(self, name: str, key: str, *, in_row: int) -> Pace:
        """The other side has answered: that count begins anew, unless it is another by now."""

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

    async def look(self, name: str, key: str = "") -> GuardSeen:
        """One guard and one key of its limiter, quick enough for a page. Without a key, jobs of all its keys are counted."""

    async def prune(self, *, limit: int = 1000) -> int:
        """Forget what nodes said that are not heard of any more, and full buckets that nobody asked for in an hour.

        One whose rate was lowered is kept for a week.
        """
