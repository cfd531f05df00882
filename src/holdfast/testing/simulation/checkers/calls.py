"""I27, I28, I29: permits are conserved, retries bounded, deadlines kept; and when all is well again, so are the calls."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator

from holdfast.testing.simulation.checkers.run import Run
from holdfast.testing.simulation.guards.calling import CALL
from holdfast.testing.simulation.guards.node import LOAD
from holdfast.testing.simulation.guards.provider import REQUEST
from holdfast.testing.simulation.guards.spec import GuardSpec
from holdfast.testing.simulation.history import Call

RECOVERY = (
    30.0  # seconds after the heal, of the 60 that are promised; then the goodput counts, until the load ends
)
GOODPUT = 0.95
RATIO = 0.1  # of a retry that each call earns


def conserved(run: Run) -> Iterator[str]:
    """What is acquired is released; no more are under way than there are permits."""
    for event in run.history.happened("at rest"):
        guard, (in_flight, line), _, _ = event.data
        if in_flight or line:
            yield f"the bulkhead of {guard!r} in {event.process} has {in_flight} permits out and {line} waiting, and no call is under way"
    under_way: Counter[tuple[str, str]] = Counter()
    specs = _specs(run)
    for event in run.history.events:
        if event.verb != REQUEST:
            continue
        if event.kind != "invoke":
            under_way[event.process, run.history.calls[event.number].asked.guard] -= 1
            continue
        guard = event.data.guard
        under_way[event.process, guard] += 1
        most = specs[guard].bulkhead
        if most is not None and under_way[event.process, guard] > most[0]:
            yield f"{event.process} has {under_way[event.process, guard]} calls under way through {guard!r} at {event.moment:.3f} s; its bulkhead has {most[0]} permits"


def within_budget(run: Run) -> Iterator[str]:
    """Retries ≤ what is in store + ratio · calls; one after a timeout counts twice."""
    calls: Counter[tuple[str, str]] = Counter()
    spent: Counter[tuple[str, str]] = Counter()
    cut_off: dict[int, bool] = {}  # by call: whether its last attempt got no answer in time
    specs = _specs(run)
    for event in run.history.events:
        if event.verb == CALL and event.kind == "invoke":
            calls[event.process, event.data[0]] += 1
        elif event.verb == REQUEST and event.kind != "invoke":
            cut_off[run.history.calls[event.number].asked.call] = str(event.data).startswith("CutOff")
        elif event.verb == REQUEST and event.data.attempt > 1:
            at = event.process, event.data.guard
            spent[at] += 2 if cut_off[event.data.call] else 1
            earned = specs[at[1]].budget + RATIO * calls[at]
            if spent[at] > earned + 1e-6:
                yield f"{at[0]} has made retries for {spent[at]} through {at[1]!r} by {event.moment:.3f} s, with {calls[at]} calls: {earned:.1f} are allowed"


def in_time(run: Run) -> Iterator[str]:
    """No attempt begins when its deadline has passed, and no more than were allowed."""
    specs = _specs(run)
    begun = {call.asked[2]: call.invoked.moment for call in run.history.of(CALL)}
    for request in run.history.of(REQUEST):
        asked, spec = request.asked, specs[request.asked.guard]
        late = request.invoked.moment - begun[asked.call] - spec.deadline
        if late >= 0:
            yield f"attempt {asked.attempt} of call {asked.call} in {request.process} begins {late:.3f} s after its deadline"
        if asked.attempt > spec.attempts:
            yield f"attempt {asked.attempt} of call {asked.call} in {request.process}: {spec.attempts} are allowed"


def goodput(run: Run) -> Iterator[str]:
    """The load is below what the limiters admit, and the provider is well."""
    offered: dict[str, list[Call]] = defaultdict(list)
    for call in run.history.of(CALL):
        if RECOVERY <= call.invoked.moment - run.healed <= LOAD and call.asked[3] is None:
            offered[call.asked[0]].append(call)
    for guard, calls in offered.items():
        well = sum(call.kind == "ok" for call in calls)
        if len(calls) - well > max(1, (1 - GOODPUT) * len(calls)):  # of a dozen, chance may send one away
            why = Counter(str(call.answer).split(":")[0] for call in calls if call.kind != "ok")
            yield f"of {len(calls)} calls through {guard!r} from {RECOVERY:g} to {LOAD:g} s after the heal {well} went well: {dict(why)}"


def _specs(run: Run) -> dict[str, GuardSpec]:
    return {} if run.plan.traffic is None else {spec.name: spec for spec in run.plan.traffic.guards}
