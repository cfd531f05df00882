"""The limiter: each option, waiting and refusing, reservations, keys, and adapting."""

from __future__ import annotations

import asyncio

import pytest
from virtual import refused, virtually

from holdfast.guards import Fault, Limiter, LimiterRecord, RateLimited, Reservation, Slice, carrying
from holdfast.kernel.clock import monotonic
from holdfast.kernel.errors import UsageError

approx = pytest.approx


def taken(limiter, times=100, **options):
    """How many are admitted at once."""
    return sum(limiter.try_take(**options) for _ in range(times))


# --- rate and burst ---


def test_a_burst_and_then_one_after_the_other(clock):
    limiter = Limiter(rate=10, burst=5)
    assert taken(limiter) == 5
    clock.advance(0.1)
    assert taken(limiter) == 1
    clock.advance(0.25)
    assert taken(limiter) == 2
    clock.advance(60)
    assert taken(limiter) == 5


@pytest.mark.parametrize(("rate", "burst"), [(10, 10), (0.2, 1), (2.5, 2)])
def test_the_burst_is_what_comes_in_a_second_when_nobody_says(clock, rate, burst):
    assert taken(Limiter(rate=rate)) == burst


def test_a_call_may_cost_more(clock):
    limiter = Limiter(rate=10, burst=10)
    assert limiter.try_take(7)
    assert not limiter.try_take(4)
    assert limiter.try_take(3)
    with pytest.raises(UsageError, match="at most burst=10, not 11"):
        limiter.try_take(11)
    with pytest.raises(UsageError, match="above 0"):
        limiter.try_take(0)


def test_a_cost_that_is_no_number_does_not_make_the_limiter_forget(clock):
    limiter = Limiter(rate=10, burst=10)
    assert taken(limiter) == 10
    for cost, shown in ((float("nan"), "nan"), ("3", "'3'"), (None, "None")):
        with pytest.raises(UsageError, match=f"not {shown}"):
            limiter.try_take(cost)
    assert taken(limiter) == 0


def test_who_waits_gets_his_turn_in_order():
    async def main():
        limiter, turns = Limiter(rate=10, burst=1), []

        async def caller(number):
            await limiter.take()
            turns.append((number, round(monotonic(), 6)))

        for number in range(5):
            tasks = asyncio.ensure_future(caller(number))
            await asyncio.sleep(0)
        await tasks
        return turns

    assert virtually(main) == [(n, round(n * 0.1, 6)) for n in range(5)]


def test_who_would_wait_too_long_is_refused_at_once_and_takes_nothing():
    async def main():
        limiter = Limiter(rate=1, burst=1, wait=1.5)
        await limiter.take()
        await limiter.take()
        limiter.reserve()
        with refused(RateLimited) as told:
            await limiter.take()
        assert (monotonic(), told["after"]) == (1.0, 2.0)
        with pytest.raises(RateLimited, match=r"'limiter' admits no call for 2 s"):
            limiter.reserve()
        assert limiter.allowance().retry_after == 2.0

    virtually(main)


def test_blocks_wait_at_their_beginning():
    async def main():
        limiter = Limiter(rate=1, burst=1)
        for _ in range(3):
            async with limiter:
                pass
        return monotonic()

    assert virtually(main) == 2


def test_who_is_cancelled_while_waiting_gives_his_turn_back():
    async def main():
        limiter = Limiter(rate=1, burst=1)
        await limiter.take()
        waits = asyncio.ensure_future(limiter.take())
        await asyncio.sleep(0.5)
        waits.cancel()
        await asyncio.wait([waits])
        await limiter.take()
        return monotonic()

    assert virtually(main) == 1


# --- reservations ---


def test_a_reservation_is_for_a_moment(clock):
    limiter = Limiter(rate=1, burst=1)
    assert [limiter.reserve().at for _ in range(3)] == [0, 1, 2]
    with refused(RateLimited) as told:
        limiter.reserve(within=2.5)
    assert told["after"] == 3


def test_the_last_reservation_can_be_given_back(clock):
    limiter = Limiter(rate=1, burst=1)
    limiter.reserve()
    second, third = limiter.reserve(), limiter.reserve()
    third.give_back()
    third.give_back()
    second.give_back()
    assert limiter.reserve().at == 1


def test_what_delays_a_later_one_is_lost(clock):
    limiter = Limiter(rate=1, burst=1)
    first, _ = limiter.reserve(), limiter.reserve()
    first.give_back()
    assert limiter.reserve().at == 2  # at 1 there would be two


