"""The same commands on SQLite and on PostgreSQL: the same answers, and the same jobs in the end."""

from __future__ import annotations

import os
import random
import sys
from pathlib import Path

import msgspec
import pytest

from holdfast.kernel.errors import HoldfastError
from holdfast.kernel.outcomes import Cancel, Dead, Done, Retry, Snooze, Unknown
from holdfast.store.records import Finish, NewJob
from holdfast.store.states import Held
from holdfast.testing.conformance import SqliteHarness
from holdfast.testing.conformance.harness import event_loop
from holdfast.testing.conformance.store_machine import known

sys.path.insert(0, str(Path(__file__).parent / "postgres"))

QUEUES = ["a", "b"]
OUTCOMES = [
    Done("1"),
    Done(),
    Retry(error="e"),
    Retry(after=3),
    Snooze(),
    Snooze(after=3),
    Cancel("c"),
    Dead("d"),
    Unknown("u"),
]


class Twins:
    """Two stores, and one generator of commands for both."""

    def __init__(self, seed, benches, stores):
        self.random, self.benches, self.stores = random.Random(seed), benches, stores
        self.calls, self.claims, self.log = [], [], []

    async def step(self):
        commands = [name for name in dir(self) if name.startswith("do_")]
        name = self.random.choice(commands)
        self.log.append(name[3:])
        await getattr(self, name)()
        mine, theirs = [
            {each.id: known(each) for each in await store.jobs.find(limit=10_000)} for store in self.stores
        ]
        assert mine.keys() == theirs.keys(), f"after {', '.join(self.log)}"
        for job_id, record in mine.items():
            fields = record.__struct_fields__
            pairs = {field: (getattr(record, field), getattr(theirs[job_id], field)) for field in fields}
            differing = {field: pair for field, pair in pairs.items() if pair[0] != pair[1]}
            assert differing == {}, f"{job_id} after {', '.join(self.log)}"

    async def both(self, call, bare=lambda answer: answer):
        """`call(store, side)` on each; the answers, which must be equal but for what is a store's own."""
        answers = []
        for side, store in enumerate(self.stores):
            try:
                answers.append(await call(store, side))
            except HoldfastError as error:
                answers.append((type(error), str(error)))
        assert bare(answers[0]) == bare(answers[1]), f"after {', '.join(self.log)}"
        return answers

    def some(self, items, most=3):
        return self.random.sample(items, min(len(items), self.random.randint(1, most)))

    def new(self):
        rare = {
            "priority": [-1, 1],
            "delay": [5.0],
            "expires": [4.0, 35.0],
            "unique": ["u1", "u2"],
            "ordered": ["o1", "o2"],
            "concurrency": ["c1", "c2"],
            "tenant": ["t1", "t2"],
            "guard": ["g1"],
            "max_waiting": [4],
        }
        options = {
            name: self.random.choice(values) for name, values in rare.items() if self.random.random() < 0.25
        }
        if "concurrency" in options:
            options["concurrency_limit"] = int(options["concurrency"][1])
        number = sum(map(len, self.calls))
        return NewJob(
            id=f"01ba60d3-3800-7000-8000-{number:08x}{self.random.randrange(2**16):04x}",
            task="bounded" if "max_waiting" in options else "t",
            queue=self.random.choice(QUEUES),
            **options,
        )

    async def do_enqueue(self):
        self.calls.append([])
        for _ in range(self.random.randint(1, 4)):
            self.calls[-1].append(self.new())
        await self.both(lambda store, _: store.jobs.enqueue(self.calls[-1]))

    do_enqueue_more = do_enqueue

    async def do_enqueue_again(self):
        if self.calls:
            jobs = self.random.choice(self.calls)
            await self.both(lambda store, _: store.jobs.enqueue(jobs, again=True))

    async def do_claim(self):
        wants = {queue: self.random.randint(0, 4) for queue in self.some(QUEUES)}
        self.keep(
            await self.both(lambda store, _: store.claims.claim(wants, lease=30, worker="w1"), bare_claims)
        )

    do_claim_more = do_claim

    async def do_claim_suspect(self):
        async def call(store, _):
            found = await store.claims.claim_suspect(QUEUES, lease=30, worker="w2")
            return [] if found is None else [found]

        self.keep(await self.both(call, bare_claims))

    def keep(self, answers):
        others = {claim.job_id: claim for claim in answers[1]}
        self.claims += [(claim, others[claim.job_id]) for claim in answers[0]]

    def held(self):
        """Of each job one claim, old ones too."""
        chosen = {pair[0].job_id: pair for pair in self.some(self.claims[-8:], 4)} if self.claims else {}
        return [chosen[job_id] for job_id in sorted(chosen)]

    async def do_finish(self):
        ends = [(pair, self.random.choice(OUTCOMES)) for pair in self.held()]
        await self.both(
            lambda store, side: store.claims.finish([Finish(pair[side], outcome) for pair, outcome in ends])
        )

    do_finish_more = do_finish

    async def do_finish_and_claim(self):
        ends = [(pair, self.random.choice(OUTCOMES)) for pair in self.held()]

        async def call(store, side):
            finishes = [Finish(pair[side], outcome) for pair, outcome in ends]
            return await store.claims.finish_and_claim(finishes, {"a": 2}, lease=30, worker="w1")

        answers = await self.both(call, lambda answer: (answer[0], bare_claims(answer[1])))
        self.keep([answer[1] for answer in answers])

    async def do_renew(self):
        pairs = self.held()

        async def call(store, side):
            found = await store.claims.renew([pair[side] for pair in pairs], lease=20)
            return {(each.job_id, each.lease_until, each.cancel) for each in found}

        await self.both(call)

    async def do_report(self):
        progress = self.random.random()
        for pair in self.held():
            await self.both(
                lambda store, side, pair=pair: store.claims.report(
                    pair[side], progress=progress, note="so far"
                )
            )

    async def do_release(self):
        pairs = self.held()
        await self.both(lambda store, side: store.claims.release([pair[side] for pair in pairs]))

    async def do_hold(self):
        pairs = self.held()
        await self.both(lambda store, side: store.holds.hold([pair[side] for pair in pairs], Held.GUARD))

    async def do_unhold(self):
        await self.both(lambda store, _: store.holds.unhold(Held.GUARD, limit=2))

    async def do_settle(self):
        for pair in self.held():
            await self.both(
                lambda store, side, pair=pair: store.claims.settle(pair[side].job_id, pair[side].token)
            )

    async def do_rescue(self):
        await self.both(lambda store, _: store.claims.rescue(), by_id)

    async def do_rescue_worker(self):
        await self.both(lambda store, _: store.claims.rescue_worker("w1"), by_id)

    async def do_cancel(self):
        jobs = [job for call in self.calls for job in call]
        if jobs:
            job = self.random.choice(jobs)
            await self.both(lambda store, _: store.jobs.cancel(job.id, "why"))

    async def do_replay(self):
        dead = [each.id for each in await self.stores[0].jobs.find(state="dead")]
        if dead:
            chosen = self.some(dead)
            await self.both(lambda store, _: store.dead.replay(chosen, actor="ada"))

    async def do_discard(self):
        jobs = [job.id for call in self.calls for job in call]
        if jobs:
            chosen = self.some(jobs)
            await self.both(lambda store, _: store.dead.discard(chosen, actor="ada", reason="no use"))

    async def do_promote(self):
        window, limit = self.random.choice([1, 2, 100]), self.random.choice([2, 500])
        await self.both(lambda store, _: store.holds.promote(window=window, limit=limit))

    do_promote_more = do_promote

    async def do_expire(self):
        await self.both(lambda store, _: store.holds.expire())

    async def do_repair(self):
        await self.both(lambda store, _: store.holds.repair())

    async def do_pause(self):
        queue = self.random.choice(QUEUES)
        await self.both(lambda store, _: store.queues.pause(queue, by="ada"))

    async def do_resume(self):
        queue = self.random.choice(QUEUES)
        await self.both(lambda store, _: store.queues.resume(queue, by="ada"))

    do_resume_more = do_resume

    async def do_count(self):
        await self.both(lambda store, _: store.jobs.count(), lambda counts: sorted(counts, key=repr))

    async def do_advance(self):
        seconds = self.random.choice([0.5, 5.0, 31.0])
        for bench, store in zip(self.benches, self.stores, strict=True):
            await bench.advance(store, seconds)


def bare_claims(claims):
    assert isinstance(claims, list), claims
    bare = [msgspec.structs.replace(claim, token=0, row=0, unique=None) for claim in claims]
    return {queue: [claim for claim in bare if claim.queue == queue] for queue in QUEUES}


def by_id(answers):
    return sorted(answers, key=lambda each: each.job_id)


@pytest.mark.parametrize("seed", range(8 * max(1, int(os.environ.get("HOLDFAST_TEST_DEEP", "0")))))
def test_both_stores_answer_alike(seed, tmp_path, databases):
    from harness import PostgresHarness

    benches = [SqliteHarness(tmp_path), PostgresHarness(databases)]

    async def compare():
        try:
            twins = Twins(seed, benches, [await bench.open() for bench in benches])
            for _ in range(60):
                await twins.step()
        finally:
            for bench in benches:
                await bench.close()

    with event_loop(benches[0]) as loop:
        loop.run(compare())
