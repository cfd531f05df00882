"""I11 of guarded tasks: a guard's refusal, or being throttled, charges no attempt and kills no job; the held go at its pace."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from holdfast.testing.simulation.checkers.quota import Bucket
from holdfast.testing.simulation.checkers.run import Run
from holdfast.testing.simulation.guards.tasks import ATTEMPTS

_EXCUSED = ("refused", "throttled")
_HAIR = 1e-6


def uncharged(run: Run) -> Iterator[str]:
    """Whose guard refused, or whose provider said `later`, is put off; only who has failed is charged."""
    outcomes = _outcomes(run)
    for event in run.history.happened("body failed"):
        job_id, token, _, why = event.data
        charged = outcomes[job_id, token] & {"Retry", "Dead"}
        if why in _EXCUSED and charged:
            yield f"job {job_id}: its call was {why} at {event.moment:.3f} s, and its run ended as {charged.pop()}"


def alive(run: Run) -> Iterator[str]:
    """A guarded job dies after as many failures as its task may have; its attempts are these failures and deaths of workers."""
    if run.plan.traffic is None:
        return
    failed: dict[str, set[int]] = defaultdict(set)
    for event in run.history.happened("body failed"):
        if event.data[3] not in _EXCUSED:
            failed[event.data[0]].add(event.data[1])
    for job_id, entries in run.ledger.by_job.items():
        failures = len(failed[job_id])
        for entry in entries:
            most = 1 + failures + entry.interruptions
            if entry.claimed and (entry.attempt or 0) > most:
                yield f"job {job_id}: attempt {entry.attempt} after {failures} failures and {entry.interruptions} interruptions"
        if run.remaining.get(job_id) == "dead" and failures < ATTEMPTS:
            yield f"job {job_id} is dead after {failures} failures; its task allows {ATTEMPTS} attempts"


def metered(run: Run) -> Iterator[str]:
    """Held jobs are let go at the limiter's rate: at most what comes in a second at once, whoever lets them go."""
    traffic = run.plan.traffic
    fastest = {} if traffic is None else {spec.name: spec.ceiling or spec.rate for spec in traffic.guards}
    buckets: dict[tuple[str, str], Bucket] = defaultdict(Bucket)
    for entry in run.ledger.of("moved"):
        if entry.was_held != "guard" or entry.state != "queued" or entry.held == "guard":
            continue
        guard = run.ledger.made[entry.id].guard or ""
        rate = fastest.get(guard.split("/")[0])
        if rate is None:
            continue
        bucket = buckets[guard, entry.process]
        if bucket.add(entry.moment, rate) > max(1.0, rate) + 1 + _HAIR:
            yield f"{entry.process} has let go of {bucket.level:.1f} jobs of {guard!r} above its rate of {rate:g} by {entry.moment:.3f} s"


def _outcomes(run: Run) -> dict[tuple[str, int], set[str]]:
    found: dict[tuple[str, int], set[str]] = defaultdict(set)
    for call in run.history.of("finish"):
        for job_id, token, outcome, _ in call.asked:
            found[job_id, token].add(outcome)
    return found