def test_what_delays_nobody_is_given_to_another(clock):
    limiter = Limiter(rate=1, burst=3)
    first, _, _ = (limiter.reserve() for _ in range(3))
    first.give_back()
    assert taken(limiter) == 1


def test_the_moment_of_who_no_longer_waits_is_for_the_next_who_asks(clock):
    """It was lost: when a third of those who waited gave up, a quarter of the rate was not used."""
    limiter = Limiter(rate=10, burst=1)
    moments = [limiter.reserve() for _ in range(5)]
    moments[2].give_back()
    assert limiter.reserve().at == moments[2].at
    assert limiter.reserve().at == pytest.approx(moments[4].at + 0.1)
    moments[3].give_back()
    again = limiter.reserve()
    again.give_back()  # and so is that of who came to it
    with pytest.raises(RateLimited):
        limiter.reserve(within=0.2)
    assert limiter.reserve(within=0.35).at == moments[3].at
    moments[1].give_back()
    clock.advance(0.15)
    assert limiter.reserve().at > moments[4].at  # it has passed, and nobody may come later instead


def test_a_pause_ends_what_others_no_longer_want(clock):
    limiter = Limiter(rate=10, burst=1)
    moments = [limiter.reserve() for _ in range(5)]
    moments[2].give_back()
    limiter.throttled(1)
    assert limiter.reserve().at >= clock.monotonic() + 1


def test_what_time_has_given_back_is_not_given_twice(clock):
    limiter = Limiter(rate=1, burst=2)
    early = limiter.reserve()
    clock.advance(5)
    assert limiter.try_take()
    early.give_back()
    assert taken(limiter) == 1


def test_the_part_that_time_has_given_back_is_not_given_twice(clock):
    limiter = Limiter(rate=0.5, burst=2)
    early = limiter.reserve()
    clock.advance(0.5)
    assert limiter.try_take()
    early.give_back()
    assert limiter.try_take()
    assert limiter.reserve().at == 2.5  # two seconds after the first of those that were made


def test_a_reservation_is_spent_once_and_soon(clock):
    reservation = Limiter(rate=1).reserve()
    assert reservation.spend(clock.monotonic())
    assert not reservation.spend(clock.monotonic())
    limiter = Limiter(rate=1)
    old = limiter.reserve()
    assert not old.spend(1.5)


def test_the_first_call_inside_spends_what_was_carried(clock):
    limiter = Limiter(rate=1, burst=1)
    reservation = limiter.reserve()
    with carrying(reservation):
        assert taken(limiter) == 1
    assert not reservation.is_open
    with carrying(limiter.reserve()):
        pass
    assert limiter.reserve().at == 1  # it was given back


def test_what_was_carried_is_for_its_limiter_and_key_only(clock):
    limiter, other = Limiter(rate=1, burst=1), Limiter(rate=1, burst=1)
    with carrying(limiter.reserve(key="a")) as reservation:
        assert taken(other, key="a") == 1
        assert taken(limiter, key="b") == 1
        assert reservation.is_open
        assert taken(limiter, key="a") == 1
        assert not reservation.is_open


def test_what_was_carried_for_later_is_waited_for():
    async def main():
        limiter = Limiter(rate=1, burst=1)
        limiter.reserve()
        with carrying(limiter.reserve()):
            await limiter.take()
        return monotonic(), limiter.reserve().at

    assert virtually(main) == (1, 2)


# --- keys ---


def test_each_key_has_a_rate_of_its_own(clock):
    limiter = Limiter(rate=1, burst=2, per="user:{user_id}")
    assert [limiter.key_for(7), limiter.key_for(user_id="ada")] == ["user:7", "user:ada"]
    assert (taken(limiter, key="user:7"), taken(limiter, key="user:ada"), taken(limiter)) == (2, 2, 2)


def test_keys_of_several_values():
    limiter = Limiter(rate=1, per="{tenant}/{user}")
    assert limiter.key_for("acme", 7) == limiter.key_for("acme", user=7) == "acme/7"
    for wrong in [(), ("acme",), ("acme", 7, 8)]:
        with pytest.raises(UsageError, match="needs tenant, user"):
            limiter.key_for(*wrong)
    with pytest.raises(UsageError, match="needs tenant, user"):
        limiter.key_for("acme", 7, colour="red")
    with pytest.raises(UsageError, match="needs 'user' as text"):
        limiter.key_for("acme", 1.5)


