"""The budget for retries: a store of them, and a part of one for each call."""

from __future__ import annotations

import asyncio

import httpx
import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.guards import Backoff, Budget, Guard
from holdfast.kernel.errors import UsageError


def test_a_store_that_is_used_up_fills_again_by_calls():
    budget = Budget(retries=2, ratio=0.5)
    assert [budget.spend() for _ in range(3)] == [True, True, False]
    budget.earn()
    assert not budget.spend()
    budget.earn()
    assert budget.spend()


def test_it_never_holds_more_than_its_store():
    budget = Budget(retries=3, ratio=1)
    for _ in range(100):
        budget.earn()
    assert budget.tokens == 3


def test_a_retry_may_cost_two():
    budget = Budget(retries=3)
    assert budget.spend(2)
    assert not budget.spend(2)
    assert budget.spend()


@pytest.mark.parametrize(
    ("error", "calls"),
    [(ConnectionError, 4), (TimeoutError, 2), (httpx2.ReadTimeout, 2), (httpx.ReadError, 4)],
)
def test_a_retry_after_a_timeout_costs_two(error, calls):
    seen = []

    async def fails():
        seen.append(1)
        raise error("x")

    guard = Guard("x", retry=Backoff(attempts=9, first=0, ceiling=0), budget=Budget(retries=3, ratio=0))
    with pytest.raises(error):
        asyncio.run(guard.call(fails))
    assert len(seen) == calls


def test_a_budget_of_none_allows_none():
    assert not Budget(retries=0, ratio=0.0).spend()


@given(st.lists(st.booleans()), st.integers(0, 5), st.sampled_from([0.0, 0.1, 0.5, 1.0]))
def test_retries_are_at_most_the_store_and_a_share_of_the_calls(acts, store, ratio):
    budget, calls, retries = Budget(retries=store, ratio=ratio), 0, 0
    for is_call in acts:
        if is_call:
            calls += 1
            budget.earn()
        else:
            retries += budget.spend()
        assert retries <= store + ratio * calls + 1e-9


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"retries": -1}, "retries must be from 0"),
        ({"retries": 2.5}, "retries must be a whole number"),
        ({"ratio": 10}, "For 10 % write 0.1"),
        ({"ratio": -0.1}, "ratio must be from 0"),
    ],
)
def test_a_bad_option_is_refused_with_its_value(options, words):
    with pytest.raises(UsageError, match=words):
        Budget(**options)
