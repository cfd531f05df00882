"""Limiter and breaker as their variables say, with the values of the original where none is set."""

from __future__ import annotations

import httpx2
import pytest
from publisher import core
from publisher.outside.deviantart import DeviantArt
from publisher.outside.errors import AppLimited, NobodyKnows, Passing, Refused, UserLimited
from publisher.settings import settings_of

from holdfast.errors import BreakerOpen
from holdfast.guards import Guard

pytestmark = pytest.mark.usefixtures("manual_clock")


def limiter(**told):
    return core._limiter(settings_of({f"RATE_LIMITER_{name}": value for name, value in told.items()}))


def breaker(**told):
    return core._breaker(settings_of({f"CIRCUIT_BREAKER_{name}": value for name, value in told.items()}))


def interval(limiter, key="ada"):
    return 1 / limiter.record(key=key).rate


def answered(clock, limiter, *, times, key="ada"):
    """Calls that were made when their turn had come, and went well."""
    for _ in range(times):
        clock.advance(limiter.record(key=key).paused_for + interval(limiter, key) + 1)
        limiter.reserve(key=key)
        clock.advance(0.01)
        limiter.succeeded(key=key)


def throttled(clock, limiter, *, key="ada"):
    clock.advance(limiter.record(key=key).paused_for + interval(limiter, key) + 1)
    limiter.reserve(key=key)
    clock.advance(0.01)
    limiter.throttled(key=key)
    return limiter.record(key=key).paused_for


# --- the pace of an artist ---


def test_it_begins_with_three_seconds_and_each_answer_makes_it_a_tenth_shorter(manual_clock):
    """P38: and never shorter than the fastest, which is below the start."""
    pace = limiter()
    assert interval(pace) == pytest.approx(3.0)
    answered(manual_clock, pace, times=1)
    assert interval(pace) == pytest.approx(2.7, rel=0.01)
    answered(manual_clock, pace, times=19)
    assert interval(pace) == pytest.approx(1.0, rel=0.01)


def test_each_429_doubles_it_up_to_five_minutes(manual_clock):
    pace = limiter()
    for expected in (6.0, 12.0, 24.0):
        throttled(manual_clock, pace)
        assert interval(pace) == pytest.approx(expected, rel=0.01)
    for _ in range(8):
        throttled(manual_clock, pace)
    assert interval(pace) == pytest.approx(300.0, rel=0.01)


def test_a_rest_after_429_grows_to_forty_minutes(manual_clock):
    """P40: without Retry-After, and longer than a block of half an hour, so that no call makes that longer."""
    pace = limiter(JITTER_PERCENT="0")
    rests = [round(throttled(manual_clock, pace)) for _ in range(8)]
    assert rests[0] == 60
    assert rests[1:3] == [120, 240]
    assert rests[-1] == 2400
    answered(manual_clock, pace, times=1)
    assert round(throttled(manual_clock, pace)) == 60


def test_a_429_of_one_artist_slows_nobody_else(manual_clock):
    pace = limiter()
    throttled(manual_clock, pace, key="ada")
    assert interval(pace, "bo") == pytest.approx(3.0)


@pytest.mark.parametrize(
    ("told", "least", "most"),
    [
        ("120", 120, 144),
        ("Thu, 01 Jan 2099 00:00:00 GMT", 2400, 2880),  # as long as any rest may be
        ("1000000000", 2400, 2880),
        ("soon", 60, 72),  # as if nothing had been told
        (None, 60, 72),
    ],
)
async def test_retry_after_is_obeyed_as_far_as_it_goes(manual_clock, told, least, most):
    """P40: seconds or a date, as the answer had it; a little longer by chance."""

    async def send(request):
        headers = {} if told is None else {"Retry-After": told}
        return httpx2.Response(429, json={"error": "user_api_threshold"}, headers=headers)

    guard = Guard("deviantart", limiter=limiter(), classify=core._fault)
    async with httpx2.AsyncClient(
        transport=httpx2.MockTransport(send), base_url="https://a.example"
    ) as client:
        with pytest.raises(UserLimited):
            await guard.keyed("ada").call(DeviantArt(client).whoami, "token")
    assert least - 1 <= guard.limiter.record(key="artist:ada").paused_for <= most


