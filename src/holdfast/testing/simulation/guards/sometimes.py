"""Counters of what fleets of guards went through."""

from __future__ import annotations

from collections.abc import Iterator

from holdfast.testing.simulation.checkers.breakers import followed
from holdfast.testing.simulation.checkers.run import Run
from holdfast.testing.simulation.guards.calling import CALL
from holdfast.testing.simulation.guards.provider import REQUEST
from holdfast.testing.simulation.guards.tasks import BEGUN

SEEN = [
    "process killed",
    "process paused",
    "clock jumped",
    "database's clock stepped",
    "fleet opened by quorum",
    "one sick node did not open it",
    "fleet closed after a probe",
    "probe permit raced",
    "half-open, then closed",
    "half-open, then open",
    "restarted while open",
    "node went alone and came back",
    "store answered too late",
    "share of a fleet used without the store",
    "slice expired unused",
    "slice given back",
    "throttled",
    "pause told by others",
    "attempt cut off by its timeout",
    "call cut off by its caller",
    "refused by the breaker",
    "refused by the limiter",
    "refused by the bulkhead",
    "refused by the deadline",
    "retried",
    "retry refused by the budget",
    "job held by its guard",
    "released by the metered release",
    "job put off by its guard",
    "job's call with quota that it brought along",
    "guarded job dead by its failures",
    "failure of a guard that was not charged",
    "run behind a limiter",
    "run at its task's rate",
]

_REFUSED = {
    "BreakerOpen": "refused by the breaker",
    "RateLimited": "refused by the limiter",
    "BulkheadFull": "refused by the bulkhead",
    "DeadlinePassed": "refused by the deadline",
    "CutOff": "call cut off by its caller",
}
_EVENTS = {
    "guards.together": "node went alone and came back",
    "guards.late": "store answered too late",
    "slice lapsed": "slice expired unused",
    "slice back": "slice given back",
    "told to pause": "pause told by others",
}


def seen(run: Run) -> Iterator[str]:
    yield from _in_events(run)
    yield from _in_calls(run)
    yield from _in_breakers(run)
    yield from _in_ledger(run)


def _in_events(run: Run) -> Iterator[str]:
    rates = set() if run.plan.traffic is None else {spec.name for spec in run.plan.traffic.rates}
    own: set[tuple[str, str, str, int]] = set()  # slices, by process, key and step
    for event in run.history.events:
        if event.kind == "event" and event.verb in _EVENTS:
            yield _EVENTS[event.verb]
        if event.verb == "slice":
            own.add((event.process, *event.data[:2], event.step))
            if event.data[2] > 1:
                yield "share of a fleet used without the store"
        elif event.verb == REQUEST and event.kind == "invoke":
            if event.data.attempt > 1:
                yield "retried"
            if (event.process, event.data.guard, event.data.key, event.step) not in own:
                yield "job's call with quota that it brought along"
        elif event.verb == "guard.gave_up" and event.data[1] == "budget":
            yield "retry refused by the budget"
        elif event.verb == BEGUN:
            is_rated = event.data[0] in rates
            yield "run at its task's rate" if is_rated else "run behind a limiter"
        elif event.verb == "body failed" and event.data[3] == "uncharged":
            yield "failure of a guard that was not charged"
        elif event.verb == "body failed" and event.data[3] in ("refused", "throttled"):
            yield "job put off by its guard"


def _in_calls(run: Run) -> Iterator[str]:
    for call in run.history.calls:
        told = str(call.answer).split(":")[0] if call.kind == "fail" else ""
        if call.verb == CALL and told in _REFUSED:
            yield _REFUSED[told]
        elif call.verb == CALL and told == "TimedOut":
            yield "attempt cut off by its timeout"
        elif call.verb == REQUEST and "429" in str(call.answer):
            yield "throttled"
        elif call.verb == "open_fleet" and call.kind == "ok" and call.answer:
            yield "fleet opened by quorum"
        elif call.verb == "close_fleet" and call.kind == "ok" and call.answer:
            yield "fleet closed after a probe"
        elif call.verb == "probe" and call.kind == "ok" and call.answer is None:
            yield "probe permit raced"


def _in_breakers(run: Run) -> Iterator[str]:
    states: dict[tuple[str, str], tuple[str, float]] = {}
    fleet = [(call.asked[0], call.invoked.moment) for call in run.history.of("open_fleet") if call.answer]
    for event, guard, breaker in followed(run):
        if event.verb == REQUEST:
            continue
        before, since = states.get((event.process, guard), ("closed", 0.0))
        states[event.process, guard] = breaker.state, event.moment
        if before == "half-open":
            yield f"half-open, then {breaker.state}"
        elif before == "open" and not any(
            name == guard and since - 1.0 <= at <= event.moment for name, at in fleet
        ):
            yield "one sick node did not open it"
    for (process, _), (state, _) in states.items():
        if state == "open" and run.lives[process].ended < run.ended:
            yield "restarted while open"


def _in_ledger(run: Run) -> Iterator[str]:
    for entry in run.ledger.of("moved"):
        if entry.held == "guard" != entry.was_held:
            yield "job held by its guard"
        elif entry.was_held == "guard" != entry.held:
            yield "released by the metered release"
        elif entry.state == "dead":
            yield "guarded job dead by its failures"
