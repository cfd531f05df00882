"""I25: an open breaker admits nothing, a half-open one no more than its permits, and it is always left."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field

from holdfast.testing.simulation.checkers.run import Run
from holdfast.testing.simulation.guards.calling import CALL
from holdfast.testing.simulation.guards.provider import REQUEST
from holdfast.testing.simulation.history import Event

_STATES = {"breaker.opened": "open", "breaker.half_opened": "half-open", "breaker.closed": "closed"}
_TRIES = 5  # calls for each permit, after the heal: some of them may find all permits out


@dataclass
class Breaker:
    """One of one process, as the notes tell of it."""

    state: str = "closed"
    since: float = 0.0
    probes: set[int] = field(default_factory=set)  # under way, of those that were admitted while half-open


def followed(run: Run) -> Iterator[tuple[Event, str, Breaker]]:
    """Each change and each request that is made, with its breaker as it is then."""
    breakers: dict[tuple[str, str], Breaker] = {}
    for event in run.history.events:
        if event.verb in _STATES and event.kind == "event":
            name = event.data[0]
            breakers[event.process, name] = breaker = Breaker(_STATES[event.verb], event.moment)
            yield event, name, breaker
        elif event.verb == REQUEST and event.kind == "invoke":
            breaker = breakers.setdefault((event.process, event.data.guard), Breaker())
            if breaker.state == "half-open":
                breaker.probes.add(event.number)
            yield event, event.data.guard, breaker
        elif event.verb == REQUEST:
            for breaker in breakers.values():
                breaker.probes.discard(event.number)


def refuses(run: Run) -> Iterator[str]:
    permits = _permits(run)
    for event, guard, breaker in followed(run):
        if event.verb != REQUEST:
            continue
        if breaker.state == "open":
            yield f"{event.process} calls through {guard!r} at {event.moment:.3f} s, which is open since {breaker.since:.3f} s"
        if len(breaker.probes) > permits[guard]:
            yield f"{event.process} makes {len(breaker.probes)} calls at once through {guard!r} at {event.moment:.3f} s, which is half-open"


def _permits(run: Run) -> dict[str, int]:
    traffic = run.plan.traffic
    return {} if traffic is None else {spec.name: int(spec.breaker["permits"]) for spec in traffic.guards}


def left(run: Run) -> Iterator[str]:
    """By its results, at once; and while calls come, some of them are such results. Whom the limiter refuses asks nobody."""
    permits = _permits(run)
    begun: dict[tuple[str, str], list[float]] = defaultdict(list)
    for call in run.history.of(CALL):
        if not str(call.answer).startswith(
            "RateLimited"
        ):  # the other side may have asked for a pause just before
            begun[call.process, call.asked[0]].append(call.invoked.moment)
    for process, guard, since, until in _half_open(run):
        tries = sum(max(since, run.healed) < moment < until for moment in begun[process, guard])
        if tries > permits[guard] * _TRIES:
            yield f"{guard!r} of {process} is half-open from {since:.3f} s to {until:.3f} s, after {tries} calls"


def _half_open(run: Run) -> Iterator[tuple[str, str, float, float]]:
    """Process, guard, and from when to when."""
    last: dict[tuple[str, str], Breaker] = {}
    for event, guard, breaker in followed(run):
        if event.verb != REQUEST:
            before = last.get((event.process, guard))
            if before is not None and before.state == "half-open":
                yield event.process, guard, before.since, event.moment
            last[event.process, guard] = breaker
    for (process, guard), breaker in last.items():
        if breaker.state == "half-open":
            yield process, guard, breaker.since, min(run.ended, run.lives[process].ended)


def opened(run: Run) -> Iterator[str]:
    """Of those that open after so many failures within a window: at the last of them."""
    for event in run.history.happened("stays closed"):
        guard, failures, window = event.data
        yield f"{guard!r} of {event.process} is closed at {event.moment:.3f} s, after {failures} failures within {window:g} s"


def recorded(run: Run) -> Iterator[str]:
    """What is admitted ends once, was cut off, or was not made; and whatever was made was admitted."""
    for event in run.history.happened("at rest"):
        guard, _, (admitted, ended, cut_off, not_made), requests = event.data
        if admitted != ended + cut_off + not_made:
            yield f"{guard!r} of {event.process}: {admitted} permits; {ended} ended, {cut_off} cut off, {not_made} not made"
        if requests != ended + cut_off:
            yield f"{guard!r} of {event.process}: {requests} calls made; {ended} ended, {cut_off} cut off"
