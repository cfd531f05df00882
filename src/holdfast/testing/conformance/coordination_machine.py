"""Leases, ticks and idempotency keys: the model, and random commands on it and on a store."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import count

import msgspec
from hypothesis import strategies as st
from hypothesis.stateful import invariant, precondition, rule

from holdfast.store.idempotency import KeyBusy, KeyClaim, KeyDone, KeyMismatch, KeyScope
from holdfast.store.records import ABANDONED, AuditEntry, Enqueued, Lease, NewJob, Tick
from holdfast.testing.conformance.kit import job as a_job
from holdfast.testing.conformance.store_machine import StoreMachine, same

SCOPES = (KeyScope("t1", "p", "r"), KeyScope("t2", "p", "r"))


@dataclass
class Key:
    """An idempotency key: in progress while it has no response."""

    claim: KeyClaim
    fingerprint: str
    until: float
    response: str | None = None


class Coordination:
    """`store.leases`, `store.schedules` and `store.keys`."""

    def __init__(self, now: float) -> None:
        self.now = now
        self.leases: dict[str, Lease] = {}
        self.ticks: dict[str, Tick] = {}
        self.keys: dict[tuple[KeyScope, str], Key] = {}
        self.audited = 0  # rows that steal and reset have left
        self._token = count(1)

    def held(self, name: str) -> Lease | None:
        lease = self.leases.get(name)
        return lease if lease is not None and lease.until > self.now else None

    def acquire(self, name: str, owner: str, ttl: float) -> Lease | None:
        holder = self.held(name)
        if holder is not None and holder.owner != owner:
            return None
        self.leases[name] = Lease(name, owner, next(self._token), self.now + ttl)
        return self.leases[name]

    def renew(self, lease: Lease, ttl: float) -> Lease | None:
        holder = self.held(lease.name)
        if holder is None or holder.token != lease.token:
            return None
        self.leases[lease.name] = Lease(lease.name, lease.owner, lease.token, self.now + ttl)
        return self.leases[lease.name]

    def release(self, lease: Lease) -> bool:
        holder = self.leases.get(lease.name)
        if holder is None or holder.token != lease.token:
            return False
        del self.leases[lease.name]
        return True

    def steal(self, name: str) -> bool:
        if self.held(name) is None:
            return False
        del self.leases[name]
        self.audited += 1
        return True

    def tick(self, schedule: str, nominal: float, job: NewJob) -> Enqueued | None:
        if (last := self.ticks.get(schedule)) is not None and nominal <= last.nominal:
            return None
        self.ticks[schedule] = Tick(schedule, nominal, job.id, self.now)
        return Enqueued(job.id, created=True)

    def reset(self, schedule: str) -> bool:
        self.audited += schedule in self.ticks
        return self.ticks.pop(schedule, None) is not None

    def prune_leases(self) -> int:
        ended = [name for name in self.leases if self.held(name) is None]
        for name in ended:
            del self.leases[name]
        return len(ended)

    def begin(
        self, scope: KeyScope, key: str, fingerprint: str, lease: float
    ) -> KeyClaim | KeyDone | KeyBusy | KeyMismatch:
        """An answer whose time is over is as good as forgotten; one in progress is so for its own request only."""
        known = self.keys.get((scope, key))
        if known is not None and not (known.response is not None and known.until <= self.now):
            if known.fingerprint != fingerprint:
                return KeyMismatch()
            if known.response is not None:
                return KeyDone(known.response)
            if known.until > self.now:
                return KeyBusy(known.until)
        claim = KeyClaim(scope, key, next(self._token), self.now + lease)
        self.keys[scope, key] = Key(claim, fingerprint, claim.until)
        return claim

    def in_progress(self, claim: KeyClaim) -> Key | None:
        key = self.keys.get((claim.scope, claim.key))
        mine = key is not None and key.claim.token == claim.token and key.response is None
        return key if mine else None

    def finish(self, claim: KeyClaim, response: str, keep: float) -> bool:
        if (key := self.in_progress(claim)) is None:
            return False
        key.response, key.until = response, self.now + keep
        return True

    def abandon(self, claim: KeyClaim) -> bool:
        if self.in_progress(claim) is None:
            return False
        del self.keys[claim.scope, claim.key]
        return True

    def prune(self) -> int:
        long_ago = self.now - ABANDONED
        over = [
            name
            for name, key in self.keys.items()
            if key.until <= (long_ago if key.response is None else self.now)
        ]
        for name in over:
            del self.keys[name]
        return len(over)


names = st.sampled_from(["n1", "n2"])
owners = st.sampled_from(["w1", "w2"])
times = st.sampled_from([5.0, 30.0])
places = st.integers(0, 30)


class CoordinationMachine(StoreMachine):
    def __init__(self) -> None:
        super().__init__()
        self.model = Coordination(self.do(self.store.now()))
        self.leases: list[tuple[Lease, Lease]] = []  # the store's and the model's
        self.claims: list[tuple[KeyClaim, KeyClaim]] = []
        self.jobs = 0
        self.highest = 0

    @rule(name=names, owner=owners, ttl=times)
    def acquire(self, name: str, owner: str, ttl: float) -> None:
        found = self.do(self.store.leases.acquire(name, owner=owner, ttl=ttl))
        expected = self.model.acquire(name, owner, ttl)
        same(_bare(found), _bare(expected))
        if found is not None and expected is not None:
            self._grown(found.token)
            self.leases.append((found, expected))

    @rule(place=places, ttl=times)
    @precondition(lambda self: self.leases)
    def renew(self, place: int, ttl: float) -> None:
        mine, model = self.leases[-1 - place % len(self.leases)]
        same(_bare(self.do(self.store.leases.renew(mine, ttl=ttl))), _bare(self.model.renew(model, ttl)))

    @rule(place=places)
    @precondition(lambda self: self.leases)
    def release(self, place: int) -> None:
        mine, model = self.leases[-1 - place % len(self.leases)]
        same(self.do(self.store.leases.release(mine)), self.model.release(model))

    @rule(name=names)
    def steal(self, name: str) -> None:
        same(self.do(self.store.leases.steal(name, actor="ada", reason="why")), self.model.steal(name))

    @rule()
    def prune_leases(self) -> None:
        same(self.do(self.store.leases.prune()), self.model.prune_leases())

    @rule(schedule=names, nominal=st.sampled_from([10.0, 20.5, 30.25]))
    def tick(self, schedule: str, nominal: float) -> None:
        job = a_job()
        expected = self.model.tick(schedule, nominal, job)
        self.jobs += expected is not None
        same(self.do(self.store.schedules.tick(schedule, nominal, job)), expected)

    @rule(schedule=names)
    def reset(self, schedule: str) -> None:
        same(self.do(self.store.schedules.reset(schedule, actor="ada")), self.model.reset(schedule))

    @rule(scope=st.sampled_from(SCOPES), key=names, fingerprint=st.sampled_from(["f", "g"]), lease=times)
    def begin(self, scope: KeyScope, key: str, fingerprint: str, lease: float) -> None:
        found = self.do(self.store.keys.begin(scope, key, fingerprint=fingerprint, lease=lease))
        expected = self.model.begin(scope, key, fingerprint, lease)
        if isinstance(found, KeyClaim) and isinstance(expected, KeyClaim):
            self._grown(found.token)
            self.claims.append((found, expected))
            same(msgspec.structs.replace(found, token=0), msgspec.structs.replace(expected, token=0))
        else:
            same(found, expected)

    @rule(place=places, keep=times)
    @precondition(lambda self: self.claims)
    def finish(self, place: int, keep: float) -> None:
        mine, model = self.claims[-1 - place % len(self.claims)]
        response = f'"{keep}"'
        same(
            self.do(self.store.keys.finish(mine, response, keep=keep)),
            self.model.finish(model, response, keep),
        )

    @rule(place=places)
    @precondition(lambda self: self.claims)
    def abandon(self, place: int) -> None:
        mine, model = self.claims[-1 - place % len(self.claims)]
        same(self.do(self.store.keys.abandon(mine)), self.model.abandon(model))

    @rule()
    def prune(self) -> None:
        same(self.do(self.store.keys.prune()), self.model.prune())

    @rule(seconds=st.sampled_from([1.0, 5.0, 30.0]))
    def advance(self, seconds: float) -> None:
        self.do(self.bench.advance(self.store, seconds))
        self.model.now += seconds

    @rule()
    def raise_epoch(self) -> None:
        self._grown(self.do(self.store.raise_epoch()) * 2**40)

    @invariant()
    def the_store_is_as_the_model(self) -> None:
        for name in ("n1", "n2"):
            same(_bare(self.do(self.store.leases.get(name))), _bare(self.model.held(name)))
            same(self.do(self.store.schedules.last(name)), self.model.ticks.get(name))
        held = [lease for name in ("n1", "n2") if (lease := self.model.held(name)) is not None]
        same([_bare(lease) for lease in self.do(self.store.leases.find())], [_bare(lease) for lease in held])
        same(sum(each.number for each in self.do(self.store.jobs.count())), self.jobs)
        rows: list[AuditEntry] = self.do(self.store.audit.find(limit=1000))
        same(len(rows), self.model.audited)

    def _grown(self, token: int) -> None:
        assert token > self.highest, f"token {token} is not above {self.highest}"
        self.highest = token


def _bare(lease: Lease | None) -> Lease | None:
    return None if lease is None else msgspec.structs.replace(lease, token=0)
