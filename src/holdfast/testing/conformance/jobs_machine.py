"""Random commands, in any order, on a store and on the model: after each of them both must say the same."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, TypeVar

import msgspec
from hypothesis import strategies as st
from hypothesis.stateful import invariant, precondition, rule

from holdfast.kernel.errors import LeaseLost, StepLeft, TooManyWaiting
from holdfast.kernel.ids import new_id
from holdfast.kernel.outcomes import Dead, Done, Outcome
from holdfast.store.event_records import Delivery
from holdfast.store.records import Claim, Enqueued, Finish, JobRecord, NewJob, Rescue
from holdfast.store.states import OVER, Held, State
from holdfast.store.steps import Step
from holdfast.testing.conformance.jobs_strategies import (
    LIMITS,
    QUEUES,
    options,
    outcomes,
    picks,
    steps,
    wants,
    workers,
)
from holdfast.testing.conformance.kit import Rollback
from holdfast.testing.conformance.model import Jobs
from holdfast.testing.conformance.store_machine import StoreMachine, known, same

T = TypeVar("T")
LEASE = 30.0


class JobsMachine(StoreMachine):
    """Drives `jobs`, `claims`, `holds`, `dead`, `steps` and `queues`. Rules that often go together are one, so that more happens."""

    def __init__(self) -> None:
        super().__init__()
        self.model = Jobs(self.do(self.store.now()))
        self.made: list[NewJob] = []
        self.calls: list[list[NewJob]] = []  # each as it was enqueued, to be repeated
        self.claims: list[tuple[Claim, Claim]] = []  # the store's and the model's, of every claim there was
        self.highest = 0

    # Jobs.

    @rule(many=st.lists(options(), min_size=1, max_size=4), at_once=st.booleans())
    def enqueue(self, many: list[dict[str, Any]], *, at_once: bool) -> None:
        self._enqueue(self._new(many), again=False)
        if at_once:
            self.promote(100, 500)

    @rule(place=st.integers(0, 30))
    @precondition(lambda self: self.calls)
    def enqueue_again(self, place: int) -> None:
        (jobs,) = _pick(self.calls, [place])
        self._enqueue(jobs, again=True)

    @rule(many=st.lists(options(), min_size=1, max_size=3), commit=st.booleans())
    def enqueue_in_a_transaction(self, many: list[dict[str, Any]], *, commit: bool) -> None:
        jobs = self._new(many)

        async def transaction() -> list[Enqueued]:
            async with self.store.transaction() as tx:
                answers = await self.store.jobs.enqueue(jobs, tx=tx)
                if commit:
                    return answers
                raise Rollback

        if commit:
            same(_or_refused(lambda: self.do(transaction())), _or_refused(lambda: self.model.enqueue(jobs)))
        else:
            with suppress(Rollback, TooManyWaiting):
                self.do(transaction())

    @rule(many=st.lists(options(), min_size=1, max_size=4))
    def deliver(self, many: list[dict[str, Any]]) -> None:
        jobs = self._new([{name: each[name] for name in each if name != "unique"} for each in many])
        deliveries = [Delivery(job.id, job) for job in jobs]
        same(
            _or_refused(lambda: self.do(self.store.inbox.deliver("group", deliveries))),
            _or_refused(lambda: self.model.deliver(jobs)),
        )

    @rule(place=st.integers(0, 9), reason=st.sampled_from(["why", "because"]), running=st.booleans())
    @precondition(lambda self: self.made)
    def cancel(self, place: int, reason: str, *, running: bool) -> None:
        (job,) = _pick(self.made, [place])
        found = self.do(self.store.jobs.cancel(job.id, reason, running=running))
        same(found, self.model.cancel(job.id, reason, running=running))

    @rule(
        place=st.integers(0, 9),
        delay=st.sampled_from([None, 0.0, 0.0, 5.0]),
        priority=st.sampled_from([None, 3]),
        within=st.booleans(),
    )
    @precondition(lambda self: self.made)
    def move(self, place: int, delay: float | None, priority: int | None, *, within: bool) -> None:
        if delay is None and priority is None:
            return
        (job,) = _pick(self.made, [place])
        at = None if delay is None else self.model.now + delay

        async def move() -> State | None:
            if not within:
                return await self.store.jobs.move(job.id, at=at, priority=priority)
            async with self.store.transaction() as tx:
                return await self.store.jobs.move(job.id, delay=delay, priority=priority, tx=tx)

        same(self.do(move()), self.model.move(job.id, at=at, priority=priority))

    # Claims.

    @rule(wanted=wants, worker=workers)
    def claim(self, wanted: dict[str, int], worker: str) -> None:
        self._claimed(
            self.do(self.store.claims.claim(wanted, lease=LEASE, worker=worker)),
            self.model.claim(wanted, lease=LEASE, worker=worker),
        )

    @rule(tenant=st.sampled_from(["t1", "t2"]), commit=st.booleans())
    def pause_tenant(self, tenant: str, *, commit: bool) -> None:
        async def pause() -> None:
            async with self.store.transaction() as tx:
                await self.store.tenants.pause(tenant, reason="why", by="ada", tx=tx)
                if not commit:
                    raise Rollback

        with suppress(Rollback):
            self.do(pause())
            self.model.pause_tenant(tenant)

    @rule(tenant=st.sampled_from(["t1", "t2"]))
    def resume_tenant(self, tenant: str) -> None:
        self.do(self.store.tenants.resume(tenant, by="ada"))
        self.model.resume_tenant(tenant)

    @rule(queue=st.sampled_from(QUEUES))
    def claim_while_paused(self, queue: str) -> None:
        self.do(self.store.queues.pause(queue, by="ada"))
        self.model.paused.add(queue)
        self.claim({"a": 2, "b": 2}, "w1")
        self.claim_suspect("w1")
        self.do(self.store.queues.resume(queue, by="ada"))
        self.model.paused.discard(queue)

    @rule(worker=workers)
    def claim_suspect(self, worker: str) -> None:
        found = self.do(self.store.claims.claim_suspect(QUEUES, lease=LEASE, worker=worker))
        expected = self.model.claim_suspect(QUEUES, lease=LEASE, worker=worker)
        self._claimed([] if found is None else [found], [] if expected is None else [expected])

    @rule(places=picks, lease=st.sampled_from([10.0, LEASE]))
    @precondition(lambda self: self.claims)
    def renew(self, places: list[int], lease: float) -> None:
        pairs = _pick(self.claims, places)
        found = self.do(self.store.claims.renew([mine for mine, _ in pairs], lease=lease))
        expected = self.model.renew([model for _, model in pairs], lease=lease)
        same(
            {(r.job_id, r.lease_until, r.cancel) for r in found},
            {(r.job_id, r.lease_until, r.cancel) for r in expected},
        )

    @rule(
        place=st.integers(0, 5),
        progress=st.sampled_from([None, 0.0, 0.25, 1.0]),
        words=st.sampled_from([None, "half", ""]),
    )
    @precondition(lambda self: self.claims)
    def report(self, place: int, progress: float | None, words: str | None) -> None:
        ((mine, model),) = _pick(self.claims, [place])
        found = self.do(self.store.claims.report(mine, progress=progress, note=words))
        same(found, self.model.report(model, progress, words))

    @rule(places=picks, ends=st.lists(outcomes(), min_size=4, max_size=4))
    @precondition(lambda self: self.claims)
    def finish(self, places: list[int], ends: list[Outcome]) -> None:
        mine, models = self._finishes(places, ends)
        same(self.do(self.store.claims.finish(mine)), self.model.finish(models))
        self._settle(mine, models)

    @rule(places=picks, ends=st.lists(outcomes(), min_size=4, max_size=4), wanted=wants)
    @precondition(lambda self: self.claims)
    def finish_and_claim(self, places: list[int], ends: list[Outcome], wanted: dict[str, int]) -> None:
        mine, models = self._finishes(places, ends)
        if any(self.model.rows[model.job_id].steps for model, _ in models):
            return  # one with steps may be left to a call of its own, and the claim comes before that
        accepted, found = self.do(self.store.claims.finish_and_claim(mine, wanted, lease=LEASE, worker="w1"))
        same(accepted, self.model.finish(models))
        self._claimed(found, self.model.claim(wanted, lease=LEASE, worker="w1"))

    @rule(place=st.integers(0, 30), outcome=outcomes())
    @precondition(lambda self: self.claims)
    def finish_in_a_transaction(self, place: int, outcome: Outcome) -> None:
        mine, models = self._finishes([place], [outcome])
        row = self.model.holds(models[0][0])
        is_refused = row is not None and isinstance(outcome, Done | Dead) and bool(row.open_effects())

        async def transaction() -> type[Exception] | None:
            try:
                async with self.store.transaction() as tx:
                    await self.store.claims.finish(mine, tx=tx)
            except (LeaseLost, StepLeft) as error:
                return type(error)
            return None

        same(self.do(transaction()), LeaseLost if row is None else StepLeft if is_refused else None)
        if not is_refused:
            self.model.finish(models)

    @rule(places=picks)
    @precondition(lambda self: self.claims)
    def release(self, places: list[int]) -> None:
        pairs = self._pairs(places)
        found = self.do(self.store.claims.release([mine for mine, _ in pairs]))
        same(found, self.model.release([model for _, model in pairs]))

    @rule(seconds=st.sampled_from([0.0, 5.0, LEASE]))
    def rescue(self, seconds: float) -> None:
        self._pass(seconds)
        same(_rescued(self.do(self.store.claims.rescue())), _rescued(self.model.rescue()))

    @rule(times=st.integers(1, 3))
    def die_under_a_suspect(self, times: int) -> None:
        for _ in range(times):
            self.promote(100, 500)
            self.claim_suspect("w1")
            self.rescue_worker("w1")

    @rule(worker=workers, within=st.booleans())
    def rescue_worker(self, worker: str, *, within: bool = False) -> None:
        async def rescue() -> list[Rescue]:
            if not within:
                return await self.store.claims.rescue_worker(worker)
            async with self.store.transaction() as tx:
                return await self.store.claims.rescue_worker(worker, tx=tx)

        same(_rescued(self.do(rescue())), _rescued(self.model.rescue_worker(worker)))

    # Steps.

    @rule(place=st.integers(0, 5), step=steps())
    @precondition(lambda self: self.claims)
    def write_step(self, place: int, step: Step) -> None:
        ((mine, model),) = _pick(self.claims, [place])
        same(self.do(self.store.steps.write(mine, step)), self.model.write(model, step))

    @rule(place=st.integers(0, 9), done=st.booleans())
    @precondition(lambda self: self.model.rows)
    def resolve(self, place: int, *, done: bool) -> None:
        unknown = [job_id for job_id, row in self.model.rows.items() if row.state is State.UNKNOWN]
        (job_id,) = _pick(unknown or list(self.model.rows), [place])
        same(
            self.do(self.store.steps.resolve(job_id, actor="ada", done=done)),
            self.model.resolve(job_id, done=done),
        )

    # What a person decides about the dead.

    @rule(places=picks, edited=st.booleans(), repeated=st.booleans())
    @precondition(lambda self: self.made)
    def replay(self, places: list[int], *, edited: bool, repeated: bool) -> None:
        job_ids = self._mostly_dead(places)
        if edited:
            job_ids = job_ids[:1]
        elif repeated:
            job_ids += job_ids
        args = '{"edited": true}' if edited else None
        found = self.do(self.store.dead.replay(job_ids, actor="ada", args=args))
        same(found, self.model.replay(job_ids, args))

    @rule(places=picks)
    @precondition(lambda self: self.made)
    def discard(self, places: list[int]) -> None:
        job_ids = self._mostly_dead(places)
        found = self.do(self.store.dead.discard(job_ids, actor="ada", reason="no use"))
        same(found, self.model.discard(job_ids, "no use"))

    def _mostly_dead(self, places: list[int]) -> list[str]:
        """Dead jobs first, so that there is something to decide; and one that may be in any state."""
        dead = [job_id for job_id, row in self.model.rows.items() if row.state is State.DEAD]
        chosen = _pick(dead, places) if dead else []
        return [*chosen, *(job.id for job in _pick(self.made, places[:1]) if job.id not in chosen)]

    # Holds and queues.

    @rule(window=st.sampled_from([1, 2, 100]), limit=st.sampled_from([1, 3, 500]))
    def promote(self, window: int, limit: int) -> None:
        found = self.do(self.store.holds.promote(window=window, limit=limit))
        same(found, self.model.promote(window=window, limit=limit))

    @rule(places=picks, reason=st.sampled_from([Held.GUARD, Held.UNKNOWN_TASK]))
    @precondition(lambda self: self.claims)
    def hold(self, places: list[int], reason: Held) -> None:
        pairs = self._pairs(places)
        found = self.do(self.store.holds.hold([mine for mine, _ in pairs], reason))
        same(found, self.model.hold([model for _, model in pairs], reason))

    @rule(
        reason=st.sampled_from([Held.GUARD, Held.UNKNOWN_TASK]),
        queue=st.sampled_from([None, *QUEUES]),
        guard=st.sampled_from([None, "g1"]),
        limit=st.sampled_from([1, 500]),
    )
    def unhold(self, reason: Held, queue: str | None, guard: str | None, limit: int) -> None:
        found = self.do(self.store.holds.unhold(reason, queue=queue, guard=guard, limit=limit))
        same(found, self.model.unhold(reason, queue=queue, guard=guard, limit=limit))

    @rule(numbers=st.sampled_from([{"g1": 1}, {"g2": 3, "g1": 2}, {"g1": 0, "g3": 1}]))
    def open_gates(self, numbers: dict[str, int]) -> None:
        same(self.do(self.store.holds.open_gates(numbers)), self.model.open_gates(numbers))

    @rule(queues=st.sampled_from([["a"], ["b", "a"]]), limit=st.sampled_from([1, 3, 1000]))
    def shut_gates(self, queues: list[str], limit: int) -> None:
        found = self.do(self.store.holds.shut_gates(queues, keys=["g1"], window=2, limit=limit))
        same(found, self.model.shut_gates(queues, keys=["g1"], window=2, limit=limit))

    @rule(seconds=st.sampled_from([0.0, 4.0]))
    def expire(self, seconds: float) -> None:
        self._pass(seconds)
        same(self.do(self.store.holds.expire()), self.model.expire())

    @rule()
    def repair(self) -> None:
        same(self.do(self.store.holds.repair()), self.model.repair())

    @rule(seconds=st.sampled_from([0.5, 5.0, 31.0]), restored=st.sampled_from([False, False, True]))
    def advance(self, seconds: float, *, restored: bool) -> None:
        self._pass(seconds)
        if restored:
            epoch = self.do(self.store.raise_epoch())
            assert epoch * 2**40 > self.highest, f"epoch {epoch} does not lie above token {self.highest}"
            self.highest = epoch * 2**40 - 1

    # After every command.

    @invariant()
    def the_store_is_as_the_model(self) -> None:
        records = self.do(self.store.jobs.find(limit=10_000))
        self._compare_records(records)
        self._compare_steps()
        self._compare_counts()
        _check_limits(records)

    def _compare_records(self, records: list[JobRecord]) -> None:
        found = {record.id: known(record) for record in records}
        expected = {job_id: known(row.record()) for job_id, row in self.model.rows.items()}
        same(set(found), set(expected))
        for job_id, record in expected.items():
            same(found[job_id], record)

    def _compare_steps(self) -> None:
        for job_id, row in self.model.rows.items():
            if row.steps:
                found = self.do(self.store.steps.load(job_id, row.job.generation))
                same(
                    {each.name: (each.kind, each.progress) for each in found},
                    {name: (step.kind, step.progress) for name, (step, _) in row.steps.items()},
                )

    def _compare_counts(self) -> None:
        found = {(c.queue, c.state, c.held): c.number for c in self.do(self.store.jobs.count())}
        rows = (row for row in self.model.rows.values() if row.live)
        same(found, dict(Counter((row.job.queue, row.state, row.held) for row in rows)))
        gates = Counter(
            row.job.guard for row in self.model.rows.values() if row.live and row.held is Held.GUARD
        )
        same({gated.guard: gated.number for gated in self.do(self.store.holds.gated())}, dict(gates))
        same(self.do(self.store.holds.gates()), sorted(filter(None, gates)))
        stopped = sorted(tenant for tenant, is_paused in self.model.stopped.items() if is_paused)
        same(sorted(each.tenant for each in self.do(self.store.tenants.paused())), stopped)
        same([paused.queue for paused in self.do(self.store.queues.paused())], sorted(self.model.paused))

    # Helpers.

    def _pass(self, seconds: float) -> None:
        if seconds:
            self.do(self.bench.advance(self.store, seconds))
            self.model.now += seconds

    def _settle(self, mine: list[Finish], models: list[tuple[Claim, Outcome]]) -> None:
        for item, (model, _) in zip(mine, models, strict=True):
            found = self.do(self.store.claims.settle(item.claim.job_id, item.claim.token))
            same(found, self.model.settle(model.job_id, model.token))

    def _new(self, many: list[dict[str, Any]]) -> list[NewJob]:
        jobs: list[NewJob] = []
        for each in many:
            if (key := each.get("concurrency")) is not None:
                each = {**each, "concurrency_limit": LIMITS[key]}  # noqa: PLW2901
            if "max_waiting" in each:
                each = {**each, "task": "bounded"}  # noqa: PLW2901
            jobs.append(NewJob(id=_growing_id(len(self.made) + len(jobs)), **{"task": "t", **each}))
        self.made += jobs
        self.calls.append(jobs)
        return jobs

    def _enqueue(self, jobs: list[NewJob], *, again: bool) -> None:
        same(
            _or_refused(lambda: self.do(self.store.jobs.enqueue(jobs, again=again))),
            _or_refused(lambda: self.model.enqueue(jobs)),
        )

    def _claimed(self, found: list[Claim], expected: list[Claim]) -> None:
        same(_by_queue(found), _by_queue(expected))
        by_id = {claim.job_id: claim for claim in expected}
        for claim in found:
            assert claim.token > self.highest, f"token {claim.token} is not above {self.highest}"
            self.claims.append((claim, by_id[claim.job_id]))
        self.highest = max([self.highest, *(claim.token for claim in found)])

    def _pairs(self, places: list[int]) -> list[tuple[Claim, Claim]]:
        """Each job at most once, oldest first: in which order one call puts jobs back is not promised."""
        chosen = {mine.job_id: (mine, model) for mine, model in _pick(self.claims, places)}
        return [chosen[job_id] for job_id in sorted(chosen)]

    def _finishes(
        self, places: list[int], ends: list[Outcome]
    ) -> tuple[list[Finish], list[tuple[Claim, Outcome]]]:
        chosen = list(zip(self._pairs(places), ends, strict=False))
        return (
            [Finish(mine, outcome) for (mine, _), outcome in chosen],
            [(model, outcome) for (_, model), outcome in chosen],
        )


def _pick(items: Sequence[T], places: Sequence[int]) -> list[T]:
    """Counted from the newest, which is the most interesting; no item twice."""
    numbers = dict.fromkeys(len(items) - 1 - place % len(items) for place in places)
    return [items[number] for number in numbers]


def _growing_id(number: int) -> str:
    """Ids in the order of enqueueing, as clocks make them too when jobs are not made within one millisecond."""
    return f"01ba60d3-3800-7000-8000-{number:012x}" if number >= 0 else new_id()


def _or_refused(call: Callable[[], T]) -> T | str:
    try:
        return call()
    except TooManyWaiting:
        return "too many waiting"


def _check_limits(records: list[JobRecord]) -> None:
    """The promises themselves, asked of the store's records alone."""
    busy = [r for r in records if r.state is State.RUNNING or (r.state is State.QUEUED and r.held is None)]
    for key, number in Counter(r.ordered for r in busy if r.ordered).items():
        assert number <= 1, f"{number} jobs of the ordering key {key} are ready or running"
    for key, number in Counter(r.concurrency for r in busy if r.concurrency).items():
        assert number <= LIMITS[key], f"{number} jobs of the concurrency key {key} are ready or running"
    alive = (r.unique for r in records if r.unique and r.state not in (*OVER, State.DEAD))
    for key, number in Counter(alive).items():
        assert number <= 1, f"{number} jobs that are not over have the unique key {key}"


def _by_queue(claims: list[Claim]) -> dict[str, list[Claim]]:
    """In which order the queues of one call come is not promised; token, row and unique are for the store's own use."""
    bare = [msgspec.structs.replace(claim, token=0, row=0, unique=None) for claim in claims]
    return {queue: [claim for claim in bare if claim.queue == queue] for queue in QUEUES}


def _rescued(rescues: list[Rescue]) -> dict[str, Rescue]:
    return {rescue.job_id: rescue for rescue in rescues}
