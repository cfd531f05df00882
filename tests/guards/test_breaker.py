"""The breaker: each option, each state, each change."""

from __future__ import annotations

import asyncio

import msgspec
import pytest
from virtual import refused

from holdfast.guards import Breaker, BreakerOpen, BreakerRecord, Fault, State
from holdfast.kernel.errors import UsageError


def fails(breaker, times=1, error=ConnectionError):
    for _ in range(times):
        with pytest.raises(error), breaker:
            raise error


def succeeds(breaker, times=1):
    for _ in range(times):
        with breaker:
            pass


def opened(clock, **options):
    breaker = Breaker(**{"failures": 1, "cooldown": 10, "permits": 1} | options)
    fails(breaker)
    assert breaker.state is State.OPEN
    return breaker


def half_open(clock, **options):
    breaker = opened(clock, **options)
    clock.advance(10)
    return breaker


# --- closed ---


def test_so_many_failures_in_a_row_open_it(clock):
    breaker = Breaker(failures=3)
    fails(breaker, 2)
    succeeds(breaker)
    fails(breaker, 2)
    assert breaker.state is State.CLOSED
    fails(breaker)
    assert breaker.state is State.OPEN


def test_so_many_failures_within_a_window_open_it_whatever_succeeds_between(clock):
    breaker = Breaker(failures=3, window=60)
    for _ in range(2):
        fails(breaker)
        succeeds(breaker, 20)
        clock.advance(20)
    assert breaker.state is State.CLOSED
    fails(breaker)
    assert breaker.state is State.OPEN
    assert breaker.generation == 2


def test_failures_that_have_left_the_window_do_not_count(clock):
    breaker = Breaker(failures=3, window=60)
    for _ in range(10):
        fails(breaker)
        clock.advance(30)
    assert breaker.state is State.CLOSED  # never more than two in a minute
    assert breaker.record().failures == 1
    fails(breaker)
    clock.advance(1)
    fails(breaker)
    assert breaker.state is State.OPEN


def test_in_a_window_slow_calls_are_failures_and_one_failed_probe_is_enough(clock):
    breaker = Breaker(failures=2, window=60, slow=5, cooldown=10, permits=2)
    with breaker:
        clock.advance(6)
    fails(breaker)
    assert breaker.state is State.OPEN
    clock.advance(10)
    succeeds(breaker)
    fails(breaker)
    assert breaker.state is State.OPEN
    clock.advance(10)
    succeeds(breaker, 2)
    assert breaker.state is State.CLOSED
    fails(breaker)
    assert breaker.state is State.CLOSED  # it counts anew


def test_a_share_of_failures_opens_it_once_there_are_enough_calls(clock):
    breaker = Breaker(failure_ratio=0.5, minimum=10, window=60)
    fails(breaker, 4)
    succeeds(breaker, 5)
    assert breaker.state is State.CLOSED
    fails(breaker)
    assert breaker.state is State.OPEN


def test_the_share_is_reached_also_when_the_last_call_went_well(clock):
    breaker = Breaker(failure_ratio=0.5, minimum=10)
    fails(breaker, 9)
    succeeds(breaker)
    assert breaker.state is State.OPEN


def test_a_share_that_binary_numbers_miss_by_a_hair_is_reached(clock):
    breaker = Breaker(failure_ratio=0.1, minimum=30)
    succeeds(breaker, 27)
    fails(breaker, 3)
    assert breaker.state is State.OPEN


def test_what_has_left_the_window_does_not_count(clock):
    breaker = Breaker(failure_ratio=0.5, minimum=4, window=10)
    fails(breaker, 3)
    clock.advance(11)
    fails(breaker)
    assert breaker.state is State.CLOSED


def test_a_window_of_calls_does_not_care_for_time(clock):
    breaker = Breaker(failure_ratio=0.5, minimum=4, calls=4)
    fails(breaker, 3)
    clock.advance(10_000)
    fails(breaker)
    assert breaker.state is State.OPEN


def test_slow_calls_open_it(clock):
    breaker = Breaker(minimum=4, slow=5, slow_ratio=0.75)
    for _ in range(3):
        with breaker:
            clock.advance(5)
    assert breaker.state is State.CLOSED
    succeeds(breaker)
    assert breaker.state is State.OPEN


