"""I31: one loader for each key, nothing too old, nothing from before an invalidation, and no failure of the cache's own."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

import msgspec

from holdfast.testing.simulation.checkers.run import Run
from holdfast.testing.simulation.checkers.told import is_of_events
from holdfast.testing.simulation.events.caching import INVALIDATE, KEPT, LOAD, READ, Value
from holdfast.testing.simulation.events.spec import CacheSpec
from holdfast.testing.simulation.history import Call

_SLACK = 0.05  # seconds


def one_loader(run: Run) -> Iterator[str]:
    """In each process at most one at a time."""
    if not is_of_events(run):
        return
    under_way: dict[tuple[str, str], list[Call]] = defaultdict(list)
    for call in run.history.of(LOAD):
        place = call.process, call.asked[0]
        under_way[place] = [
            other for other in under_way[place] if not _is_over(run, other, call.invoked.step)
        ]
        if under_way[place]:
            yield f"{call.process} began to load {call.asked[0]!r} at {call.invoked.moment:.3f} s, while it was loading it"
        under_way[place].append(call)


def one_in_the_fleet(run: Run) -> Iterator[str]:
    """And in all processes, while all is well: nobody is paused or slow, the disk is not full, and nothing is invalidated meanwhile."""
    if not is_of_events(run) or (spec := _spec(run)) is None or spec.on == "memory":
        return
    loads = run.history.of(LOAD)
    for place, call in enumerate(loads):
        for other in loads[:place]:
            if other.process == call.process or other.asked[0] != call.asked[0]:
                continue
            begin, moment = other.invoked.moment, call.invoked.moment
            if not _is_over(run, other, call.invoked.step) and _is_calm(
                run, other, call, begin - 1.0, moment
            ):
                yield (
                    f"{call.process} began to load {call.asked[0]!r} at {moment:.3f} s, while {other.process} did since "
                    f"{begin:.3f} s"
                )


def _is_calm(run: Run, one: Call, other: Call, begin: float, end: float) -> bool:
    troubled = [*run.slow, *_full(run)]
    if run.stepped_within(begin - 1.0, end) or any(start < end and begin < stop for start, stop in troubled):
        return False
    disturbed = any(
        call.asked[0] == one.asked[0]
        and call.invoked.moment <= end
        and (call.answered is None or call.answered.moment >= begin - 1.0)
        for call in run.history.of(INVALIDATE)
    )
    return not disturbed and all(run.well(each.process, begin, end) for each in (one, other))


def _full(run: Run) -> list[tuple[float, float]]:
    """When nobody could write down that he loads, or keep what he has loaded."""
    return [(event.moment, event.moment + event.data) for event in run.history.happened("full")]


def not_too_old(run: Run) -> Iterator[str]:
    """What is served was loaded less than `stale` seconds before it was asked for."""
    if not is_of_events(run) or (spec := _spec(run)) is None:
        return
    kept = _kept(run)
    for call in run.history.of(READ):
        if call.kind != "ok" or call.answer.load not in kept:
            continue
        since = kept[call.answer.load]
        age = call.invoked.moment - since - _SLACK
        if age > spec.stale and not (spec.on == "store" and run.stepped_within(since, call.invoked.moment)):
            yield f"{call.process} was served {call.asked!r} at {call.invoked.moment:.3f} s, {age:.3f} s old"


def _kept(run: Run) -> dict[int, float]:
    """When the value of each load was kept. One that was not goes to those who waited for it, and to nobody else."""
    found = {event.data: event.moment for event in run.history.happened(KEPT)}
    for fact in run.ledger.facts["cache"]:
        if fact["value"] is not None:
            found.setdefault(msgspec.json.decode(fact["value"], type=Value).load, fact.moment)
    return found


def not_invalidated(run: Run) -> Iterator[str]:
    """Who asks after an invalidation has ended gets nothing from before it."""
    if not is_of_events(run) or (spec := _spec(run)) is None:
        return
    done = [call for call in run.history.of(INVALIDATE) if call.kind == "ok"]
    for read in run.history.of(READ):
        if read.kind != "ok":
            continue
        for call in done:
            name, version = call.asked
            assert call.answered is not None
            if (
                name != read.asked
                or call.answered.step >= read.invoked.step
                or read.answer.version >= version
            ):
                continue
            is_heard = call.process == read.process or (spec.on == "store" and call.answer)
            if is_heard:
                yield (
                    f"{read.process} was served version {read.answer.version} of {name!r} at {read.invoked.moment:.3f} s; "
                    f"{version} was told by {call.process} at {call.answered.moment:.3f} s"
                )


def no_failure_of_its_own(run: Run) -> Iterator[str]:
    """A read fails because its load does, and for no other reason."""
    if not is_of_events(run):
        return
    for call in run.history.of(READ):
        if call.kind in ("fail", "unknown") and call.answered is not None and not _is_explained(run, call):
            yield f"{call.process} was told {call.answer or 'that nobody knows'} for {call.asked!r} at {call.answered.moment:.3f} s"


def _is_explained(run: Run, call: Call) -> bool:
    told = str(call.answer)
    return told.startswith("LoadFailed") or (
        told.startswith("NotOpen") and run.lives[call.process].ended < run.ended
    )


def all_answered(run: Run) -> Iterator[str]:
    """Nobody waits for ever."""
    if not is_of_events(run):
        return
    for call in run.history.of(READ):
        if (
            call.answered is None
            and run.lives[call.process].ended >= run.ended
            and call.invoked.moment < run.ended - 60
        ):
            yield f"{call.process} asked for {call.asked!r} at {call.invoked.moment:.3f} s and was never answered"


def _spec(run: Run) -> CacheSpec | None:
    assert run.plan.stream is not None
    return run.plan.stream.cache


def _is_over(run: Run, load: Call, step: int) -> bool:
    if load.answered is not None:
        return load.answered.step <= step
    return any(event.data == load.process and event.step <= step for event in run.history.happened("killed"))
