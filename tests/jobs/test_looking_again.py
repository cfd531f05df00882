"""`look_again=`: an unknown effect is listed and decidable at once, and looked up again on a schedule."""

import asyncio

import pytest
from waiting import until

from holdfast import Backoff, CannotTell, Found, Holdfast, Job, NotFound
from holdfast.kernel.crashpoints import Crash, armed
from holdfast.store.states import State
from holdfast.store.steps import Progress
from holdfast.testing import ManualClock, drain
from holdfast.testing.database_clock import database_clock

AT_ONCE = Backoff(attempts=3, first=0, ceiling=0)
OFTEN = Backoff(attempts=5, first=60, ceiling=60)


class Site:
    """The other side: it does what it is told, and answers nothing."""

    def __init__(self, *answers):
        self.calls, self.looks, self.answers = 0, 0, list(answers)

    async def publish(self) -> str:
        self.calls += 1
        raise TimeoutError("no answer")

    async def find(self):
        self.looks += 1
        answer = self.answers.pop(0) if self.answers else CannotTell
        if isinstance(answer, Exception):
            raise answer
        return answer


@pytest.fixture
async def hf(url):
    """Both stores go by a clock that stands still."""
    with ManualClock() as clock:
        async with Holdfast(url) as opened:
            with database_clock(opened):
                opened.clock = clock
                yield opened


def publishing(hf, site, *, look_again=OFTEN, policy="at_most_once", **options):
    @hf.task(name="publish", retry=AT_ONCE)
    async def publish(job: Job) -> str:
        await job.step("upload", lambda: None)
        return await job.effect(
            "publish", site.publish, policy=policy, reconcile=site.find, look_again=look_again, **options
        )

    return publish


async def unknown(hf, site, **options):
    handle = await publishing(hf, site, **options).enqueue()
    await drain(hf)
    return handle


async def the(hf, handle):
    return await hf.jobs.get(handle.id)


async def decisions(hf, handle):
    return [(each.actor, each.action) for each in await hf.store.audit.find(subject=handle.id)]


async def test_it_is_unknown_at_once_and_found_later(hf):
    site = Site(CannotTell, CannotTell, Found("7"))
    handle = await unknown(hf, site)
    record = await the(hf, handle)
    assert (record.state, site.looks) == (State.UNKNOWN, 1)
    assert record.look_at is not None
    assert [each.id for each in await hf.unknown.find()] == [handle.id]
    hf.clock.advance(60)
    assert await drain(hf) == []  # the look is no run
    record = await the(hf, handle)
    assert (record.state, site.looks, record.attempt) == (State.UNKNOWN, 2, 1)
    assert [each.looks for each in await hf.unknown.steps(record)] == [0, 1]
    hf.clock.advance(60)
    [ran] = await drain(hf)
    assert (ran.state, ran.result, site.looks, site.calls) == (State.SUCCEEDED, "7", 3, 1)
    assert await decisions(hf, handle) == [("look-up", "unknown.resolve")]
    story = await hf.jobs.story(handle.id)
    assert [each.outcome for each in story.claims] == ["unknown", "succeeded"]


async def test_not_found_is_called_again_when_it_has_settled(hf):
    site = Site(CannotTell, *[NotFound] * 3)
    handle = await unknown(hf, site, settle=100, look_again=Backoff(attempts=5, first=1, ceiling=1))
    hf.clock.advance(50)
    await drain(hf)
    assert ((await the(hf, handle)).state, site.looks, site.calls) == (State.UNKNOWN, 2, 1)
    assert [each.looks for each in await hf.unknown.steps(await the(hf, handle))] == [0, 0]
    hf.clock.advance(49)
    await drain(hf)
    assert site.looks == 2
    hf.clock.advance(20)
    await drain(hf)
    assert site.calls == 2
    assert await decisions(hf, handle) == [("look-up", "unknown.resolve")]


async def test_a_lookup_that_fails_makes_it_unknown_and_is_asked_again(hf):
    site = Site(ConnectionError("down"), ConnectionError("down"), Found("7"))
    handle = await unknown(hf, site)
    record = await the(hf, handle)
    assert record.state is State.UNKNOWN
    assert "its lookup failed: down" in record.reason
    for _ in range(2):
        hf.clock.advance(60)
        await drain(hf)
    assert ((await the(hf, handle)).state, site.calls, site.looks) == (State.SUCCEEDED, 1, 3)


