"""I16, I18: every group gets every event, the same each time, handles it once, in order, and nobody says so before it is stored."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import msgspec

from holdfast.testing.simulation.checkers.outbox import Holders
from holdfast.testing.simulation.checkers.run import Run
from holdfast.testing.simulation.checkers.told import BILLED, Pair, Told, hears, is_of_events, told
from holdfast.testing.simulation.events.spec import GroupSpec
from holdfast.testing.simulation.ledger import Fact


def all_handled(run: Run) -> Iterator[str]:
    """By the end every group that was there has handled what it hears, or it is a dead letter of the group."""
    if not is_of_events(run):
        return
    story = told(run)
    for event_id in story.stamped:
        for group in story.heard_by(event_id):
            pair = group.name, event_id
            if pair in story.handled or not _was_there(story, group, event_id):
                continue
            if pair not in story.delivered and _is_of_newer(story, group, event_id):
                continue  # who read it for the group may not have known
            if pair not in story.delivered:
                yield f"{group.name} never got event {event_id}, published at {story.stamped[event_id].moment:.3f} s"
            elif story.states.get(story.delivered[pair]["job_id"]) != "dead":
                state = story.states.get(story.delivered[pair]["job_id"])
                yield f"{group.name} has not handled event {event_id}: its job is {state}"


def _is_of_newer(story: Told, group: GroupSpec, event_id: str) -> bool:
    return not hears(msgspec.structs.replace(group, also=""), story.emitted[event_id]["type"])


def _was_there(story: Told, group: GroupSpec, event_id: str) -> bool:
    """Whether the group was known when the event was published: a new one hears what comes from then on."""
    if story.stream.transport == "broker":
        return _on_broker(story, group, event_id)
    made = [fact for fact in story.run.ledger.facts["group"] if fact["name"] == group.name]
    return bool(made) and story.stamped[event_id]["position"] > made[0]["position"]


def _on_broker(story: Told, group: GroupSpec, event_id: str) -> bool:
    begins = [
        event.data[1] for event in story.run.history.happened("group made") if event.data[0] == group.name
    ]
    return any(
        event.data[0] == event_id and event.data[2] >= begins[0] + 1
        for event in story.run.history.happened("published")
        if begins
    )


def only_heard(run: Run) -> Iterator[str]:
    """A group gets what its pattern fits, and what was published."""
    if not is_of_events(run):
        return
    story = told(run)
    for (name, event_id), fact in story.delivered.items():
        if event_id not in story.emitted:
            yield f"{name} got {event_id}, which is no event"
        elif not hears(story.group(name), story.emitted[event_id]["type"]):
            yield f"{name} got event {event_id} of the type {story.emitted[event_id]['type']!r}"
        elif story.stream.transport == "store" and (
            event_id not in story.stamped or story.stamped[event_id].commit > fact.commit
        ):
            yield f"{name} got event {event_id} before it was published"


# --- the same each time ---

_FIELDS = ("type", "key", "version", "correlation_id", "causation_id", "trace")


def same_on_the_wire(run: Run) -> Iterator[str]:
    if not is_of_events(run):
        return
    bodies: dict[str, str] = {}
    for event in run.history.happened("published"):
        event_id, _, _, body = event.data
        if bodies.setdefault(event_id, body) != body:
            yield f"event {event_id} was published as {bodies[event_id]!r} and as {body!r}"
    for event_id, body in bodies.items():
        if msgspec.json.decode(body)["id"] != event_id:
            yield f"event {event_id} was published with the id {msgspec.json.decode(body)['id']}"


def same_for_handlers(run: Run) -> Iterator[str]:
    """What a handler is given is what was emitted, in every run of it."""
    if not is_of_events(run):
        return
    story = told(run)
    for event in run.history.happened("handling"):
        _, event_id, fields, data = event.data[:4]
        if (fact := story.emitted.get(event_id)) is None:
            yield f"a handler was given event {event_id}, which was never emitted"
            continue
        stored = tuple(fact[column] for column in _FIELDS)
        if fields != stored:
            yield f"event {event_id} was handled as {fields}; it was emitted as {stored}"
        if data != msgspec.json.decode(fact["data"]):
            yield f"event {event_id} was handled with {data}; it was emitted with {fact['data']}"


# --- once ---


def effects_once(run: Run) -> Iterator[str]:
    """Rows of a handler are there once for each event of its group, if and only if that is handled, in one commit with it."""
    if not is_of_events(run):
        return
    story = told(run)
    for pair, rows in story.effects.items():
        if len(rows) > 1:
            yield f"{pair[0]} has handled event {pair[1]} {len(rows)} times"
        if pair not in story.handled:
            yield f"{pair[0]} has rows of event {pair[1]}, which it has not handled"
        elif rows[0].commit != story.handled[pair].commit:
            yield f"{pair[0]} has written of event {pair[1]} at {rows[0].moment:.3f} s; handled at {story.handled[pair].moment:.3f} s"
    for pair, fact in story.handled.items():
        if story.group(pair[0]).with_tx and pair not in story.effects:
            yield f"{pair[0]} has handled event {pair[1]} at {fact.moment:.3f} s without its rows"


def done_before(run: Run) -> Iterator[str]:
    """What a handler does elsewhere is done, at least once, when its group says that the event is handled."""
    if not is_of_events(run):
        return
    story = told(run)
    done: dict[Pair, int] = {}
    for event in run.history.happened("done outside"):
        done.setdefault(event.data, event.step)
    for pair, fact in story.handled.items():
        if not story.group(pair[0]).with_tx and done.get(pair, fact.step + 1) > fact.step:
            yield f"{pair[0]} has handled event {pair[1]} at {fact.moment:.3f} s, and its handler had not done it"


def with_the_success(run: Run) -> Iterator[str]:
    """That an event is handled commits with the success of the job that did it."""
    if not is_of_events(run):
        return
    story = told(run)
    over = {entry.id: entry for entry in run.ledger.of("over") if entry.state == "succeeded"}
    jobs = {fact["job_id"]: pair for pair, fact in story.delivered.items()}
    for job_id, pair in jobs.items():
        handled, success = story.handled.get(pair), over.get(job_id)
        if handled is not None and success is None and story.states.get(job_id) is not None:
            yield f"{pair[0]} has handled event {pair[1]}, and its job {job_id} is {story.states[job_id]}"
        if success is not None and handled is None:
            yield f"job {job_id} of {pair[0]} has succeeded, and event {pair[1]} is not handled"
        if handled and success and handled.commit != success.commit:
            yield f"{pair[0]}: event {pair[1]} handled at {handled.moment:.3f} s, its job at {success.moment:.3f} s"


def choreography(run: Run) -> Iterator[str]:
    """What a handler emits is there once for each event that it has handled, and tells whence it comes."""
    if not is_of_events(run):
        return
    story = told(run)
    causes: Counter[Pair] = Counter()
    for event_id, data in story.data.items():
        if not data.cause:
            continue
        causes[data.by, data.cause] += 1
        fact, cause = story.emitted[event_id], story.emitted.get(data.cause)
        for column in ("correlation_id", "trace"):
            if cause is None or fact[column] != cause[column]:
                yield f"event {event_id} tells the {column} {fact[column]!r}; event {data.cause} another"
        delivery = story.delivered.get((data.by, data.cause))
        if delivery is None or fact["causation_id"] != delivery["job_id"]:
            yield f"event {event_id} was caused by {fact['causation_id']!r}; it was the delivery of event {data.cause}"
        elif story.run.ledger.made[delivery["job_id"]].causation_id != data.cause:
            yield f"the delivery of event {data.cause} says that it was caused by another"
    for pair, number in causes.items():
        if number > 1:
            yield f"{pair[0]} has emitted {number} events for event {pair[1]}"
        if pair not in story.handled:
            yield f"{pair[0]} has emitted for event {pair[1]}, which it has not handled"
    for pair in story.handled:
        if _emits(story, pair) and not causes[pair]:
            yield f"{pair[0]} has handled event {pair[1]}, and what it emitted is not there"


def _emits(story: Told, pair: Pair) -> bool:
    known = pair[1] in story.emitted
    return known and story.group(pair[0]).emits and story.emitted[pair[1]]["type"] != BILLED


# --- in order ---


def handled_in_order(run: Run) -> Iterator[str]:
    """An ordered group begins with an event after those of its key that were published before it."""
    if not is_of_events(run):
        return
    story = told(run)
    if story.stream.transport == "broker" and (story.stream.tail_lost is not None or run.host_stepped):
        return  # what is lost comes later; and leases that end early let another read what comes next
    published = _published(story)
    for group in story.stream.groups:
        if group.ordered:
            yield from _in_order(story, group, published)


def _published(story: Told) -> dict[str, int]:
    """In which place: of the log, or of the broker."""
    if story.stream.transport == "store":
        return {event_id: fact["position"] for event_id, fact in story.stamped.items()}
    places: dict[str, int] = {}
    for event in story.run.history.happened("published"):
        places.setdefault(event.data[0], event.data[2])
    return places


def _in_order(story: Told, group: GroupSpec, published: dict[str, int]) -> Iterator[str]:
    newest: dict[str, int] = {}
    begun = _passed_over(story, group)
    for event in story.run.history.happened("handling"):
        name, event_id = event.data[:2]
        if name != group.name or event_id not in published or event_id not in story.emitted:
            continue
        key, place = story.emitted[event_id]["key"], published[event_id]
        if key is None:
            continue
        if place < newest.get(key, 0) and event_id not in begun:
            version = story.emitted[event_id]["version"]
            yield f"{name} began with version {version} of {key!r} at {event.moment:.3f} s, after what was published later"
        begun.add(event_id)
        newest[key] = max(newest.get(key, 0), place)


def _passed_over(story: Told, group: GroupSpec) -> set[str]:
    """Events that only the newer program hears, acknowledged by an older one before anybody said so: a second copy may be heard."""
    return {
        event_id
        for name, _, event_id in (event.data for event in story.run.history.happened("acked"))
        if name == group.name and event_id in story.emitted and _is_of_newer(story, group, event_id)
    }


def orders_apart(run: Run) -> Iterator[str]:
    """No group waits for another: each has orders of its own."""
    if not is_of_events(run):
        return
    groups: dict[str, str] = {}
    for (name, _), fact in told(run).delivered.items():
        order = run.ledger.made[fact["job_id"]].ordered
        if order is not None and groups.setdefault(order, name) != name:
            yield f"{groups[order]} and {name} wait for each other in the order {order!r}"


# --- nothing is said before it is stored ---


def cursors(run: Run) -> Iterator[str]:
    """When the cursor of a group passes a position, the delivery of what is there is stored; and it never goes back."""
    if not is_of_events(run):
        return
    story = told(run)
    log = sorted((fact["position"], event_id) for event_id, fact in story.stamped.items())
    cursor: dict[str, int] = {}
    for fact in run.ledger.facts["group"]:
        name, position = fact["name"], fact["position"]
        if fact.change == "INSERT":
            cursor[name] = position
            continue
        if fact.change == "DELETE":
            cursor.pop(name, None)
            continue
        before, cursor[name] = cursor[name], position
        if position < before:
            yield f"the cursor of {name} went from {before} back to {position} at {fact.moment:.3f} s"
        for _, event_id in (item for item in log if before < item[0] <= position):
            if story.stamped[event_id].commit > fact.commit:
                yield f"the cursor of {name} passed {story.stamped[event_id]['position']} before that was published"
            if not story.must_hear(story.group(name), event_id, fact):
                continue
            stored = story.delivered.get((name, event_id))
            if stored is None or stored.commit > fact.commit:
                yield f"the cursor of {name} went to {position} at {fact.moment:.3f} s; event {event_id} was not stored"


def cursors_are_fenced(run: Run) -> Iterator[str]:
    """Over the store, who moves a cursor holds the lease of its group."""
    if not is_of_events(run) or told(run).stream.transport != "store":
        return
    before: dict[str, int] = {}
    for fact in run.ledger.facts["group"]:
        was, before[fact["name"]] = before.get(fact["name"]), fact["position"]
        if fact.change != "UPDATE" or was == fact["position"]:
            continue
        if (wrong := Holders(run, lease_of(fact["name"])).wrong(fact)) is not None:
            yield f"the cursor of {fact['name']} was moved at {fact.moment:.3f} s by {fact.process}: {wrong}"


def stored_under_lease(run: Run) -> Iterator[str]:
    """Who stores deliveries of a group holds its lease: one that has lost it may be late, and nobody knows what it has."""
    if not is_of_events(run):
        return
    holders: dict[str, Holders] = {}
    for (name, event_id), fact in told(run).delivered.items():
        if name not in holders:
            holders[name] = Holders(run, lease_of(name))
        if (wrong := holders[name].wrong(fact)) is not None:
            yield f"{name} was given event {event_id} at {fact.moment:.3f} s by {fact.process}: {wrong}"


def lease_of(group: str) -> str:
    return f"holdfast:group:{group}"


def acknowledged(run: Run) -> Iterator[str]:
    """What is acknowledged to the broker is stored by then: as a delivery, or as a stray."""
    if not is_of_events(run):
        return
    story = told(run)
    garbage = {event.data[0]: bytes.fromhex(event.data[1]) for event in run.history.happened("garbage")}
    for event in run.history.happened("acked"):
        name, offset, event_id = event.data
        if offset in garbage:
            stored = _stray(run, name, garbage[offset])
        elif event_id in story.emitted and story.must_hear(story.group(name), event_id, event):
            stored = story.delivered.get((name, event_id))
        else:
            continue
        if stored is None or stored.step > event.step:
            yield f"{name} has acknowledged {garbage.get(offset, event_id)!r} at {event.moment:.3f} s; it was not stored"


def _stray(run: Run, group: str, raw: bytes) -> Fact | None:
    for fact in run.ledger.facts["stray"]:
        if (fact["group_name"], fact["raw"]) == (group, raw) and fact.change == "INSERT":
            return fact
    return None


def strays(run: Run) -> Iterator[str]:
    """What cannot be understood, and nobody knows the type of, is kept once for each group, as it came, with the reason."""
    if not is_of_events(run):
        return
    kept: Counter[tuple[str, bytes]] = Counter()
    for fact in run.ledger.facts["stray"]:
        if fact.change == "INSERT":
            kept[fact["group_name"], fact["raw"]] += 1
            if not fact["reason"]:
                yield f"a stray of {fact['group_name']} is kept without a reason"
    garbage = {bytes.fromhex(event.data[1]) for event in run.history.happened("garbage")}
    for (name, raw), number in kept.items():
        if number > 1:
            yield f"{name} has kept {raw!r} {number} times"
        if raw not in garbage:
            yield f"{name} has kept {raw!r}, which nobody sent, or which is another program's"
