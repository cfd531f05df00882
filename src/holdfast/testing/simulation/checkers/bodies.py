"""What runs beside what: slots of a process, suspects that run alone, and bodies that hold their lock. Real workers only."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator

from holdfast.jobs.renewer import HARD_GRACE
from holdfast.testing.simulation.checkers.run import Run
from holdfast.testing.simulation.history import Event
from holdfast.testing.simulation.ledger import Entry
from holdfast.testing.simulation.service.tasks import TASKS

_SAME = 0.01  # seconds
_SOON = 0.5


def alone(run: Run) -> Iterator[str]:
    """While a suspect's body runs, no other runs in its process."""
    suspects = {(entry.id, entry.token) for entry in run.ledger.entries if entry.claimed and entry.alone}
    for event, bodies in _beside(run):
        if len(bodies) > 1 and not suspects.isdisjoint(bodies):
            yield f"{event.process} runs {sorted(bodies)} at {event.moment:.3f} s, and one of them is a suspect"


def within_slots(run: Run) -> Iterator[str]:
    """No process runs more bodies of a queue than it has slots."""
    for event, bodies in _beside(run):
        queues = Counter(run.ledger.made[job_id].queue for job_id, _ in bodies)
        for queue, number in queues.items():
            if number > run.plan.slots:
                yield f"{event.process} runs {number} jobs of {queue!r} at {event.moment:.3f} s; it has {run.plan.slots} slots"


def timed(run: Run) -> Iterator[str]:
    """A body that listens ends soon after its task's timeout; one that does not, when its process is ended."""
    begun: dict[tuple[str, int], Event] = {}
    killed = {event.data: event.moment for event in run.history.happened("killed")}
    for event in run.history.events:
        if event.verb == "body" and run.plan.kind == "worker":
            begun[event.data[:2]] = event
        elif event.verb == "body over" and event.data in begun:
            yield from _took(run, begun.pop(event.data), event.moment)
    for event in begun.values():
        yield from _took(run, event, killed.get(event.process, run.ended))


def _took(run: Run, begun: Event, ended: float) -> Iterator[str]:
    limit = TASKS.get(run.ledger.made[begun.data[0]].task, {}).get("timeout")
    if limit is None or not run.well(begun.process, begun.moment, ended):
        return
    spec = run.spec(run.ledger.made[begun.data[0]])
    deaf = spec is not None and any(beat.outcome.startswith("deaf") for beat in spec.script)
    if ended - begun.moment > limit + (HARD_GRACE if deaf else 0.0) + _SOON:
        yield f"job {begun.data[0]}: its body took {ended - begun.moment:.3f} s; its timeout is {limit} s"


def _beside(run: Run) -> Iterator[tuple[Event, set[tuple[str, int]]]]:
    """Each start of a body, with all that run in its process from then on."""
    if run.plan.kind != "worker":
        return
    running: dict[str, set[tuple[str, int]]] = defaultdict(set)
    for event in run.history.events:
        match event.verb:
            case "body":
                running[event.process].add(event.data[:2])
                yield event, running[event.process]
            case "body over":
                running[event.process].discard(event.data)
            case "killed":
                running.pop(event.data, None)


def locked(run: Run) -> Iterator[str]:
    """A body with a lock begins while it holds the lock, and goes on with it until it ends or the lock is lost."""
    if not (keys := _locks(run)):
        return
    bodies: set[str] = set()  # that run, by the owner of their lock
    moments: list[Entry | Event] = [
        *run.ledger.of("lease", "lease_gone"),
        *run.history.happened("body"),
        *run.history.happened("body over"),
    ]
    for moment in sorted(moments, key=lambda each: each.step):
        if isinstance(moment, Entry):
            if moment.owner in bodies and _was_let_go(run, moment):
                yield f"lock {moment.id!r}: let go of at {moment.moment:.3f} s, while {moment.owner} still runs"
            continue
        job_id, token = moment.data[:2]
        owner = f"{moment.process}/{job_id}/{token}"
        if moment.verb == "body over":
            bodies.discard(owner)
        elif job_id in keys:
            bodies.add(owner)
            if not _was_given(run, keys[job_id], owner, moment):
                yield f"job {job_id}: its body began at {moment.moment:.3f} s without its lock {keys[job_id]!r}"


def _locks(run: Run) -> dict[str, str]:
    found = {}
    for made in run.ledger.made.values():
        spec = run.spec(made)
        if spec is not None and spec.lock is not None:
            found[made.id] = spec.lock
    return found


def _was_let_go(run: Run, entry: Entry) -> bool:
    """By its holder, before its end."""
    lasted = (entry.until or 0.0) > entry.at + _SAME
    return entry.what == "lease_gone" and lasted and not _stolen(run, entry)


def _was_given(run: Run, key: str, owner: str, start: Event) -> bool:
    """That no two have it at a time is seen to elsewhere. One that stood still may have lost it before its body began."""
    return any(
        entry.id == key and entry.owner == owner and entry.step <= start.step
        for entry in run.ledger.of("lease")
    )


def _stolen(run: Run, gone: Entry) -> bool:
    return any(call.asked == gone.id and call.spans(gone) for call in run.history.of("steal"))