async def test_without_it_a_lookup_that_fails_fails_the_run(hf):
    handle = await unknown(hf, Site(ConnectionError("down"), Found("7")), look_again=None)
    assert (await the(hf, handle)).state is State.SUCCEEDED


async def test_looks_end_and_a_person_decides(hf):
    site = Site()
    handle = await unknown(hf, site, look_again=Backoff(attempts=4, first=60, ceiling=60))
    for _ in range(10):
        hf.clock.advance(60)
        await drain(hf)
    record = await the(hf, handle)
    assert (site.looks, record.look_at, record.state) == (4, None, State.UNKNOWN)
    await hf.unknown.resolve(handle.id, actor="ada", done=True, result="7")
    await drain(hf)
    assert ((await the(hf, handle)).state, site.calls) == (State.SUCCEEDED, 1)


async def test_a_decision_ends_the_looking(hf):
    site = Site()
    handle = await unknown(hf, site)
    await hf.unknown.resolve(handle.id, actor="ada", done=True, result="7")
    hf.clock.advance(600)
    [ran] = await drain(hf)
    assert (ran.state, ran.result, site.looks) == (State.SUCCEEDED, "7", 1)
    assert (await the(hf, handle)).look_at is None


async def test_a_new_doubt_is_looked_up_from_the_beginning(hf):
    site = Site()
    handle = await unknown(hf, site, look_again=Backoff(attempts=3, first=60, ceiling=60))
    for _ in range(5):
        hf.clock.advance(60)
        await drain(hf)
    assert site.looks == 3
    await hf.unknown.resolve(handle.id, actor="ada", done=False)
    await drain(hf)
    record = await the(hf, handle)
    assert (site.calls, record.state, record.look_at is None) == (2, State.UNKNOWN, False)
    assert [each.looks for each in await hf.unknown.steps(record)] == [0, 0]


async def test_a_look_that_is_late_does_not_decide_the_next_doubt(hf):
    """It began for the first call, a person has said that this was not done, and the second is in doubt, too."""
    site = Site()
    handle = await unknown(hf, site)
    [claim] = await take(hf)
    await hf.unknown.resolve(handle.id, actor="ada", done=False)
    await drain(hf)
    assert ((await the(hf, handle)).state, site.calls) == (State.UNKNOWN, 2)
    late = {"actor": "look-up", "done": False, "effect": "publish", "token": claim.token}
    assert (await hf.store.steps.resolve(handle.id, **late)).outcome == "not_unknown"
    assert not await hf.store.steps.looked(handle.id, claim.token, after=None)
    assert (await the(hf, handle)).look_at is not None


async def take(hf):
    hf.clock.advance(60)
    return await hf.store.steps.to_look(["publish"], lease=120)


async def test_a_look_does_nothing_but_look(hf):
    done = []

    @hf.task(name="much", retry=AT_ONCE)
    async def much(job: Job) -> None:
        if not done:
            done.append("first")
            await job.effect("a", site.publish, policy="at_most_once", reconcile=site.find, look_again=OFTEN)
        try:
            await job.heartbeat(0.5)
            await job.effect("a", site.publish, policy="at_most_once", reconcile=site.find, look_again=OFTEN)
        except Exception:
            done.append("caught")
        await job.step("b", done.append, "b")
        async with job.commit() as tx:
            await tx.execute("CREATE TABLE never (id INTEGER)")

    site = Site()
    handle = await much.enqueue()
    await drain(hf)
    hf.clock.advance(60)
    await drain(hf)
    assert (done, site.looks, site.calls) == (["first"], 2, 1)
    assert (await the(hf, handle)).state is State.UNKNOWN