def test_without_per_a_value_is_the_key():
    assert Limiter(rate=1).key_for("ada") == "ada"
    with pytest.raises(UsageError, match="with per="):
        Limiter(rate=1).key_for("acme", 7)


def test_a_key_that_matters_is_never_forgotten(clock, notes):
    limiter = Limiter(rate=1, burst=1, keys=2)
    assert limiter.try_take(key="a")
    assert limiter.try_take(key="b")
    assert not limiter.try_take(key="c")
    assert [name for name, _ in notes] == ["limiter.full"]
    assert not limiter.try_take(key="a")
    clock.advance(1)
    assert limiter.try_take(key="c")
    assert limiter.try_take(key="a")
    assert not limiter.try_take(key="a")


def test_the_key_used_longest_ago_makes_room(clock):
    limiter = Limiter(rate=1000, burst=1, keys=100)
    for number in range(5000):
        assert limiter.try_take(key=f"user:{number}")
        clock.advance(0.01)
    assert len(limiter._registry) <= 100


def test_a_full_registry_that_was_looked_through_is_not_looked_through_for_each_call(clock):
    limiter = Limiter(rate=1, burst=1, keys=20)
    for number in range(20):
        limiter.try_take(key=str(number))
    assert not limiter.try_take(key="new")
    swept = limiter._registry._next_sweep
    clock.advance(0.5)
    assert not limiter.try_take(key="new")
    assert limiter._registry._next_sweep == swept == 1


def test_a_key_that_was_slowed_down_is_remembered_for_a_while(clock):
    limiter = Limiter(rate=10, burst=1, floor=0.1, keys=1)
    limiter.throttled(key="a")
    clock.advance(60)
    assert not limiter.try_take(key="b")
    clock.advance(600)
    assert limiter.try_take(key="b")


# --- adapting ---


def test_each_answer_makes_it_faster_up_to_the_ceiling(clock):
    limiter = Limiter(rate=1, ceiling=2)
    limiter.succeeded()
    assert limiter.rate() == approx(1 / 0.9)
    for _ in range(20):
        limiter.succeeded()
    assert limiter.rate() == 2


def test_being_throttled_makes_it_half_as_fast_down_to_the_floor(clock):
    limiter = Limiter(rate=8, burst=1, floor=1.5)
    rates = []
    for _ in range(4):
        clock.advance(10)
        limiter.throttled()
        rates.append(limiter.rate())
    assert rates == [4, 2, 1.5, 1.5]
    assert limiter.rate(key="unknown") == 8


def test_many_calls_that_were_sent_together_count_as_one(clock, notes):
    limiter = Limiter(rate=64, floor=1)
    clock.advance(1)
    for _ in range(10):
        limiter.answered("", Fault.THROTTLED, 0.5, clock.monotonic())
    limiter.answered("", None, 0.5, clock.monotonic())
    assert limiter.rate() == 32
    assert [name for name, _ in notes] == ["limiter.slowed", "limiter.held_up"]


def test_a_permanent_fault_is_an_answer_and_others_tell_nothing(clock):
    limiter = Limiter(rate=1, ceiling=10)
    for fault in (Fault.UNKNOWN, Fault.TRANSIENT):
        limiter.answered("", fault, 0, 0, retry_after=30)
    assert limiter.rate() == 1
    limiter.answered("", Fault.PERMANENT, 0, 0)
    assert limiter.rate() > 1


def test_without_floor_and_ceiling_it_does_not_adapt_but_pauses(clock):
    limiter = Limiter(rate=2, burst=4)
    limiter.throttled()
    limiter.succeeded()
    assert limiter.rate() == 2
    assert limiter.reserve().at == 0.5


def test_slowing_down_frees_nothing(clock):
    limiter = Limiter(rate=10, burst=10, floor=1)
    assert taken(limiter) == 10
    limiter.throttled()
    clock.advance(0.2)
    assert taken(limiter) == 1


def test_retry_after_is_obeyed_and_then_there_is_no_burst(clock):
    limiter = Limiter(rate=10, burst=10)
    limiter.throttled(5)
    assert limiter.allowance().retry_after == approx(5.5)  # a fifth later at most, by chance; never earlier
    assert [limiter.reserve().at for _ in range(3)] == approx([5.5, 5.6, 5.7])


