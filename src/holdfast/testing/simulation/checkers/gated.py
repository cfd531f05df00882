"""I11 of guarded tasks: a guard's refusal, or being throttled, charges no attempt and kills no job; the held go at its pace."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from holdfast.jobs.deferral import PUT_OFFS
from holdfast.testing.simulation.checkers.quota import Bucket
from holdfast.testing.simulation.checkers.run import Run
from holdfast.testing.simulation.guards.tasks import ATTEMPTS
from holdfast.testing.simulation.history import Event

_EXCUSED = ("refused", "throttled")
_HAIR = 1e-6
_AGAIN = 1.0  # a second


def uncharged(run: Run) -> Iterator[str]:
    """Whose guard refused, or whose provider said `later`, is put off; only who has failed is charged."""
    outcomes = _outcomes(run)
    for event, is_excused in _failures(run):
        job_id, token, _, why = event.data
        charged = outcomes[job_id, token] & {"Retry", "Dead"}
        if is_excused and charged:
            yield f"job {job_id}: its call was {why} at {event.moment:.3f} s, and its run ended as {charged.pop()}"


def alive(run: Run) -> Iterator[str]:
    """Of a guarded job only failures and deaths of workers are attempts, and it dies of as many as its task may have."""
    if run.plan.traffic is None:
        return
    failed: dict[str, set[int]] = defaultdict(set)
    for event, is_excused in _failures(run):
        if not is_excused:
            failed[event.data[0]].add(event.data[1])
    for job_id, entries in run.ledger.by_job.items():
        failures = len(failed[job_id])
        for entry in entries:
            most = 1 + failures + entry.interruptions
            if entry.claimed and (entry.attempt or 0) > most:
                yield f"job {job_id}: attempt {entry.attempt} after {failures} failures and {entry.interruptions} interruptions"
        deaths = max(entry.interruptions for entry in entries)
        if run.remaining.get(job_id) == "dead" and failures + deaths < ATTEMPTS:
            yield f"job {job_id} is dead after {failures} failures and {deaths} interruptions; its task allows {ATTEMPTS} attempts"


def metered(run: Run) -> Iterator[str]:
    """Held jobs are let go at the limiter's rate: at most what comes in a second at once, whoever lets them go.

    And one a second more: in place of one that was let go too early.
    """
    traffic = run.plan.traffic
    fastest = {} if traffic is None else {spec.name: spec.ceiling or spec.rate for spec in traffic.guards}
    fastest |= {} if traffic is None else {spec.name: spec.number for spec in traffic.rates}
    buckets: dict[tuple[str, str], Bucket] = defaultdict(Bucket)
    for call in run.history.of("open_gates") if fastest else ():
        for guard, number in call.answer.items() if call.kind == "ok" else ():
            rate, bucket = fastest[guard.split("/")[0]], buckets[guard, call.process]
            for _ in range(number):
                bucket.add(call.invoked.moment, rate + _AGAIN)  # when it was decided: the store may be slow
            if bucket.level > max(1.0, rate) + 1 + _HAIR:
                yield f"{call.process} lets go of {number} jobs of {guard!r} at {call.invoked.moment:.3f} s: {bucket.level:.1f} above its rate of {rate:g}"


def _failures(run: Run) -> Iterator[tuple[Event, bool]]:
    """And whether it is excused: of those that its guard leaves uncharged, the first so many of each job."""
    left: dict[str, int] = defaultdict(lambda: PUT_OFFS)
    for event in run.history.happened("body failed"):
        if event.data[3] == "uncharged":
            left[event.data[0]] -= 1
            yield event, left[event.data[0]] >= 0
        else:
            yield event, event.data[3] in _EXCUSED


def _outcomes(run: Run) -> dict[tuple[str, int], set[str]]:
    found: dict[tuple[str, int], set[str]] = defaultdict(set)
    for call in run.history.of("finish"):
        for job_id, token, outcome, _ in call.asked:
            found[job_id, token].add(outcome)
    return found
