"""I26: what a limiter admits over all nodes, on true time: calls at the provider, and runs that begin behind a gate.

A run that begins has spent its quota, which is good for its first call as well. So two sums keep to the bound: the calls, and
the runs with the calls that they have not paid for.

With the store: in any T seconds at most rate · T + burst, over all nodes. A process without it has its share of the fleet that it last
heard of: of n processes the n-th part of rate and burst, beginning with nothing, though one call at a time at least; who has never
heard of another is a fleet of its own. What others take of the store meanwhile is not less for that. In no process is it
ever more than the whole.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from holdfast.fleet.terms import Terms, terms_of
from holdfast.guards.ports import SLICE
from holdfast.jobs.rates import Rate
from holdfast.testing.simulation.checkers.run import Run
from holdfast.testing.simulation.guards.calling import CALL
from holdfast.testing.simulation.guards.provider import REQUEST
from holdfast.testing.simulation.guards.spec import GuardSpec, RateSpec
from holdfast.testing.simulation.guards.tasks import BEGUN
from holdfast.testing.simulation.history import Event

_HAIR = 1e-6
_ASKING = 1.0  # seconds until the store is asked again, at most, by who waits
_RECENT = 5.0  # seconds: a rate that was lowered since is known to all
Key = tuple[str, str]  # limiter and its key


@dataclass
class Admitted:
    """A request at the provider, or a run that begins, and the slice that it was made with."""

    moment: float
    process: str
    rate: float  # of its limiter then
    slice: Event | None
    is_run: bool = False
    is_paid: bool = False  # by its run

    @property
    def nodes(self) -> int:
        """0: the store granted it. Else of how many processes it is a share."""
        return 0 if self.slice is None else self.slice.data[2]


class Bucket:
    """It must never hold more than its size."""

    def __init__(self, level: float = 0.0, moment: float = 0.0) -> None:
        self.level, self._moment = level, moment

    def add(self, moment: float, rate: float) -> float:
        """One more at this moment, on top of what has not drained before."""
        self.level = max(0.0, self.level - (moment - self._moment) * rate) + 1
        self._moment = moment
        return self.level


def with_quota(run: Run) -> Iterator[str]:
    """Each call has a slice of its own, which has not lapsed."""
    for (name, key), admitted in _admitted(run).items():
        for each in admitted:
            if each.slice is None:
                what = "begins a run" if each.is_run else "calls"
                yield f"{each.process} {what} through {name!r} {key} at {each.moment:.3f} s without a slice, or with one that has lapsed"


def over_all(run: Run) -> Iterator[str]:
    """What the store has granted, whoever used it."""
    for (name, key), admitted in _sums(run):
        spec, bucket = _spec(run, name), Bucket()
        granted = [each for each in admitted if each.nodes == 0]
        rates = _granted_at(run, (name, key))
        for place, each in enumerate(granted):
            rate = max(other.rate for other in _recent(granted, place))
            # One that calls no more may have made it faster for all.
            rate = max(
                [rate, *(told for moment, told in rates if each.moment - _RECENT <= moment <= each.moment)]
            )
            if _was_set_forward(run, each.moment):
                bucket.level = 0.0
            if bucket.add(each.moment, rate) > spec.burst + _HAIR:
                yield f"{name!r} {key}: {bucket.level:.3f} calls above the rate of {rate:g} at {each.moment:.3f} s; the burst is {spec.burst:g}"


def in_each(run: Run) -> Iterator[str]:
    """Never more than the whole rate, in one process."""
    for (name, key), admitted in _sums(run):
        spec = _spec(run, name)
        buckets: dict[str, Bucket] = defaultdict(Bucket)
        for place, each in enumerate(admitted):
            rate = max(other.rate for other in _recent(admitted, place) if other.process == each.process)
            if buckets[each.process].add(each.moment, rate) > spec.burst + _HAIR:
                yield f"{name!r} {key} of {each.process} is {buckets[each.process].level:.3f} calls above its rate at {each.moment:.3f} s"


def shares(run: Run) -> Iterator[str]:
    """Without the store: the n-th part, beginning with nothing."""
    for (name, key), admitted in _admitted(run).items():
        alone = _alone(run, (name, key))
        terms = _terms(_spec(run, name))
        buckets: dict[tuple[str, float], Bucket] = {}
        rates: dict[tuple[str, float], float] = {}
        for each in admitted:
            if each.nodes < 2 or each.slice is None or each.is_paid:
                continue
            moment, size = each.slice.moment, max(1.0, terms.size / each.nodes)
            began = max(event.moment for event in alone[each.process] if event.step < each.slice.step)
            term, rate = (each.process, began), each.slice.data[3]
            bucket = buckets.setdefault(term, Bucket(size, began))
            bucket.level = min(bucket.level, size)
            before, rates[term] = rates.get(term, rate), rate  # it may have been slowed just now
            if bucket.add(moment, max(before, rate) / each.nodes) > size + _HAIR:
                yield (
                    f"{each.process} is without the store since {began:.3f} s, and {bucket.level - size:.3f} calls above its share of "
                    f"{name!r} {key} at {each.moment:.3f} s: it is one of {each.nodes}"
                )


def _alone(run: Run, key: Key) -> dict[str, list[Event]]:
    """When each process began to go by itself: the store did not answer, or too late for this key, or it was to leave."""
    found: dict[str, list[Event]] = defaultdict(list)
    alone: set[str] = set()
    for event in run.history.events:
        if event.verb == "guards.alone" or (event.verb == "guards.late" and event.data == key):
            found[event.process].append(event)
            alone.add(event.process)
        elif event.verb == "guards.together":
            alone.discard(event.process)
        elif event.verb == "draining" and event.data not in alone:  # else it goes on with its share
            found[event.data].append(event)
    return found


def _recent(admitted: list[Admitted], place: int) -> Iterator[Admitted]:
    end = admitted[place].moment
    for other in reversed(admitted[: place + 1]):
        if other.moment < end - _RECENT and other is not admitted[place - 1]:
            return
        yield other


def _granted_at(run: Run, key: Key) -> list[tuple[float, float]]:
    """When the store granted something, and the rate that it went by."""
    return [
        (call.answered.moment, grant.rate)
        for call in run.history.of("take")
        if call.answered is not None and call.kind == "ok"
        for grant in call.answer
        if (grant.name, grant.key) == key and grant.units > 0
    ]


def _was_set_forward(run: Run, moment: float) -> bool:
    """Whether the database's clock was: buckets drain by it, and what they grant then is used within a slice's time."""
    return any(
        event.data > 0 and event.moment <= moment <= event.moment + SLICE + _ASKING
        for event in run.history.happened("stepped")
    )


def _spec(run: Run, name: str) -> GuardSpec:
    """Of a guard, or as good as one: of a task's rate."""
    traffic = run.plan.traffic
    assert traffic is not None
    found = next((spec for spec in traffic.guards if spec.name == name), None)
    return found or next(_like_a_guard(spec) for spec in traffic.rates if spec.name == name)