@pytest.mark.parametrize(
    ("asked", "pause"),
    [(0, 0), (10**9, 330), (-1, 0.1), (float("nan"), 0.1), ("soon", 0.1), (float("inf"), 330)],
)
def test_retry_after_is_clamped_and_garbage_is_no_answer(clock, asked, pause):
    limiter = Limiter(rate=10, burst=1)
    limiter.throttled(asked)
    assert limiter.allowance().retry_after == approx(pause)


def test_the_longest_pause_is_an_option(clock):
    limiter = Limiter(rate=10, longest_pause=20)
    clock.chance = 0
    limiter.throttled(10**9)
    assert limiter.allowance().retry_after == 20


def test_a_shorter_pause_does_not_end_a_longer_one(clock):
    limiter = Limiter(rate=10)
    clock.chance = 0
    limiter.throttled(60)
    limiter.throttled(1)
    assert limiter.allowance().retry_after == 60


def test_a_pause_of_one_key_stops_no_other(clock):
    limiter = Limiter(rate=10)
    limiter.throttled(60, key="a")
    assert not limiter.try_take(key="a")
    assert limiter.try_take(key="b")


# --- what others are told ---


def test_the_headers_follow_what_is_left(clock):
    limiter = Limiter(rate=10, burst=20, name="api")
    assert limiter.headers() == {"RateLimit-Policy": '"api";q=20;w=2', "RateLimit": '"api";r=20;t=0'}
    taken(limiter, 20)
    assert limiter.headers() == {
        "RateLimit-Policy": '"api";q=20;w=2',
        "RateLimit": '"api";r=0;t=2',
        "Retry-After": "1",
    }
    assert limiter.headers(key="other")["RateLimit"] == '"api";r=20;t=0'


# --- quota of a fleet ---


class Shares:
    """A fleet that gives what the test puts in."""

    def __init__(self, *slices):
        self.slices, self.asked, self.returned = list(slices), [], []

    def take(self, name, key, units):
        self.asked.append((name, key, units))
        return self.slices.pop(0) if self.slices else Slice(0, ask_again=0.25)

    def call_when(self, name, key, units, call):
        return None

    def give_back(self, name, key, part):
        self.returned.append((name, key, part.units, part.lasts))

    def slowed(self, name, key, record):
        self.heard = (name, key, record)


def test_calls_are_admitted_from_slices(clock):
    shares = Shares(Slice(3), Slice(2))
    limiter = Limiter(rate=100, quota=shares, name="api")
    assert taken(limiter, 10, key="a") == 5
    assert set(shares.asked) == {("api", "a", 1)}


def test_what_is_left_of_a_slice_is_void_after_its_time(clock):
    limiter = Limiter(rate=100, quota=Shares(Slice(3, lasts=0.5)))
    assert limiter.try_take()
    clock.advance(0.5)
    assert not limiter.try_take()


def test_a_slice_lasts_a_second_at_most(clock):
    limiter = Limiter(rate=100, quota=Shares(Slice(3, lasts=60)))
    assert limiter.try_take()
    clock.advance(1)
    assert not limiter.try_take()


def test_a_generous_fleet_does_not_lift_the_rate(clock):
    limiter = Limiter(rate=10, burst=5, quota=Shares(Slice(1000)))
    assert taken(limiter) == 5


def test_who_finds_no_quota_asks_again():
    async def main():
        limiter = Limiter(rate=100, quota=Shares(Slice(0, ask_again=0.25), Slice(0, ask_again=0.5), Slice(1)))
        await limiter.take()
        return monotonic()

    assert virtually(main) == 0.75


def test_who_finds_none_in_time_is_refused():
    async def main():
        limiter = Limiter(rate=100, wait=1, quota=Shares())
        with refused(RateLimited) as told:
            await limiter.take()
        return monotonic(), told["after"]

    assert virtually(main) == (1, 0.25)


def test_what_is_not_used_goes_back_to_the_fleet(clock):
    shares = Shares(Slice(1))
    Limiter(rate=100, quota=shares, name="api").reserve(key="a").give_back()
    assert shares.returned == [("api", "a", 1.0, 1.0)]


def test_what_is_given_back_is_good_for_no_longer_than_it_was(clock):
    shares = Shares(Slice(1, lasts=0.5), Slice(1, lasts=0.5))
    limiter = Limiter(rate=100, quota=shares, name="api")
    first, second = limiter.reserve(), limiter.reserve()
    clock.advance(0.3)
    first.give_back()
    assert shares.returned == [("api", "", 1.0, approx(0.2))]
    clock.advance(0.3)
    second.give_back()  # it has lapsed: nobody may use it any more
    assert len(shares.returned) == 1


