"""The ladder: whatever waits and whatever is taken, no key is given out twice and nobody overtakes."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from holdfast.store.ladder import Facts, Waiting, climb
from holdfast.store.states import Held

LIMITS = {"c1": 1, "c2": 2, "c3": 3}


def a_job(**changes):
    plain = {
        "job_id": "1",
        "queue": "q",
        "due": True,
        "ordered": None,
        "has_turn": False,
        "concurrency": None,
        "concurrency_limit": None,
        "slot": None,
        "tenant": None,
    }
    return Waiting(**{**plain, **changes})


def decide(*jobs, facts=None, window=100):
    return [(step.held, step.has_turn, step.slot) for step in climb(jobs, facts or Facts(), window=window)]


@st.composite
def situations(draw):
    """Jobs that wait, oldest first, and what is taken; as a database could have it."""
    orders, keys = ["o1", "o2", None], [*LIMITS, None]
    taken_turns = draw(st.sets(st.sampled_from(["o1", "o2"])))
    taken_slots = {key: draw(st.sets(st.integers(1, limit), max_size=limit)) for key, limit in LIMITS.items()}
    owned_turns = set(taken_turns) - draw(st.sets(st.sampled_from(["o1", "o2"])))  # by one that waits here
    free_to_own = {key: sorted(slots) for key, slots in taken_slots.items()}
    jobs = []
    for number in range(draw(st.integers(0, 12))):
        ordered, concurrency = draw(st.sampled_from(orders)), draw(st.sampled_from(keys))
        has_turn = ordered in owned_turns
        owned_turns.discard(ordered)
        slot = None
        if concurrency and free_to_own[concurrency] and draw(st.booleans()):
            slot = free_to_own[concurrency].pop()
        jobs.append(
            a_job(
                job_id=str(number),
                queue=draw(st.sampled_from(["q", "r"])),
                due=draw(st.booleans()),
                ordered=ordered,
                has_turn=has_turn,
                concurrency=concurrency,
                concurrency_limit=LIMITS.get(concurrency),
                slot=slot,
                tenant=draw(st.sampled_from(["t1", "t2", None])),
            )
        )
    ready = draw(
        st.dictionaries(
            st.tuples(st.sampled_from(["q", "r"]), st.sampled_from(["t1", "t2"])), st.integers(0, 4)
        )
    )
    return jobs, taken_turns, taken_slots, ready, draw(st.integers(1, 4))


@given(situations())
def test_no_turn_is_given_twice(situation):
    jobs, turns, slots, ready, window = situation
    steps = climb(jobs, Facts(set(turns), _copy(slots), dict(ready)), window=window)
    owners = Counter(job.ordered for job, step in zip(jobs, steps, strict=True) if step.has_turn)
    for key, number in owners.items():
        assert key is not None, "a job without an ordering key has a turn"
        assert number == 1
        had = any(job.has_turn and job.ordered == key for job in jobs)
        assert had or key not in turns, "a turn that another has was given away"


@given(situations())
def test_no_slot_is_given_twice_and_none_above_the_limit(situation):
    jobs, turns, slots, ready, window = situation
    steps = climb(jobs, Facts(set(turns), _copy(slots), dict(ready)), window=window)
    given_out = Counter(
        (job.concurrency, step.slot)
        for job, step in zip(jobs, steps, strict=True)
        if step.slot is not None and job.slot is None
    )
    for (key, slot), number in given_out.items():
        assert number == 1
        assert 1 <= slot <= LIMITS[key]
        assert slot not in slots[key], "a slot that another has was given away"


@given(situations())
def test_no_tenant_gets_more_than_its_window(situation):
    jobs, turns, slots, ready, window = situation
    steps = climb(jobs, Facts(set(turns), _copy(slots), dict(ready)), window=window)
    made = Counter(
        (job.queue, job.tenant)
        for job, step in zip(jobs, steps, strict=True)
        if step.held is None and job.tenant
    )
    for place, number in made.items():
        assert number + ready.get(place, 0) <= max(window, ready.get(place, 0))
        assert number <= max(0, window - ready.get(place, 0))


@given(situations())
def test_a_ready_job_has_all_that_it_needs(situation):
    jobs, turns, slots, ready, window = situation
    for job, step in zip(
        jobs, climb(jobs, Facts(set(turns), _copy(slots), dict(ready)), window=window), strict=True
    ):
        assert step.job_id == job.job_id
        if step.held is None:
            assert job.due
            assert step.has_turn == (job.ordered is not None)
            assert (step.slot is not None) == (job.concurrency is not None)
        if job.has_turn:
            assert step.has_turn, "a turn was taken away"
        if job.slot is not None and step.held is not Held.CONCURRENCY:
            assert step.slot == job.slot, "a slot was changed"


@given(situations())
def test_nobody_overtakes(situation):
    jobs, turns, slots, ready, window = situation
    steps = climb(jobs, Facts(set(turns), _copy(slots), dict(ready)), window=window)
    for place, (job, step) in enumerate(zip(jobs, steps, strict=True)):
        before = list(zip(jobs[:place], steps[:place], strict=True))
        if step.has_turn and not job.has_turn:
            assert not any(other.ordered == job.ordered for other, _ in before), "a younger job got the turn"
        if step.slot is not None and job.slot is None:
            waits = [o for o, s in before if o.concurrency == job.concurrency and s.held is Held.CONCURRENCY]
            assert not waits, "a younger job got the slot"
        if step.held is None and job.tenant is not None:
            place_ = (job.queue, job.tenant)
            waits = [o for o, s in before if (o.queue, o.tenant) == place_ and s.held is Held.TENANT]
            assert not waits, "a younger job got the room"


@given(situations())
def test_nothing_is_left_unused(situation):
    jobs, turns, slots, ready, window = situation
    facts = Facts(set(turns), _copy(slots), dict(ready))
    for job, step in zip(jobs, climb(jobs, facts, window=window), strict=True):
        match step.held:
            case Held.ORDERING:
                assert job.ordered in facts.turns
            case Held.TIME:
                assert not job.due
            case Held.CONCURRENCY:
                assert len(facts.slots[job.concurrency]) >= job.concurrency_limit
            case Held.TENANT:
                assert facts.ready[job.queue, job.tenant] >= window


def _copy(slots):
    return {key: set(taken) for key, taken in slots.items()}


def test_a_job_without_keys_is_ready_when_it_is_due():
    assert decide(a_job()) == [(None, False, None)]
    assert decide(a_job(due=False)) == [(Held.TIME, False, None)]


def test_the_turn_comes_before_the_time():
    first, second = a_job(ordered="o", due=False), a_job(ordered="o")
    assert decide(first, second) == [(Held.TIME, True, None), (Held.ORDERING, False, None)]


def test_the_time_comes_before_the_slot():
    slots = {"concurrency": "c", "concurrency_limit": 1}
    assert decide(a_job(due=False, **slots), a_job(**slots)) == [(Held.TIME, False, None), (None, False, 1)]


def test_the_slot_comes_before_the_window():
    slots = {"concurrency": "c", "concurrency_limit": 1, "tenant": "t"}
    assert decide(a_job(**slots), a_job(**slots)) == [(None, False, 1), (Held.CONCURRENCY, False, None)]


def test_a_job_that_waits_for_its_window_keeps_its_slot():
    slots = {"concurrency": "c", "concurrency_limit": 2, "tenant": "t"}
    assert decide(a_job(**slots), a_job(**slots), window=1) == [(None, False, 1), (Held.TENANT, False, 2)]


def test_the_lowest_free_slot_is_taken():
    facts = Facts(slots={"c": {1, 3}})
    assert decide(a_job(concurrency="c", concurrency_limit=3), facts=facts) == [(None, False, 2)]


def test_a_lowered_limit_is_respected_while_higher_slots_are_taken():
    facts = Facts(slots={"c": {2, 3}})
    job = a_job(concurrency="c", concurrency_limit=1)
    held, _, slot = decide(job, facts=facts)[0]
    assert (held, slot) == (Held.CONCURRENCY, None), "two run already, and the limit is one now"