def test_in_a_row_a_slow_call_is_a_failure(clock):
    breaker = Breaker(failures=2, slow=5)
    for _ in range(2):
        with breaker:
            clock.advance(6)
    assert breaker.state is State.OPEN


@pytest.mark.parametrize("error", [ValueError, KeyError])
def test_who_gets_an_answer_has_no_failure(clock, error):
    breaker = Breaker(failures=1)
    fails(breaker, 5, error)
    assert breaker.state is State.CLOSED


def test_the_classifier_decides(clock):
    breaker = Breaker(failures=1, classify=lambda error: Fault.TRANSIENT)
    fails(breaker, 1, ValueError)
    assert breaker.state is State.OPEN


def test_failing_says_which_faults_count(clock):
    breaker = Breaker(failures=1, classify=lambda error: Fault.THROTTLED)
    fails(breaker)
    assert breaker.state is State.CLOSED
    breaker = Breaker(failures=1, classify=lambda error: Fault.THROTTLED, failing={"throttled"})
    fails(breaker)
    assert breaker.state is State.OPEN


def test_who_is_cancelled_tells_nothing(clock):
    breaker = Breaker(failures=1)
    fails(breaker, 3, asyncio.CancelledError)
    assert breaker.state is State.CLOSED


# --- open ---


def test_open_admits_nobody_and_says_when_to_come_back(clock):
    breaker = opened(clock, name="shop")
    clock.advance(4)
    with refused(BreakerOpen) as told:
        breaker.admit()
    assert told["after"] == 6
    assert breaker.retry_in() == 6
    with pytest.raises(BreakerOpen, match="breaker 'shop' is open"):
        breaker.admit()


@pytest.mark.parametrize(("chance", "seconds"), [(0.0, 8), (0.5, 10), (1.0, 12)])
def test_the_cool_down_is_longer_or_shorter_by_a_fifth(clock, chance, seconds):
    clock.chance = chance
    breaker = opened(clock)
    assert breaker.retry_in() == pytest.approx(seconds)


def test_a_call_that_began_before_it_opened_changes_nothing(clock):
    breaker = Breaker(failures=1, cooldown=10, permits=1)
    early = breaker.admit()
    fails(breaker)
    early.record()
    assert breaker.state is State.OPEN
    clock.advance(10)
    probe = breaker.admit()
    late = early.generation
    early.record(ConnectionError())
    assert (breaker.state, late) == (State.HALF_OPEN, 1)
    probe.record()
    assert breaker.state is State.CLOSED


def test_a_result_of_an_older_generation_does_not_count_when_it_is_closed_again(clock):
    breaker = Breaker(failures=1, cooldown=10, permits=1)
    old = breaker.admit()
    fails(breaker)
    clock.advance(10)
    succeeds(breaker)
    assert (breaker.state, breaker.generation) == (State.CLOSED, 4)
    old.record(ConnectionError())
    assert breaker.state is State.CLOSED


# --- half-open ---


def test_it_is_half_open_when_the_cool_down_is_over(clock):
    breaker = opened(clock)
    clock.advance(9.99)
    assert breaker.state is State.OPEN
    clock.advance(0.01)
    assert breaker.state is State.HALF_OPEN
    assert breaker.retry_in() == 0


def test_a_probe_that_goes_well_closes_it(clock):
    breaker = half_open(clock)
    succeeds(breaker)
    assert breaker.state is State.CLOSED
    assert breaker.record().failures == 0


def test_a_probe_that_fails_opens_it_again(clock):
    breaker = half_open(clock)
    fails(breaker)
    assert breaker.state is State.OPEN
    assert breaker.retry_in() == 10


def test_no_more_probes_than_permits(clock):
    breaker = half_open(clock, permits=3)
    probes = [breaker.admit() for _ in range(3)]
    with pytest.raises(BreakerOpen, match="half-open and its permits are out"):
        breaker.admit()
    assert breaker.retry_in() is None
    probes[0].record()
    with pytest.raises(BreakerOpen):
        breaker.admit()  # one has answered, two are under way: that is enough
    probes[1].record()
    assert breaker.state is State.HALF_OPEN
    probes[2].record()
    assert breaker.state is State.CLOSED


