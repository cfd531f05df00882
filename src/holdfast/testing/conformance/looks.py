"""Looking again at unknown effects: who is given out when, for how long, and that only the doubt that was looked at is decided."""

from __future__ import annotations

from holdfast.kernel.outcomes import Dead, Unknown
from holdfast.store.ports import Store
from holdfast.store.records import Claim
from holdfast.store.states import State
from holdfast.store.steps import Kind, Progress, Step
from holdfast.testing.conformance.harness import Conformance
from holdfast.testing.conformance.kit import end, ids, put, take_one, the

TASKS = ["mail.send"]


async def doubtful(store: Store, *, look: float | None = 60.0, effects: int = 1, **options: object) -> Claim:
    """A job that is unknown, with effects of which nobody knows. Its last claim."""
    await put(store, **options)
    claim = await take_one(store, str(options.get("queue", "default")))
    for number in range(effects):
        step = Step(
            name=f"e{number}", number=number, kind=Kind.AT_MOST_ONCE, progress=Progress.BEGUN, intent=True
        )
        assert await store.steps.write(claim, step)
        step = Step(
            name=f"e{number}", number=number, kind=Kind.AT_MOST_ONCE, progress=Progress.UNKNOWN, calls=1
        )
        assert await store.steps.write(claim, step)
    assert await end(store, claim, Unknown("who knows", look=look))
    return claim


async def due(store: Store, tasks: list[str] | None = None, queues: list[str] | None = None) -> list[Claim]:
    return await store.steps.to_look(tasks or TASKS, queues, lease=120)


async def looks_of(store: Store, claim: Claim) -> list[int]:
    return [each.looks for each in await store.steps.load(claim.job_id, 0)]


class LooksConformance(Conformance):
    async def test_it_is_given_out_when_it_is_due_and_stays_unknown(self, store: Store) -> None:
        claim, began = await doubtful(store), await store.now()
        at = (await the(store, claim.job_id)).look_at
        assert at is not None
        assert abs(at - began - 60) < 0.001
        assert await due(store) == []
        await self.advance(store, 61)
        [given] = await due(store)
        assert (given.job_id, given.token, given.task) == (claim.job_id, claim.token, "mail.send")
        assert given.has_steps
        record = await the(store, claim.job_id)
        assert (record.state, record.reason) == (State.UNKNOWN, "who knows")
        assert await due(store) == [], "nobody else looks at it now"
        await self.advance(store, 121)
        assert ids(await due(store)) == [claim.job_id], "who had it seems lost"

    async def test_who_asks_for_no_look_is_given_to_nobody(self, store: Store) -> None:
        claim = await doubtful(store, look=None)
        await self.advance(store, 10_000)
        assert await due(store) == []
        assert (await the(store, claim.job_id)).look_at is None

    async def test_only_to_those_who_know_its_task_and_serve_its_queue(self, store: Store) -> None:
        claim = await doubtful(store, look=0, queue="mail")
        assert await due(store, ["other"]) == []
        assert await due(store, queues=["default"]) == []
        await store.queues.pause("mail", by="ada")
        assert await due(store) == []
        await store.queues.resume("mail", by="ada")
        assert ids(await due(store, queues=["default", "mail"])) == [claim.job_id]

    async def test_a_look_in_vain_is_counted_and_comes_again(self, store: Store) -> None:
        claim = await doubtful(store, look=0, effects=2)
        assert await store.steps.looked(claim.job_id, claim.token, after=30)
        assert await looks_of(store, claim) == [1, 1]
        await self.advance(store, 31)
        assert len(await due(store)) == 1
        assert await store.steps.looked(claim.job_id, claim.token, after=30, counted=False)
        assert await store.steps.looked(claim.job_id, claim.token, after=None)
        assert await looks_of(store, claim) == [2, 2]
        await self.advance(store, 10_000)
        assert await due(store) == []

    async def test_a_decision_ends_it(self, store: Store) -> None:
        claim = await doubtful(store, look=0)
        answer = await store.steps.resolve(claim.job_id, actor="ada", done=True, token=claim.token)
        assert answer.outcome == "queued"
        assert not await store.steps.looked(claim.job_id, claim.token, after=0)
        assert (await the(store, claim.job_id)).look_at is None
        again = await store.steps.resolve(claim.job_id, actor="look-up", done=False, token=claim.token)
        assert again.outcome == "not_unknown"
        assert len(await store.audit.find(subject=claim.job_id)) == 1
        assert await due(store) == []

    async def test_one_of_two_decided_leaves_the_other_to_be_looked_up(self, store: Store) -> None:
        claim = await doubtful(store, effects=2)
        answer = await store.steps.resolve(claim.job_id, actor="look-up", done=True, effect="e0")
        assert answer.outcome == "still_unknown"
        assert await store.steps.looked(claim.job_id, claim.token, after=5)
        assert await looks_of(store, claim) == [0, 1]
        await self.advance(store, 6)
        assert ids(await due(store)) == [claim.job_id]

    async def test_a_late_look_does_not_touch_the_next_doubt(self, store: Store) -> None:
        first = await doubtful(store, look=0)
        await store.steps.looked(first.job_id, first.token, after=0)
        await store.steps.resolve(first.job_id, actor="ada", done=False)
        second = await take_one(store)
        step = Step(
            name="e0", number=0, kind=Kind.AT_MOST_ONCE, progress=Progress.BEGUN, intent=True, calls=1
        )
        assert await store.steps.write(second, step)
        assert await looks_of(store, first) == [0], "a new call, a new doubt"
        assert await end(store, second, Unknown("again", look=0))
        late = await store.steps.resolve(first.job_id, actor="look-up", done=True, token=first.token)
        assert late.outcome == "not_unknown"
        assert not await store.steps.looked(first.job_id, first.token, after=None)
        assert [each.token for each in await due(store)] == [second.token]

    async def test_the_dead_and_the_cancelled_are_not_looked_up(self, store: Store) -> None:
        await put(store)
        assert await end(store, await take_one(store), Dead("why"))
        claim = await doubtful(store, look=0)
        await store.jobs.cancel(claim.job_id, "no longer wanted")
        assert await due(store) == []
        assert (await the(store, claim.job_id)).look_at is None

    async def test_at_most_so_many_are_given_out(self, store: Store) -> None:
        for number in range(3):
            await doubtful(store, look=float(number))
        await self.advance(store, 10)
        assert len(await store.steps.to_look(TASKS, lease=120, limit=2)) == 2
        assert len(await store.steps.to_look(TASKS, lease=120, limit=2)) == 1