def _like_a_guard(spec: RateSpec) -> GuardSpec:
    return GuardSpec(
        name=spec.name, rate=spec.number, burst=Rate(spec.number).burst, per=spec.per,
        floor=None, ceiling=None, longest_pause=0.0, breaker={}, bulkhead=None, attempts=1, budget=0, timeout=1.0, deadline=1.0,
    )  # fmt: skip


def _terms(spec: GuardSpec) -> Terms:
    return terms_of(spec.ceiling or spec.rate, spec.burst)


def _sums(run: Run) -> Iterator[tuple[Key, list[Admitted]]]:
    """By key: all requests; and all that was spent, by runs and by the requests that these have not paid for."""
    for key, admitted in _admitted(run).items():
        yield key, [each for each in admitted if not each.is_run]
        if any(each.is_run for each in admitted):
            yield key, [each for each in admitted if not each.is_paid]


def _admitted(run: Run) -> dict[Key, list[Admitted]]:
    """All runs and requests by key, each with its slice: of the same step, or of its run."""
    found: dict[Key, list[Admitted]] = defaultdict(list)
    open_: dict[tuple[str, str, str], list[Event]] = defaultdict(list)
    brought: dict[
        tuple[str, str], Event
    ] = {}  # by process and job: the slice of its run, until a call has used it
    jobs = {call.asked[2]: call.asked[3] for call in run.history.of(CALL)}
    for event in run.history.events:
        if event.verb == "slice":
            open_[event.process, *event.data[:2]].append(event)
        elif event.verb == BEGUN:
            name, key, job = event.data
            slice_ = _taken(run, open_[event.process, name, key], event, name)
            if slice_ is not None:
                brought[event.process, job] = slice_
            rate = _spec(run, name).rate if slice_ is None else slice_.data[3]
            found[name, key].append(Admitted(event.moment, event.process, rate, slice_, is_run=True))
        elif event.verb == REQUEST and event.kind == "invoke":
            asked = event.data
            mine = brought.get((event.process, jobs[asked.call] or ""))
            slice_ = _taken(run, open_[event.process, asked.guard, asked.key], event, asked.guard, mine)
            is_paid = slice_ is not None and slice_ is mine
            if is_paid:
                del brought[event.process, jobs[asked.call]]
            found[asked.guard, asked.key].append(
                Admitted(event.moment, event.process, asked.rate, slice_, is_paid=is_paid)
            )
    return found


def _taken(
    run: Run, open_: list[Event], event: Event, name: str, brought: Event | None = None
) -> Event | None:
    """The slice for this: of the same step; else what its run has brought along; else one that is still good."""
    lasts = _terms(_spec(run, name)).lasts + _HAIR
    if (now := next((each for each in reversed(open_) if each.step == event.step), None)) is not None:
        open_.remove(now)
        return now
    if brought is not None and event.moment - brought.moment <= lasts:
        return brought
    if (kept := next((each for each in open_ if event.moment - each.moment <= lasts), None)) is not None:
        open_.remove(kept)
    return kept
