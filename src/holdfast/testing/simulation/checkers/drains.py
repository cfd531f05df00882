"""I32: a worker that is asked to leave claims nothing more, charges nothing, leaves nothing running, and is gone in time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from holdfast.testing.simulation.checkers.run import Run
from holdfast.testing.simulation.history import Call
from holdfast.testing.simulation.plan import LEASE

STOP_GRACE = 2.0  # seconds that stopped bodies have to end
AT_ONCE = 0.1
SLACK = 1.5  # seconds for what has to be written meanwhile


@dataclass
class _Drain:
    process: str
    begun: float
    step: int
    ended: float | None = None
    ended_step: int = 0


def leaves(run: Run) -> Iterator[str]:
    if run.plan.kind != "worker":
        return
    for drain in _drains(run):
        yield from _claims_nothing(run, drain)
        if drain.ended is not None and _undisturbed(run, drain):
            yield from _leaves_nothing(run, drain)
            yield from _in_time(run, drain)


def _drains(run: Run) -> list[_Drain]:
    found: dict[str, _Drain] = {}
    for event in run.history.events:
        if event.verb == "draining":
            found[event.data] = _Drain(event.data, event.moment, event.step)
        elif event.verb == "drained":
            found[event.data].ended, found[event.data].ended_step = event.moment, event.step
    return list(found.values())


def _claims_nothing(run: Run, drain: _Drain) -> Iterator[str]:
    for call in run.history.of("claim", "claim_suspect"):
        if call.process == drain.process and call.invoked.moment > drain.begun + AT_ONCE:
            yield f"{drain.process} asks for jobs {call.invoked.moment - drain.begun:.3f} s after it was asked to leave"


def _leaves_nothing(run: Run, drain: _Drain) -> Iterator[str]:
    held: dict[str, int] = {}
    for entry in run.ledger.entries:
        if entry.step > drain.ended_step:
            break
        if entry.claimed and entry.owner == drain.process:
            held[entry.id] = entry.token or 0
        elif entry.id in held and (entry.ended or entry.rescued):
            del held[entry.id]
    for job_id in held:
        yield f"job {job_id}: {drain.process} has left at {drain.ended:.3f} s, and it is still running there"


def _in_time(run: Run, drain: _Drain) -> Iterator[str]:
    assert drain.ended is not None
    seconds = drain.ended - drain.begun
    if seconds > run.plan.grace + STOP_GRACE + SLACK:
        yield f"{drain.process} took {seconds:.3f} s to leave; it has {run.plan.grace} s"
    last = max([drain.begun, *_bodies_over(run, drain)])
    if drain.ended - last > SLACK:
        yield f"{drain.process} was still there {drain.ended - last:.3f} s after its last job had ended"


def _bodies_over(run: Run, drain: _Drain) -> list[float]:
    """When bodies of this process ended, and the steps beside them that they did not wait for; who never did lasts to the end."""
    begun = {event.data[:2] for event in run.history.happened("body") if event.process == drain.process}
    over = {event.data: event.moment for event in run.history.happened("body over")}
    steps = [event.moment for event in run.history.happened("saw") if event.process == drain.process]
    return [*(over.get(claim, drain.ended or 0.0) for claim in begun), *steps]


def _undisturbed(run: Run, drain: _Drain) -> bool:
    """No call of the last lease failed or took long, and no disk was slow: a claim whose answer was lost is not known to its worker.

    One that has no answer at all was cut off by the process itself, which it must not do to a claim unless it has waited.
    """
    life, end = run.lives[drain.process], drain.ended or run.ended
    begin = drain.begun - LEASE
    if any(start < end and begin < stop for start, stop in [*life.paused, *run.slow]):
        return False
    return all(_is_smooth(call, end) for call in life.calls if _touches(call, begin, end))


def _touches(call: Call, begin: float, end: float) -> bool:
    return call.invoked.moment <= end and (call.answered is None or call.answered.moment >= begin)


def _is_smooth(call: Call, end: float) -> bool:
    if call.answered is None:
        return end - call.invoked.moment < 0.5
    return call.kind == "ok" and call.answered.moment - call.invoked.moment < 0.5
