"""When the breakers of some nodes open it for all: most of those that call, or those that make two thirds of the calls."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.store.breakers import BreakerReport, BreakerState, NodeBreaker


def is_agreed(own: BreakerReport, others: Sequence[NodeBreaker]) -> bool:
    """Whether it is open for the fleet. Who makes no calls has no opinion, and one sick node of several is not enough."""
    asked: list[BreakerReport | NodeBreaker] = [own, *others]
    nodes = [each for each in asked if each.calls > 0]
    opened = [each for each in nodes if each.state is BreakerState.OPEN]
    if 2 * len(opened) > len(nodes):
        return True
    return 3 * sum(each.calls for each in opened) > 2 * sum(each.calls for each in nodes)