async def test_plain_functions_and_effects_side_by_side_are_looked_up(hf):
    sites = [Site(CannotTell, Found("1")), Site(CannotTell, Found("2"))]

    @hf.task(name="plain", retry=AT_ONCE)
    def plain(job: Job) -> str:
        return job.blocking.effect(
            "a", site_call(sites[0]), policy="at_most_once", reconcile=site_find(sites[0]), look_again=OFTEN
        )

    @hf.task(name="beside", retry=AT_ONCE)
    async def beside(job: Job) -> list[str]:
        async def one(number: int) -> str:
            site = both[number]
            return await job.effect(
                f"e{number}", site.publish, policy="at_most_once", reconcile=site.find, look_again=OFTEN
            )

        return await asyncio.gather(one(0), one(1))

    both = [Site(CannotTell, CannotTell, Found("1")), Site(CannotTell, CannotTell, Found("2"))]
    handles = [await plain.enqueue(), await beside.enqueue()]
    for _ in range(5):
        await drain(hf)
        hf.clock.advance(60)
    assert [(await the(hf, each)).state for each in handles] == [State.SUCCEEDED] * 2
    assert [site.calls for site in (sites[0], *both)] == [1, 1, 1]


def site_call(site):
    def call() -> str:
        site.calls += 1
        raise TimeoutError("no answer")

    return call


def site_find(site):
    def find():
        return site.answers.pop(0)

    return find


async def test_a_found_result_of_the_wrong_type_decides_nothing(hf):
    site = Site(CannotTell, Found(7), Found("7"))
    handle = await unknown(hf, site)
    hf.clock.advance(60)
    await drain(hf)
    assert (await the(hf, handle)).state is State.UNKNOWN
    hf.clock.advance(60)
    await drain(hf)
    assert (await the(hf, handle)).state is State.SUCCEEDED


async def test_a_paused_queue_looks_at_nothing(hf):
    site = Site(CannotTell, Found("7"))
    await unknown(hf, site)
    await hf.queues.pause("default")
    hf.clock.advance(60)
    await drain(hf)
    assert site.looks == 1
    await hf.queues.resume("default")
    await drain(hf)
    assert site.looks == 2


async def test_a_task_that_no_longer_comes_to_the_effect_is_looked_at_in_vain(hf):
    site = Site()
    handle = await unknown(hf, site)

    site.find = None
    hf.clock.advance(60)
    await drain(hf)  # it raises: reconcile is missing
    record = await the(hf, handle)
    assert record.state is State.UNKNOWN
    assert max(each.looks for each in await hf.unknown.steps(record)) == 1


async def test_a_keyed_effect_is_looked_up_when_its_key_is_forgotten(hf):
    site = Site()
    handle = await unknown(hf, site, policy="keyed", key_ttl=100)
    assert (
        await the(hf, handle)
    ).state is State.DEAD  # called again while the key is known, and never unknown


async def test_a_keyed_effect_in_doubt_after_its_key_is_looked_up_again(hf):
    site = Site(CannotTell, CannotTell, CannotTell, Found("7"))

    @hf.task(name="keyed", retry=Backoff(attempts=3, first=200, ceiling=200))
    async def keyed(job: Job) -> str:
        return await job.effect(
            "publish", site.publish, policy="keyed", key_ttl=1, reconcile=site.find, look_again=OFTEN
        )

    handle = await keyed.enqueue()
    for _ in range(8):
        await drain(hf)
        hf.clock.advance(200)
    assert ((await the(hf, handle)).state, site.calls) == (State.SUCCEEDED, 1)
    assert await decisions(hf, handle) == [("look-up", "unknown.resolve")]


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"policy": "at_least_once", "reconcile": Site().find}, "at_least_once"),
        ({"policy": "at_most_once"}, "reconcile"),
        ({"policy": "at_most_once", "reconcile": Site().find, "look_again": 5}, "Backoff"),
    ],
)
async def test_what_makes_no_sense_is_refused(hf, options, word):
    @hf.task(name="wrong", retry=Backoff(attempts=1))
    async def wrong(job: Job) -> None:
        await job.effect("publish", Site().publish, **{"look_again": OFTEN, **options})

    handle = await wrong.enqueue()
    await drain(hf)
    record = await the(hf, handle)
    assert (record.state, "UsageError" in record.reason, word in record.reason) == (State.DEAD, True, True)


