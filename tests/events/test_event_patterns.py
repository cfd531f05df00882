"""Patterns over event types: what they hear, and whether two can hear the same."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.events.patterns import check_type, pattern
from holdfast.kernel.errors import UsageError

WORDS = ["a", "b", "c"]
TYPES = [".".join(words) for length in (1, 2, 3, 4) for words in itertools.product(WORDS, repeat=length)]
PATTERNS = st.builds(
    lambda words, last: ".".join([*words, last]),
    st.lists(st.sampled_from([*WORDS, "*"]), max_size=3),
    st.sampled_from([*WORDS, "*", "**"]),
)


@pytest.mark.parametrize(
    ("text", "heard", "unheard"),
    [
        ("order.placed", ["order.placed"], ["order.paid", "order", "order.placed.late"]),
        ("order.*", ["order.placed", "order.paid"], ["order", "order.placed.late", "orders.placed"]),
        ("order.**", ["order.placed", "order.placed.late"], ["order", "orders.placed"]),
        ("*.placed", ["order.placed", "bid.placed"], ["placed", "a.b.placed"]),
        ("*", ["order", "order.placed", "a.b.c"], []),
        ("**", ["order", "order.placed", "a.b.c"], []),
    ],
)
def test_what_a_pattern_hears(text, heard, unheard):
    assert [each for each in heard + unheard if pattern(text).hears(each)] == heard


@given(PATTERNS, PATTERNS)
def test_two_patterns_meet_if_and_only_if_some_type_fits_both(one, other):
    mine, theirs = pattern(one), pattern(other)
    both = any(mine.hears(each) and theirs.hears(each) for each in TYPES)
    assert mine.meets(theirs) is theirs.meets(mine) is both


@pytest.mark.parametrize(
    "text", ["", "order.", ".order", "order..placed", "or*", "**.placed", "order placed", 5, "a>b"]
)
def test_a_wrong_pattern_is_refused_with_what_would_be_right(text):
    with pytest.raises(UsageError, match="pattern"):
        pattern(text)


@pytest.mark.parametrize("name", ["order.*", "**", "", "order placed", "order.", "ä.b", None, "x" * 201])
def test_a_wrong_type_is_refused(name):
    with pytest.raises(UsageError, match="event type"):
        check_type(name)