def test_with_rates_some_probes_may_fail(clock):
    breaker = Breaker(failure_ratio=0.5, minimum=1, permits=3, cooldown=10)
    fails(breaker)
    clock.advance(10)
    fails(breaker)
    succeeds(breaker, 2)
    assert breaker.state is State.CLOSED
    fails(breaker)
    clock.advance(10)
    fails(breaker, 2)  # two of three are enough: the third is not waited for
    assert breaker.state is State.OPEN


def test_slow_probes_open_it_again(clock):
    breaker = Breaker(minimum=1, slow=1, permits=1, cooldown=10)
    fails(breaker)
    clock.advance(10)
    with breaker:
        clock.advance(2)
    assert breaker.state is State.OPEN


def test_a_permit_that_nobody_hears_of_is_a_failure(clock):
    breaker = half_open(clock, lease=30)
    lost = breaker.admit()
    clock.advance(29)
    with pytest.raises(BreakerOpen, match="permits are out"):
        breaker.admit()
    clock.advance(1)
    assert breaker.retry_in() == 0  # worth asking: that is how it is found out
    with refused(BreakerOpen) as told:
        breaker.admit()
    assert told["after"] == 10
    lost.record()
    assert breaker.state is State.OPEN


def test_a_probe_that_is_cancelled_gives_its_permit_back(clock):
    breaker = half_open(clock, permits=2)
    fails(breaker, 1, asyncio.CancelledError)
    assert breaker.state is State.HALF_OPEN
    succeeds(breaker, 2)
    assert breaker.state is State.CLOSED


def test_probes_that_are_cancelled_time_and_again_open_it(clock):
    breaker = half_open(clock, permits=2)
    fails(breaker, 2, asyncio.CancelledError)
    assert breaker.state is State.OPEN


def test_a_probe_that_was_not_made_counts_for_nothing(clock):
    breaker = half_open(clock)
    for _ in range(10):
        breaker.admit().not_made()
    succeeds(breaker)
    assert breaker.state is State.CLOSED


def test_only_the_first_word_about_a_permit_counts(clock):
    breaker = half_open(clock, permits=2)
    probe = breaker.admit()
    probe.record()
    probe.record(ConnectionError())
    probe.cut_off()
    probe.not_made()
    assert breaker.state is State.HALF_OPEN
    succeeds(breaker)
    assert breaker.state is State.CLOSED


# --- a wait between the permit and the call ---


def test_a_permit_that_waited_is_looked_at_again(clock):
    breaker = Breaker(failures=1, cooldown=10, permits=1)
    waits = breaker.admit()
    breaker.renew(waits, 5.0)
    assert waits.began == 5.0
    fails(breaker)
    with pytest.raises(BreakerOpen):
        breaker.renew(waits, 6.0)


def test_one_that_slept_through_a_whole_outage_is_of_the_new_time(clock):
    breaker = Breaker(failures=1, cooldown=10, permits=1)
    waits = breaker.admit()
    fails(breaker)
    clock.advance(10)
    succeeds(breaker)
    breaker.renew(waits, 10.0)
    waits.record(ConnectionError())
    assert breaker.state is State.OPEN


def test_a_probe_that_waits_keeps_its_permit_as_long_as_its_lease(clock):
    breaker = half_open(clock, lease=30)
    probe = breaker.admit()
    breaker.renew(probe, 39.0)
    with pytest.raises(BreakerOpen):
        breaker.renew(probe, 70.0)


# --- people ---


def test_held_open_admits_nobody_until_someone_lets_go(clock):
    breaker = Breaker(failures=1, permits=1)
    breaker.hold_open()
    clock.advance(1e6)
    assert breaker.state is State.OPEN
    assert breaker.retry_in() is None
    with pytest.raises(BreakerOpen, match="held open by a person"):
        breaker.admit()
    breaker.let_go()
    assert breaker.state is State.HALF_OPEN
    succeeds(breaker)
    assert breaker.state is State.CLOSED


def test_held_closed_admits_everyone_whatever_fails(clock):
    breaker = opened(clock)
    breaker.hold_closed()
    fails(breaker, 10)
    assert breaker.state is State.CLOSED
    assert not breaker.told_open(60, 1)
    breaker.let_go()
    assert breaker.state is State.CLOSED
    fails(breaker)
    assert breaker.state is State.OPEN


