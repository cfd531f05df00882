"""I10, I11: what is charged to a job, and when it is given up."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from holdfast.store.records import STRIKES_LIMIT
from holdfast.testing.simulation.checkers.run import Run
from holdfast.testing.simulation.history import Call
from holdfast.testing.simulation.ledger import Entry
from holdfast.testing.simulation.service.tasks import TASKS


def charged_first(run: Run) -> Iterator[str]:
    """A body begins after its claim was committed, with the attempt that the claim charged."""
    claimed = {(entry.id, entry.token): entry for entry in run.ledger.of("moved") if entry.claimed}
    for entry in claimed.values():
        if entry.attempt != (entry.was_attempt or 0) + 1:
            yield f"job {entry.id}: claimed, and its attempt went from {entry.was_attempt} to {entry.attempt}"
    for event in run.history.happened("body"):
        job_id, token, attempt, _ = event.data
        claim = claimed.get((job_id, token))
        if claim is None or claim.step > event.step:
            yield f"job {job_id}: its body began at {event.moment:.3f} s before the claim {token} was committed"
        elif claim.attempt != attempt:
            yield f"job {job_id}: its body ran as attempt {attempt}; stored was {claim.attempt}"


def strikes(run: Run) -> Iterator[str]:
    """An interruption makes a suspect; only those while alone are strikes; the third is the end. A saga that rests is none."""
    rested = {claim for call in run.history.of("rest") for claim in call.asked}
    for job_id, entries in run.ledger.by_job.items():
        alone, interruptions, counted = False, 0, 0
        for place, entry in enumerate(entries):
            if entry.claimed:
                alone = bool(entry.alone)
                if bool(entry.suspect) != alone:
                    yield f"job {job_id}: suspect={entry.suspect} was claimed with alone={entry.alone}"
            elif entry.was_state == "unknown" and entry.state == "queued":
                interruptions, counted = 0, 0  # a person has decided: it begins anew
            elif entry.state == "queued" and (job_id, entry.token) in rested:
                interruptions, counted = 0, 0
            elif entry.rescued:
                interruptions, counted = interruptions + 1, counted + alone
                after = entries[place + 1]  # what the rescue made of it, in the same transaction
                if (after.interruptions, after.strikes) != (interruptions, counted):
                    yield (
                        f"job {job_id}: {interruptions} interruptions, {counted} of them while alone, "
                        f"are stored as {after.interruptions} and {after.strikes}"
                    )
                if (after.state in ("dead", "unknown")) != (counted >= STRIKES_LIMIT):
                    yield f"job {job_id}: {counted} strikes, and it is {after.state}"
    for made in run.ledger.made.values():
        spec = run.spec(made)
        if (
            spec is not None
            and spec.script[-1].outcome == "poison"
            and run.remaining.get(made.id) == "succeeded"
        ):
            yield f"job {made.id} kills every worker, and it succeeded"


def uncharged(run: Run) -> Iterator[str]:
    """Snooze, release and hold give the attempt back; retry and rescue do not."""
    asked = _asked(run)
    for entries in run.ledger.by_job.values():
        rescued = False
        for entry in entries:
            if entry.rescued:
                rescued = True
            if entry.what != "moved" or entry.was_state != "running" or entry.state != "queued":
                continue
            calls = asked[entry.id, entry.token or 0]
            during = [each for each in calls if each[1].spans(entry)]  # one that was given up may come later
            why = {what for what, _ in during or calls} - {"effect"}  # which puts nothing back
            given_back = (entry.was_attempt or 0) - (entry.attempt or 0)
            allowed = {0} if rescued or why <= {"Retry"} else {1}
            if (
                "Retry" in why
            ):  # one that leaves gives up a job whose end is under way: whichever comes first counts
                allowed |= {0}
            if given_back not in allowed:
                yield f"job {entry.id}: queued again after {sorted(why) or 'a rescue'}, and {given_back} attempts were given back"
            rescued = False


def _asked(run: Run) -> dict[tuple[str, int], list[tuple[str, Call]]]:
    """What holders wanted to become of their claims."""
    found: dict[tuple[str, int], list[tuple[str, Call]]] = defaultdict(list)
    for call in run.history.of("finish"):
        for job_id, token, outcome, _ in call.asked:
            found[job_id, token].append((outcome, call))
    for call in run.history.of("release", "hold", "rest"):
        for claim in call.asked:
            found[claim].append((call.verb, call))
    return found


def bounded(run: Run) -> Iterator[str]:
    """A task's policy says how often it runs; beyond that only deaths of workers add runs."""
    if run.plan.kind != "worker":
        return
    for job_id, entries in run.ledger.by_job.items():
        if (task := TASKS.get(run.ledger.made[job_id].task)) is None:
            continue
        most = task["retry"].attempts
        attempt = max((entry.attempt or 0 for entry in entries), default=0)
        interruptions = max(entry.interruptions for entry in entries)
        if attempt > most + interruptions:
            yield f"job {job_id}: attempt {attempt}, with {most} allowed and {interruptions} interruptions"
        for entry in entries:
            if (
                _came_back(entry)
                and (entry.attempt or 0) >= most
                and not entry.reason
                and _failed(run, entry)
            ):
                yield f"job {job_id}: queued again after attempt {entry.attempt} of {most} has failed"


def _came_back(entry: Entry) -> bool:
    return entry.was_state == "running" and entry.state == "queued"


def _failed(run: Run, entry: Entry) -> bool:
    return any(
        (entry.id, entry.token) == asked[:2] and asked[2] == "Retry" and call.spans(entry)
        for call in run.history.of("finish")
        for asked in call.asked
    )
