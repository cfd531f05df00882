"""I19: what cannot be published is set aside with its reason, as it was, and keeps nobody else waiting."""

from __future__ import annotations

from collections.abc import Iterator

from holdfast.testing.simulation.checkers.outbox import RELAY
from holdfast.testing.simulation.checkers.run import Run
from holdfast.testing.simulation.checkers.told import Told, is_of_events, told
from holdfast.testing.simulation.ledger import Entry, Fact

POLL = 4.0  # seconds, two looks of a relay and what it does in them, within which an event that nothing holds up is published


def set_aside(run: Run) -> Iterator[str]:
    """A refused event ends in quarantine, or with a person's decision; and only such a one does."""
    if not is_of_events(run):
        return
    story = told(run)
    refused = {event.data for event in run.history.happened("broker refused")}
    cursed = {event_id for event_id, data in story.data.items() if data.flaw == "cursed"}
    for fact in run.ledger.facts["outbox"]:
        if fact["state"] != "quarantined" or fact.change == "DELETE":
            continue
        if fact["id"] not in refused | cursed:
            yield f"event {fact['id']} was set aside at {fact.moment:.3f} s ({fact['error']}); nobody refused it"
        if not fact["error"]:
            yield f"event {fact['id']} is set aside without a reason"
        if fact["data"] != story.emitted[fact["id"]]["data"]:
            yield f"event {fact['id']} is set aside as {fact['data']!r}; it was {story.emitted[fact['id']]['data']!r}"
    for event_id in refused & story.last.keys():
        if story.last[event_id]["state"] == "waiting":
            yield f"event {event_id} was refused and still waits, {run.ended - run.healed:.0f} s after the heal"


def others_go_on(run: Run) -> Iterator[str]:
    """An event is published soon after its commit while a relay that is well holds the lease and the broker is well."""
    if not is_of_events(run):
        return
    story = told(run)
    terms = _terms(run)
    for event_id, fact in story.emitted.items():
        begin, end = fact.moment, fact.moment + POLL
        stamped = story.stamped.get(event_id)
        if stamped is not None and stamped.moment <= end:
            continue
        if end > run.ended or story.data[event_id].flaw or _waits_for_its_key(story, fact, end):
            continue
        if _is_fair(story, begin, end) and any(_holds(run, term, begin, end) for term in terms):
            yield f"event {event_id} of {fact['key']!r}, committed at {begin:.3f} s, waited for more than {POLL} s"


Term = tuple[str, float, float]  # process, begin, end


def _terms(run: Run) -> list[Term]:
    """For how long each process held the relay's lease."""
    found: list[Term] = []
    holder: Entry | None = None
    begin = 0.0
    for entry in run.ledger.of("lease", "lease_gone"):
        if entry.id != RELAY:
            continue
        if holder is not None and (entry.what == "lease_gone" or entry.token != holder.token):
            found.append((holder.process, begin, entry.moment))
            holder = None
        if entry.what == "lease":
            begin = entry.moment if holder is None else begin
            holder = entry
    if holder is not None:
        found.append((holder.process, begin, run.ended))
    return found


def _holds(run: Run, term: Term, begin: float, end: float) -> bool:
    process, since, until = term
    return since <= begin and end <= until and run.well(process, begin, end)


def _waits_for_its_key(story: Told, fact: Fact, end: float) -> bool:
    """Whether one before it of the same key was not published by then."""
    if fact["key"] is None:
        return False
    for event_id, other in story.emitted.items():
        if other["key"] == fact["key"] and other["version"] < fact["version"]:
            stamped = story.stamped.get(event_id)
            if stamped is None or stamped.moment > end:
                return True
    return False


def _is_fair(story: Told, begin: float, end: float) -> bool:
    """The weather at the broker, from a while before: who has failed waits."""
    return all(not (each.begin <= end and begin - 20.0 <= each.end) for each in story.stream.weather)
