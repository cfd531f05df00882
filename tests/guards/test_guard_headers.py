"""Retry-After in both forms, and the headers of a limiter."""

from __future__ import annotations

from email.utils import formatdate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.guards import Allowance, parse_retry_after, ratelimit_headers, render_retry_after


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("5", 5),
        (" 5 ", 5),
        ("0", 0),
        ("1.5", 1.5),
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