def test_letting_go_of_what_is_not_held_changes_nothing(clock):
    breaker = opened(clock)
    generation = breaker.generation
    breaker.let_go()
    assert (breaker.state, breaker.generation) == (State.OPEN, generation)


def test_a_reset_forgets_everything(clock):
    breaker = Breaker(failures=2)
    fails(breaker)
    breaker.hold_open()
    breaker.reset()
    fails(breaker)
    assert breaker.state is State.CLOSED


# --- others, and restarts ---


class Heard:
    def __init__(self):
        self.records = []

    def changed(self, name, record):
        self.records.append((name, record.state.value, record.generation, record.failures, record.told))


def test_others_hear_of_each_change_with_what_led_to_it(clock):
    heard = Heard()
    breaker = opened(clock, peers=heard, name="shop")
    clock.advance(10)
    succeeds(breaker)
    assert heard.records == [
        ("shop", "open", 2, 1, False),
        ("shop", "half_open", 3, 1, False),
        ("shop", "closed", 4, 1, False),
    ]


def test_who_cannot_hear_it_breaks_no_call(clock, notes):
    class Deaf:
        def changed(self, name, record):
            raise OSError

    opened(clock, peers=Deaf())
    assert [name for name, _ in notes] == ["breaker.opened", "breaker.unheard"]


def test_a_hint_opens_it(clock):
    heard = Heard()
    breaker = Breaker(failures=3, permits=1, peers=heard)
    assert breaker.told_open(20, generation=7)
    assert breaker.retry_in() == 20
    with pytest.raises(BreakerOpen, match="others found"):
        breaker.admit()
    assert [each[-1] for each in heard.records] == [True]  # it is not evidence to be passed on
    clock.advance(20)
    succeeds(breaker)
    assert breaker.state is State.CLOSED


def test_a_hint_that_is_not_newer_is_ignored(clock):
    breaker = Breaker(failures=1, permits=1)
    breaker.told_open(20, generation=7)
    assert not breaker.told_open(60, generation=7)
    assert not breaker.told_open(60, generation=6)
    assert breaker.retry_in() == 20


def test_a_hint_only_makes_the_time_longer(clock):
    breaker = opened(clock)
    assert breaker.told_open(3, generation=1)
    assert breaker.retry_in() == 10
    assert breaker.told_open(30, generation=2)
    assert breaker.retry_in() == 30


def test_a_hint_ends_half_open(clock):
    breaker = half_open(clock)
    probe = breaker.admit()
    breaker.told_open(5, generation=1)
    probe.record()
    assert breaker.state is State.OPEN


def test_a_record_survives_a_restart_as_json(clock):
    breaker = opened(clock)
    clock.advance(2)
    stored = msgspec.json.encode(breaker.record())
    fresh = Breaker(failures=1, cooldown=10, permits=1)
    fresh.restore(msgspec.json.decode(stored, type=BreakerRecord), age=3)
    assert (fresh.state, fresh.retry_in()) == (State.OPEN, 5)
    assert fresh.generation > breaker.generation
    clock.advance(5)
    succeeds(fresh)
    assert fresh.state is State.CLOSED


@pytest.mark.parametrize(
    ("record", "age", "state"),
    [
        (BreakerRecord(), 0, State.CLOSED),
        (BreakerRecord(state=State.OPEN, open_for=10), 60, State.HALF_OPEN),
        (BreakerRecord(state=State.HALF_OPEN), 0, State.HALF_OPEN),
        (BreakerRecord(state=State.OPEN, held=True), 1e6, State.OPEN),
        (BreakerRecord(state=State.CLOSED, held=True), 0, State.CLOSED),
    ],
)
def test_what_a_record_means_later(clock, record, age, state):
    breaker = Breaker(failures=1)
    breaker.restore(record, age)
    assert breaker.state is state
    assert breaker.record().held is record.held


@pytest.mark.parametrize("seconds", [-1, float("inf"), float("nan"), 1e9, "60"])
def test_a_hint_or_record_without_sense_is_refused(clock, seconds):
    breaker = Breaker(failures=1)
    with pytest.raises(UsageError):
        breaker.told_open(seconds, 1)
    with pytest.raises(UsageError):
        breaker.restore(BreakerRecord(state=State.OPEN, open_for=seconds))
    assert breaker.state is State.CLOSED