@pytest.mark.parametrize(
    ("name", "value", "before", "after"),
    [
        ("BASE_DELAY_MS", "5000", 5.0, 10.0),
        ("FAILURE_INCREASE_FACTOR", "4", 3.0, 12.0),
        ("MAX_DELAY_MS", "4000", 3.0, 4.0),
    ],
)
def test_each_variable_of_the_limiter_is_in_force_after_a_429(manual_clock, name, value, before, after):
    """P43."""
    pace = limiter(**{name: value})
    assert interval(pace) == pytest.approx(before)
    throttled(manual_clock, pace)
    assert interval(pace) == pytest.approx(after, rel=0.01)


def test_the_other_variables_of_the_limiter_are_in_force(manual_clock):
    """P43: the factor of answers, the jitter, and that there is none."""
    quick = limiter(SUCCESS_DECREASE_FACTOR="0.5")
    answered(manual_clock, quick, times=1)
    assert interval(quick) == pytest.approx(1.5, rel=0.01)
    for jitter, most in (("0", 60.0), ("20", 72.0), ("100", 120.0)):
        rests = [throttled(manual_clock, limiter(JITTER_PERCENT=jitter)) for _ in range(50)]
        assert 59.9 <= min(rests) <= max(rests) <= most + 0.1
        assert jitter == "0" or max(rests) > 60.5
    assert limiter(ENABLED="false") is None


# --- the breaker of the application ---


def guarded(**told):
    return Guard("deviantart", breaker=breaker(**told), classify=core._fault)


async def fails(guard, error, times=1):
    async def call():
        raise error

    for _ in range(times):
        with pytest.raises(type(error)):
            await guard.call(call)


async def goes_well(guard):
    async def call():
        return "well"

    return await guard.call(call)


async def is_refused(guard):
    called = []

    async def call():
        called.append(1)

    with pytest.raises(BreakerOpen):
        await guard.call(call)
    return not called


async def test_breaker_closed_open_half_open_and_closed_again(manual_clock):
    """P33: each edge of the diagram, at the values of the original."""
    guard = guarded()
    await fails(guard, AppLimited("429"), 2)
    assert await goes_well(guard) == "well"
    await fails(guard, AppLimited("429"))
    assert await is_refused(guard)
    manual_clock.advance(200)
    assert await is_refused(guard), "five minutes, more or less by a fifth"
    manual_clock.advance(161)
    await fails(guard, Passing("503"))  # the one probe
    assert await is_refused(guard)
    manual_clock.advance(361)
    assert await goes_well(guard) == "well"
    assert await goes_well(guard) == "well"


async def test_half_open_lets_one_probe_through(manual_clock):
    guard = guarded()
    await fails(guard, Passing("503"), 3)
    manual_clock.advance(361)
    probe = guard.breaker.admit()
    assert await is_refused(guard)
    probe.record()
    assert await goes_well(guard) == "well"


async def test_what_opens_it_is_of_the_application_and_not_of_an_artist(manual_clock):
    """P34, D5: 429 of the application, 5xx and what nobody knows; 429 of an artist and refusals do not."""
    for error in (UserLimited("429"), Refused("no")):
        guard = guarded()
        await fails(guard, error, 10)
        assert await goes_well(guard) == "well"
    for error in (AppLimited("429"), Passing("500"), NobodyKnows("time-out"), TimeoutError()):
        guard = guarded()
        await fails(guard, error, 3)
        assert await is_refused(guard)


async def test_each_variable_of_the_breaker_is_in_force(manual_clock):
    """P44; where it is kept is in test_publisher_settings."""
    guard = guarded(THRESHOLD="5", OPEN_DURATION_MS="1000")
    await fails(guard, Passing("500"), 4)
    assert await goes_well(guard) == "well"
    await fails(guard, Passing("500"))
    assert await is_refused(guard)
    manual_clock.advance(1.3)
    assert await goes_well(guard) == "well"
    assert breaker(ENABLED="false") is None


def test_breakers_meet_in_redis_or_in_the_database():
    """P44: CIRCUIT_BREAKER_PERSIST_TO_REDIS counts where there is a Redis; the promise holds either way."""
    redis = {"REDIS_URL": "redis://cache"}
    assert settings_of(redis).guards_url == "redis://cache"
    assert settings_of(redis | {"CIRCUIT_BREAKER_PERSIST_TO_REDIS": "false"}).guards_url is None
    assert settings_of({}).guards_url is None
