"""Retry-After in both forms, and the headers of a limiter."""

from __future__ import annotations

from email.utils import formatdate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.guards import (
    Allowance,
    Limiter,
    parse_rest,
    parse_retry_after,
    ratelimit_headers,
    render_retry_after,
)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("5", 5),
        (" 5 ", 5),
        ("0", 0),
        ("1.5", 1.5),
        ("2, 7", 7),
        ("7, soon", None),
        ("1000000000", 300),
        ("9" * 6000, 300),
        ("-1", None),
        ("", None),
        ("soon", None),
        ("1e9", None),
        ("\u0665", None),
        ("nan", None),
        ("Wed, 99 Foo 2026 10:00:00 GMT", None),
        ("Fri, 31 Dec 999999 23:59:59 GMT", None),
    ],
)
def test_seconds(text, seconds, clock, notes):
    assert parse_retry_after(text) == seconds
    assert [name for name, _ in notes] == ([] if seconds is not None else ["retry_after.ignored"])


@pytest.mark.parametrize(("ahead", "seconds"), [(90, 90), (-3600, 0), (10**6, 300), (0, 0)])
def test_a_date_is_compared_with_the_wall_clock(ahead, seconds, clock):
    assert parse_retry_after(formatdate(clock.now() + ahead, usegmt=True)) == seconds


def test_nothing_said_is_no_note(notes):
    assert parse_retry_after(None) is None
    assert notes == []


@given(st.text() | st.from_regex(r"-?[0-9.]{1,20}"))
def test_whatever_comes_is_none_or_within_its_bounds(text):
    found = parse_retry_after(text, longest=60)
    assert found is None or 0 <= found <= 60


@pytest.mark.parametrize(("seconds", "text"), [(0, "1"), (0.2, "1"), (1, "1"), (1.01, "2"), (59.5, "60")])
def test_who_comes_back_then_is_not_too_early(seconds, text):
    assert render_retry_after(seconds) == text


def test_the_headers_say_what_is_left():
    left = Allowance(limit=10, remaining=3.7, window=1.0, reset=0.63, retry_after=0)
    assert ratelimit_headers("api", left) == {
        "RateLimit-Policy": '"api";q=10;w=1',
        "RateLimit": '"api";r=3;t=1',
    }


def test_who_would_be_refused_is_told_when_to_come_back():
    none = Allowance(limit=10, remaining=0, window=100, reset=100, retry_after=9.1)
    assert ratelimit_headers('a"b\\ü', none) == {
        "RateLimit-Policy": '"a_b__";q=10;w=100',
        "RateLimit": '"a_b__";r=0;t=100',
        "Retry-After": "10",
    }


# --- what the other side says of its own quota ---


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"RateLimit": '"default";r=0;t=30'}, 30),
        ({"RateLimit": '"default";r=1;t=30'}, None),
        ({"RateLimit": '"burst";r=0;t=2, "daily";r=0;t=40, "other";r=7;t=90'}, 40),
        ({"RateLimit": '"a;r=0;t=9, b";r=3;t=1'}, None),
        ({"RateLimit": '"default";r=0'}, None),
        ({"RateLimit": '"default"; r=0; t=5; pk=:cHJvZA==:'}, 5),
        ({"RateLimit": '"default";r=0;t=1000000'}, 300),
        ({"RateLimit": '"default";r=-1;t=30'}, None),
        ({"RateLimit": '"default";r=0;t=-3'}, None),
        ({"RateLimit": '"default";r=0;t=30', "Retry-After": "7"}, 7),
        ({"RateLimit": '"default";r=5;t=30', "Retry-After": "7"}, None),
        ({"RateLimit": "limit=10, remaining=0, reset=12"}, 12),
        ({"RateLimit": "limit=10, remaining=4, reset=12"}, None),
        ({"RateLimit": 'garbage;;==,"'}, None),
        ({"RateLimit-Remaining": "0", "RateLimit-Reset": "8"}, 8),
        ({"RateLimit-Remaining": "3", "RateLimit-Reset": "8"}, None),
        ({"RateLimit-Remaining": "0"}, None),
        ({"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "8"}, 8),
        ({"X-RateLimit-Remaining": "-1", "X-RateLimit-Reset": "8"}, None),
        ({"X-RateLimit-Remaining": "none", "X-RateLimit-Reset": "8"}, None),
        ({"X-Rate-Limit-Remaining": "0.0", "X-Rate-Limit-Reset": "8.5"}, 8.5),
        ({"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "9" * 40}, None),
        ({"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "1000000001"}, 0),
    ],
)
def test_nothing_is_left(headers, seconds, clock):
    assert parse_rest(headers) == seconds


@pytest.mark.parametrize(("ahead", "seconds"), [(20, 20), (-20, 0), (10**6, 300)])
@pytest.mark.parametrize("factor", [1, 1000])
def test_until_a_moment_on_the_wall_clock(ahead, seconds, factor, clock):
    moment = str(int((clock.now() + ahead) * factor))
    found = parse_rest({"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": moment})
    assert found == pytest.approx(seconds, abs=1)


@given(st.text() | st.from_regex(r'"[a-z]*";r=[0-9.-]{1,4};t=[0-9.-]{1,20}'))
def test_whatever_is_said_of_it_is_none_or_within_its_bounds(text):
    for headers in ({"RateLimit": text}, {"RateLimit-Remaining": "0", "RateLimit-Reset": text}):
        found = parse_rest(headers, longest=60)
        assert found is None or 0 <= found <= 60


def test_a_limiter_rests_while_nothing_is_left_and_keeps_its_rate(clock, notes):
    limiter = Limiter(rate=10, burst=5, name="api")
    waiting = limiter.reserve()
    limiter.heed({"RateLimit": '"default";r=0;t=3'})
    assert not limiter.honours(waiting)
    for _ in range(5):  # those that were under way say the same
        limiter.heed({"RateLimit": '"default";r=0;t=3'})
    assert (limiter.rate(), 3 <= limiter.allowance().retry_after <= 3.6) == (10, True)
    assert [name for name, _ in notes] == ["limiter.rested", "limiter.held_up"]
    clock.advance(4)
    assert limiter.try_take()


def test_a_limiter_rests_no_longer_than_it_may(clock):
    limiter = Limiter(rate=10, longest_pause=2)
    limiter.heed({"RateLimit": '"default";r=0;t=3600'})
    assert limiter.allowance().retry_after <= 2.4
