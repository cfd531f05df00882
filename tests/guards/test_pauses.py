"""The share of the last hour in which a limiter was paused."""

import pytest

from holdfast.guards import Limiter
from holdfast.guards.pauses import Pauses


def test_pauses_that_overlap_count_once(clock):
    pauses = Pauses()
    now = clock.monotonic()
    pauses.add(now, now + 60)
    clock.advance(30)
    pauses.add(clock.monotonic(), now + 45)
    pauses.add(clock.monotonic(), now + 90)
    assert pauses.share() == pytest.approx(30 / 3600)
    clock.advance(300)
    assert pauses.share() == pytest.approx(90 / 3600)


def test_what_is_older_than_an_hour_is_forgotten(clock):
    pauses = Pauses()
    for _ in range(120):
        now = clock.monotonic()
        pauses.add(now, now + 15)
        clock.advance(60)
    assert pauses.share() == pytest.approx(0.25, abs=0.01)
    assert len(pauses._slots) < 70
    clock.advance(3700)
    assert pauses.share() == 0


def test_a_long_one_counts_as_far_as_it_goes(clock):
    pauses = Pauses()
    pauses.add(clock.monotonic(), clock.monotonic() + 86_400)
    clock.advance(1800)
    assert pauses.share() == pytest.approx(0.5)
    clock.advance(7200)
    assert pauses.share() == 1
    pauses.forget()
    clock.advance(1800)
    assert pauses.share() == pytest.approx(0.5)


def test_a_limiter_counts_what_it_was_asked_for_and_told(clock):
    limiter = Limiter(rate=10, per="{user}", pause_jitter=0)
    limiter.throttled(30, key="a")
    limiter.rest(60, key="b")
    limiter.told_pause(90, key="c")
    clock.advance(600)
    assert limiter.paused_share == pytest.approx(90 / 3600)
    limiter.succeeded(key="a")
    assert limiter.paused_share == pytest.approx(90 / 3600)


def test_a_clock_that_is_behind_the_one_before_begins_it_anew(clock):
    """A test under the manual clock may have run before one without: the share was below 0 then, and the fleet refused it."""
    pauses = Pauses()
    later = clock.monotonic() + 5000
    pauses.add(later, later + 60)
    pauses.add(later + 600, later + 660)
    pauses.forget()
    assert pauses.share() == 0
    now = clock.monotonic()
    pauses.add(now + 1, now + 37)
    clock.advance(100)
    pauses.add(clock.monotonic(), clock.monotonic() + 1)
    assert pauses.share() == pytest.approx(36 / 3600)
