"""Call the function of a saga: a group that its own code has made, as a TaskGroup does, is what has failed in it, or that it rests."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from holdfast.jobs.control import Suspended
from holdfast.sagas.running import RunningSaga
from holdfast.sagas.stops import Stops, together


async def called(
    function: Callable[..., Any],
    saga: RunningSaga,
    stops: Stops,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
) -> Any:
    try:
        return await function(saga, *args, **kwargs)
    except BaseExceptionGroup as group:
        rests, rest = group.split(Suspended)
        if rests is None:
            raise
        raise rest or stops.add(together([*_each(rests)])) from None


def _each(group: BaseExceptionGroup[Suspended]) -> Iterator[Suspended]:
    for each in group.exceptions:
        if isinstance(each, BaseExceptionGroup):
            yield from _each(each)
        else:
            yield each
