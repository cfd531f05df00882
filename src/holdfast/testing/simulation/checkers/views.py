"""I30: rows of a view never go back, its checkpoint never runs ahead of them, and they equal what a rebuild would make."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import msgspec

from holdfast.testing.simulation.checkers.outbox import Holders
from holdfast.testing.simulation.checkers.run import Run
from holdfast.testing.simulation.checkers.told import Told, is_of_events, told
from holdfast.testing.simulation.events.projecting import VIEWS, projected
from holdfast.testing.simulation.events.viewing import ASKED
from holdfast.testing.simulation.ledger import Fact

Generation = tuple[str, int]
Rows = dict[str, Fact]


def never_back(run: Run) -> Iterator[str]:
    """Neither in one generation, nor as whoever reads the one that serves sees it."""
    if not is_of_events(run):
        return
    seen: dict[tuple[str, str], int] = {}
    for moment, serving, rows in _commits(run):
        for view, generation in serving.items():
            shown = {key: row["position"] for key, row in rows[view, generation].items()}
            for name, key in [place for place in seen if place[0] == view]:
                if shown.get(key, 0) < seen[name, key]:
                    yield f"{view} showed {key!r} of {seen[name, key]}, and at {moment:.3f} s of {shown.get(key, 0)}"
            seen |= {(view, key): position for key, position in shown.items()}
    newest: dict[tuple[str, int, str], Fact] = {}
    for fact in run.ledger.facts["view_row"]:
        place = fact["view"], fact["generation"], fact["key"]
        before = newest.pop(place, None)
        if fact.change == "DELETE":
            continue
        newest[place] = fact
        if before is not None and fact["position"] <= before["position"]:
            yield f"{place} went from position {before['position']} to {fact['position']} at {fact.moment:.3f} s"
        if (
            before is not None
            and before["source"] == fact["source"]
            and (before["version"] or 0) > (fact["version"] or 0)
        ):
            yield f"{place} went from version {before['version']} to {fact['version']} at {fact.moment:.3f} s"


def equals_a_rebuild(run: Run) -> Iterator[str]:
    """After each commit, the rows of a generation are what the events up to its checkpoint come to."""
    if not is_of_events(run):
        return
    story = told(run)
    log = sorted((fact["position"], event_id) for event_id, fact in story.stamped.items())
    for fact, rows, aside in _checkpoints(run):
        generation = fact["view"], fact["generation"]
        if fact["state"] == "old":
            continue
        between = [
            event_id
            for position, event_id in log
            if fact["start"] < position <= fact["position"] and position not in aside
        ]
        wanted = rebuilt(story, fact["view"], between)
        found = {
            key: msgspec.json.decode(row["data"]) for key, row in rows.items() if row["data"] is not None
        }
        if found != wanted:
            yield f"{fact['view']} ({generation[1]}) at {fact['position']} is {found} at {fact.moment:.3f} s, and not {wanted}"


def caught_up(run: Run) -> Iterator[str]:
    """By the end, what serves has read all that was published."""
    if not is_of_events(run):
        return
    story = told(run)
    newest = max((fact["position"] for fact in story.stamped.values()), default=0)
    last: dict[Generation, Fact] = {}
    for fact in run.ledger.facts["view"]:
        last[fact["view"], fact["generation"]] = fact
    for view in story.stream.views:
        serving = [fact for (name, _), fact in last.items() if name == view and fact["state"] == "serving"]
        if len(serving) != 1 and newest:
            yield f"{view} has {len(serving)} generations that serve"
        elif newest and serving[0]["position"] < newest:
            yield f"{view} has read up to {serving[0]['position']} of {newest}"


def fenced(run: Run) -> Iterator[str]:
    """Only who holds the lease of a view moves its checkpoint."""
    if not is_of_events(run):
        return
    before: dict[Generation, int] = {}
    for fact in run.ledger.facts["view"]:
        generation = fact["view"], fact["generation"]
        was, before[generation] = before.get(generation), fact["position"]
        if fact.change == "UPDATE" and was != fact["position"]:
            if (wrong := Holders(run, lease_of(fact["view"])).wrong(fact)) is not None:
                yield f"the checkpoint of {fact['view']} was moved at {fact.moment:.3f} s by {fact.process}: {wrong}"
            if was is not None and fact["position"] < was:
                yield f"the checkpoint of {fact['view']} went back from {was} to {fact['position']}"


def own_writes(run: Run) -> Iterator[str]:
    """Who asks for the row with what he has emitted is shown that, or told that it did not come in time."""
    if not is_of_events(run):
        return
    for call in run.history.of(ASKED):
        view, key, event_id = call.asked
        if call.kind == "ok" and event_id not in call.answer:
            yield f"{view} showed {key!r} without event {event_id} to who had asked for it at {call.invoked.moment:.3f} s"


def lease_of(view: str) -> str:
    return f"holdfast:view:{view}"


def rebuilt(story: Told, view: str, event_ids: list[str]) -> dict[str, Any]:
    """What the model of the view makes of these events, in this order."""
    rows: dict[str, Any] = {}
    for event_id in event_ids:
        fact = story.emitted[event_id]
        data = msgspec.json.decode(fact["data"])
        if VIEWS[view].hears(fact["type"]) and (key := VIEWS[view].key(fact["key"], data)) is not None:
            rows[key] = projected(rows.get(key), event_id)
    return rows


def _commits(run: Run) -> Iterator[tuple[float, dict[str, int], dict[Generation, Rows]]]:
    """After each commit: which generation of each view serves, and all rows."""
    serving: dict[str, int] = {}
    rows: dict[Generation, Rows] = defaultdict(dict)
    for commit in _grouped(run):
        for name, fact in commit:
            if name != "view_aside":
                _take(serving, rows, name, fact)
        yield commit[-1][1].moment, serving, rows


def _checkpoints(run: Run) -> Iterator[tuple[Fact, Rows, set[int]]]:
    """After each commit that moves one: its rows, and the positions of what is set aside."""
    serving: dict[str, int] = {}
    rows: dict[Generation, Rows] = defaultdict(dict)
    aside: dict[Generation, set[int]] = defaultdict(set)
    for commit in _grouped(run):
        for name, fact in commit:
            generation = fact["view"], fact["generation"]
            if name == "view_aside" and fact.change == "DELETE":
                aside[generation].discard(fact["position"])
            elif name == "view_aside":
                aside[generation].add(fact["position"])
            else:
                _take(serving, rows, name, fact)
        for name, fact in commit:
            if name == "view" and fact.change != "DELETE":
                generation = fact["view"], fact["generation"]
                yield fact, rows[generation], aside[generation]


def _take(serving: dict[str, int], rows: dict[Generation, Rows], name: str, fact: Fact) -> None:
    if name == "view":
        if fact["state"] == "serving" and fact.change != "DELETE":
            serving[fact["view"]] = fact["generation"]
        return
    kept = rows[fact["view"], fact["generation"]]
    if fact.change == "DELETE":
        kept.pop(fact["key"], None)
    else:
        kept[fact["key"]] = fact


def _grouped(run: Run) -> Iterator[list[tuple[str, Fact]]]:
    """The changes of views, commit by commit."""
    facts = [(name, fact) for name in ("view", "view_row", "view_aside") for fact in run.ledger.facts[name]]
    commits: dict[int, list[tuple[str, Fact]]] = defaultdict(list)
    for name, fact in facts:
        commits[fact.commit].append((name, fact))
    yield from (commits[number] for number in sorted(commits))