# --- options and blocks ---


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"failure_ratio": 2}, r"failure_ratio is a share from 0 to 1, not 2. For 2 % write 0.02"),
        ({"failure_ratio": 0}, "failure_ratio must be from"),
        ({"failure_ratio": "half"}, "failure_ratio must be a number"),
        ({"minimum": 0}, "minimum must be from 1"),
        ({"minimum": 2.5}, "minimum must be a whole number"),
        ({"window": 0}, "window must be from"),
        ({"window": float("nan")}, "window must be from"),
        ({"calls": 0}, "calls must be from"),
        ({"calls": 10, "minimum": 11}, "minimum=11 is never reached with calls=10"),
        ({"calls": 10}, "minimum=20 is never reached"),
        ({"calls": 100, "window": 60}, "two kinds of window"),
        ({"failures": 0}, "failures must be from 1"),
        ({"failures": 3, "failure_ratio": 0.5}, "failure_ratio=0.5 belongs to the form with a share"),
        ({"failures": 3, "minimum": 5}, "minimum=5 belongs to the form with a share"),
        ({"failures": 3, "window": 60, "calls": 5}, "calls=5 belongs to the form with a share"),
        ({"failures": 3, "window": 0}, "window must be from"),
        ({"failures": 3, "slow": 1, "slow_ratio": 0.5}, "slow_ratio=0.5 belongs"),
        ({"slow": 0}, "slow must be from"),
        ({"slow_ratio": 0.5}, "slow_ratio=0.5 needs slow="),
        ({"slow": 1, "slow_ratio": 50}, "For 50 % write 0.5"),
        ({"cooldown": 0}, "cooldown must be from"),
        ({"cooldown": "5m"}, "cooldown must be a number of seconds"),
        ({"permits": 0}, "permits must be from 1"),
        ({"lease": -1}, "lease must be from"),
        ({"classify": 5}, "classify is a function, not 5"),
        ({"failing": ["sometimes"]}, "failing is a set of faults"),
        ({"failing": 5}, "failing is a set of faults"),
        ({"name": ""}, "must not be empty"),
    ],
)
def test_a_bad_option_is_refused_with_its_value(options, words):
    with pytest.raises(UsageError, match=words):
        Breaker(**options)


async def test_blocks_of_many_tasks_on_one_breaker(clock):
    breaker = Breaker(failures=3)

    async def works(fault):
        async with breaker as permit:
            await asyncio.sleep(0)
            if fault:
                raise ConnectionError
        return permit

    outcomes = await asyncio.gather(*(works(n % 2) for n in range(4)), return_exceptions=True)
    assert [type(each).__name__ for each in outcomes] == ["Permit", "ConnectionError"] * 2
    assert breaker.record().failures == 1  # in a row: a success came between


def test_blocks_that_nest_and_blocks_that_overlap(clock):
    one, two = Breaker(failures=1, name="one"), Breaker(failures=1, name="two")
    with one, two, one:
        pass
    one.__enter__()
    two.__enter__()
    one.__exit__(None, None, None)
    two.__exit__(ConnectionError, ConnectionError(), None)
    assert (one.state, two.state) == (State.CLOSED, State.OPEN)
    with pytest.raises(UsageError, match="another task or thread"):
        one.__exit__(None, None, None)


def test_it_shows_itself(clock):
    breaker = Breaker(failures=1)
    breaker.take_name("shop")
    breaker.take_name("other")
    assert repr(breaker) == "<Breaker 'shop' closed>"
    breaker.hold_open()
    assert repr(breaker) == "<Breaker 'shop' open (held)>"


def test_what_others_made_longer_is_no_evidence_of_its_own(clock):
    breaker = Breaker(failures=1, cooldown=4, permits=1)
    fails(breaker)
    assert breaker.told_open(10, 1)
    assert (breaker.record().told, breaker.is_told) == (False, False)
    clock.advance(4)
    assert breaker.state is State.OPEN
    assert (breaker.record().told, breaker.is_told) == (True, True)
    clock.advance(6)
    assert breaker.state is State.HALF_OPEN
