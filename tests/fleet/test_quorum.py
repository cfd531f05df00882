"""When some breakers open it for all."""

import pytest

from holdfast.fleet.quorum import is_agreed
from holdfast.store.breakers import BreakerReport, BreakerState, NodeBreaker

OPEN, CLOSED = BreakerState.OPEN, BreakerState.CLOSED


def node(state, calls):
    return NodeBreaker("n", state, 1, 0.0, calls, 0, 0, 0.0)


@pytest.mark.parametrize(
    ("others", "agreed"),
    [
        ([], True),  # alone, it is all of them
        ([(CLOSED, 10)], False),  # one of two is no majority
        ([(CLOSED, 0)], True),  # who makes no calls has no opinion
        ([(OPEN, 10), (CLOSED, 10)], True),
        ([(CLOSED, 10), (CLOSED, 10)], False),  # one sick node of three stops nobody else
        ([(CLOSED, 2), (CLOSED, 2)], True),  # but it makes most of the calls
        ([(CLOSED, 9)], False),  # a little more than half is a toss of a coin
    ],
)
def test_most_nodes_or_most_calls(others, agreed):
    own = BreakerReport("api", OPEN, calls=10)
    assert is_agreed(own, [node(*each) for each in others]) is agreed