async def test_attempts_that_are_used_up_in_the_call_leave_it_to_be_looked_up(hf):
    site = Site(Found("7"))

    @hf.task(name="slow", retry=Backoff(attempts=1), timeout=5)
    async def slow(job: Job) -> str:
        async def call() -> str:
            site.calls += 1
            raise Crashed

        return await job.effect("publish", call, policy="at_most_once", reconcile=site.find, look_again=OFTEN)

    class Crashed(BaseException):
        """Nothing catches it."""

    handle = await slow.enqueue()
    await drain(hf)
    record = await the(hf, handle)
    assert (record.state, record.look_at is None) == (State.UNKNOWN, False)
    hf.clock.advance(60)
    await drain(hf)
    assert ((await the(hf, handle)).state, site.calls) == (State.SUCCEEDED, 1)


@pytest.mark.parametrize("place", ["look.taken", "look.answered", "look.decided"])
async def test_a_worker_that_dies_in_a_look_leaves_it_to_the_next(hf, place):
    site = Site(CannotTell, Found("7"), Found("7"))
    handle = await unknown(hf, site)

    def die(_):
        raise Crash

    hf.clock.advance(60)
    with armed(place, die), pytest.raises(BaseException):  # noqa: B017
        await drain(hf)
    hf.clock.advance(121)  # as long as nobody else looks
    await drain(hf)
    assert ((await the(hf, handle)).state, site.calls) == (State.SUCCEEDED, 1)
    assert await decisions(hf, handle) == [("look-up", "unknown.resolve")]


async def test_a_worker_looks_by_itself(url):
    site = Site(CannotTell, CannotTell, Found("7"))
    async with Holdfast(url) as hf:
        handle = await publishing(hf, site, look_again=Backoff(attempts=9, first=0.1, ceiling=0.1)).enqueue()
        async with hf.worker({"default": 2}):
            await until(lambda: is_over(hf, handle))
            assert await handle.result(20) == "7"
        assert (site.calls, site.looks) == (1, 3)
        [step] = [each for each in (await hf.jobs.story(handle.id)).steps if each.name == "publish"]
        assert step.outcome is Progress.RESOLVED


async def is_over(hf, handle):
    return (await hf.jobs.get(handle.id)).state is State.SUCCEEDED


async def test_a_persons_decision_and_a_look_race_and_one_decides(url):
    """200 races on each store: one decision, one row of the audit log, and one end."""
    races, asked, outcomes = 200, {}, []

    async with Holdfast(url) as hf:

        @hf.task(name="race", retry=AT_ONCE)
        async def race(job: Job, number: int) -> str:
            async def call() -> str:
                raise TimeoutError("no answer")

            async def find():
                if job.id not in asked:
                    asked[job.id] = asyncio.Event()  # in its run
                    return CannotTell
                asked[job.id].set()
                await asyncio.sleep(0.001 * (number * 7 % 20))
                return Found("look")

            return await job.effect(
                "publish",
                call,
                policy="at_most_once",
                reconcile=find,
                look_again=Backoff(attempts=5, first=0, ceiling=0),
            )

        async def person(handle, number):
            await until(lambda: handle.id in asked, 60)
            await asked[handle.id].wait()
            await asyncio.sleep(0.001 * (number % 20))
            answer = await hf.unknown.resolve(handle.id, actor="ada", done=True, result="ada")
            outcomes.append(answer.outcome)

        handles = await race.enqueue_many([{"number": number} for number in range(races)])
        async with hf.worker({"default": 20}):
            await asyncio.gather(*(person(each, number) for number, each in enumerate(handles)))
            results = [await each.result(60) for each in handles]
        audit = [await decisions(hf, each) for each in handles]
        assert [len(each) for each in audit] == [1] * races
        for result, [(actor, _)] in zip(results, audit, strict=True):
            assert result == {"ada": "ada", "look-up": "look"}[actor]
        assert outcomes.count("queued") == results.count("ada")
        assert outcomes.count("not_unknown") == results.count("look")
        assert 0 < results.count("ada") < races, "one of them has won all races"


async def test_looking_again_tells_no_handler_once_more(hf):
    told = []
    site = Site(CannotTell, CannotTell, CannotTell, NotFound)
    task = publishing(hf, site, settle=0)

    @hf.on_unknown("publish")
    async def tell(job, tx) -> None:
        told.append(job.id)

    handle = await task.enqueue()
    for _ in range(3):
        await drain(hf)
        hf.clock.advance(60)
    assert (told, site.looks) == ([handle.id], 3)
    await drain(hf)  # not found: it is called again, and that is another doubt
    assert (told, site.calls) == ([handle.id] * 2, 2)