def test_what_a_job_brought_along_is_good_for_no_longer_either(clock):
    shares = Shares(Slice(1, lasts=0.5))
    limiter = Limiter(rate=100, quota=shares, name="api")
    with carrying(limiter.reserve()):
        clock.advance(0.3)
        limiter.reserve().give_back()  # the call that spends it is not made after all
    assert shares.returned == [("api", "", 1.0, approx(0.2))]


# --- options ---


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"rate": 0}, "rate must be from"),
        ({"rate": "10/s"}, "rate must be a number, not '10/s'"),
        ({"rate": float("inf")}, "rate must be from"),
        ({"rate": True}, "rate must be a number"),
        ({"rate": 1, "burst": 0.5}, "burst must be from 1"),
        ({"rate": 10, "floor": 20}, "floor=20 must be at most rate=10"),
        ({"rate": 10, "ceiling": 5}, "ceiling=5 must be at least rate=10"),
        ({"rate": 10, "floor": 0}, "floor must be from"),
        ({"rate": 10, "per": "user"}, "names nothing"),
        ({"rate": 10, "per": "user:{user_id!r}"}, "cannot be read"),
        ({"rate": 10, "per": 5}, "per is text"),
        ({"rate": 10, "keys": 0}, "keys must be from 1"),
        ({"rate": 10, "wait": -1}, "wait must be from"),
        ({"rate": 10, "longest_pause": "5m"}, "longest_pause must be a number of seconds"),
        ({"rate": 10, "name": "a\nb"}, "has the character U"),
    ],
)
def test_a_bad_option_is_refused_with_its_value(options, words):
    with pytest.raises(UsageError, match=words):
        Limiter(**options)


def test_it_shows_itself():
    limiter = Limiter(rate=2.5)
    limiter.take_name("api")
    assert repr(limiter) == "<Limiter 'api' 2.5/s burst 2.5>"
    assert isinstance(limiter.reserve(), Reservation)


def test_who_waits_when_a_pause_is_asked_for_waits_until_it_is_over():
    async def main():
        limiter, turns = Limiter(rate=1, burst=1, wait=60), []

        async def caller():
            await limiter.take()
            turns.append(round(monotonic(), 6))

        tasks = [asyncio.ensure_future(caller()) for _ in range(4)]
        await asyncio.sleep(1.5)
        limiter.throttled(10)
        await asyncio.gather(*tasks)
        return turns

    assert virtually(main) == [0, 1, 12.5, 13.5]


def test_a_reservation_from_before_a_pause_is_void(clock):
    limiter = Limiter(rate=1, burst=1)
    limiter.reserve()
    reservation = limiter.reserve()
    limiter.throttled(0.5)
    assert not limiter.honours(reservation)
    clock.advance(1)
    assert not reservation.spend(clock.monotonic())


def test_the_fleet_hears_of_being_throttled_and_others_are_told(clock):
    shares = Shares()
    limiter = Limiter(rate=8, floor=1, quota=shares, name="api")
    limiter.throttled(10, key="a")
    assert shares.heard == ("api", "a", LimiterRecord(rate=4, paused_for=11))
    other = Limiter(rate=8, floor=1)
    other.told_pause(11)
    other.told_pause(3)
    assert (other.allowance().retry_after, other.rate()) == (11, 8)


def test_a_penalty_survives_a_restart(clock):
    limiter = Limiter(rate=8, burst=1, floor=1, ceiling=10)
    limiter.throttled(100)
    record = limiter.record()
    fresh = Limiter(rate=8, burst=1, floor=1, ceiling=10)
    fresh.restore(record, age=10)
    assert (fresh.rate(), fresh.allowance().retry_after) == (4, approx(100))
    fresh.restore(LimiterRecord(rate=1000), key="a")
    assert (fresh.rate(key="a"), fresh.allowance(key="a").retry_after) == (approx(10), 0)
    with pytest.raises(UsageError, match="rate must be from"):
        fresh.restore(LimiterRecord(rate=0))


def test_a_fleet_that_cannot_hear_it_breaks_no_call(clock, notes):
    class Deaf(Shares):
        def give_back(self, name, key, part):
            raise OSError

        slowed = give_back

    limiter = Limiter(rate=10, quota=Deaf(Slice(1)))
    limiter.reserve().give_back()
    limiter.throttled()
    assert [name for name, _ in notes] == [
        "limiter.unheard",
        "limiter.slowed",
        "limiter.held_up",
        "limiter.unheard",
    ]
