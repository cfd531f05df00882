"""I23, I24: a saga that is over is all done or all undone, in reverse; what it does is known before, and decided once."""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from collections.abc import Iterator

from holdfast.testing.simulation.checkers.run import Run
from holdfast.testing.simulation.checkers.saga_told import (
    KNOWN,
    OPEN,
    OVER,
    STUCK,
    UNDO_STEP,
    Saga,
    Told,
    insisted,
    read,
    told,
)
from holdfast.testing.simulation.ledger import Entry, Fact
from holdfast.testing.simulation.sagas.calling import IN_TRANSACTION
from holdfast.testing.simulation.sagas.provider import CALL, DID, UNDO
from holdfast.testing.simulation.sagas.recorded import CANCEL, START
from holdfast.testing.simulation.sagas.spec import UNDO_TRIES, Act


def _sagas(run: Run) -> list[Saga]:
    return [] if run.plan.kind != "sagas" else list(told(run).sagas.values())


# --- how it ends ---


def done(run: Run) -> Iterator[str]:
    """One that is done has done all that its code insists on, and nothing of it was undone."""
    for saga in _sagas(run):
        if saga.state != "done":
            continue
        for act in insisted(saga.acts):
            last = saga.last(act.name)
            if last is None or last.progress not in KNOWN:
                yield f"saga {saga.id} is done, and step {act.name!r} is {None if last is None else last.progress}"
        for name, entries in saga.steps.items():
            if entries[-1].progress in KNOWN and saga.happened[name] and not saga.is_there(name):
                yield f"saga {saga.id} is done, and what {name!r} has done is undone"
        yield from (
            f"saga {saga.id} is done, and {each.data[1]!r} was undone"
            for each in saga.asked
            if each.verb == UNDO
        )


def undone(run: Run) -> Iterator[str]:
    """When it is said to be undone, nothing is left of what can be undone, and no child is left either."""
    for saga in _sagas(run):
        for row in saga.became("undone"):
            for act in saga.own_acts():
                if (act.undo or act.pivot) and saga.is_there(act.name, row.step):
                    yield f"saga {saga.id} was undone at {row.moment:.3f} s, and what {act.name!r} has done is still there"
            for child in told(run).children(saga):
                state = child.at(row.step)
                if state is not None and state["state"] != "undone":
                    yield f"saga {saga.id} was undone at {row.moment:.3f} s; its child {child.id} is {state['state']}"


def children_first(run: Run) -> Iterator[str]:
    """A child is started while its parent goes forward, and is over before it."""
    for saga in _sagas(run):
        if saga.parent is not None:
            parent = told(run).sagas[saga.parent].at(saga.rows[0].step)
            if parent is None or parent["undoing"] or parent["state"] in OVER or parent.change == "DELETE":
                yield f"saga {saga.id} was started at {saga.rows[0].moment:.3f} s, and its parent does not go forward"
        for row in saga.became(*OVER):
            for child in told(run).children(saga):
                state = child.at(row.step)
                if state is not None and state["state"] not in OVER:
                    yield f"saga {saga.id} was {row['state']} at {row.moment:.3f} s; its child {child.id} is {state['state']}"


def left_to_a_person(run: Run) -> Iterator[str]:
    """Only what goes on in neither direction: past its pivot, with an undo that fails, when nobody knows, or its job is dead."""
    for saga in _sagas(run):
        for row in saga.became(*STUCK):
            if not _has_reason(told(run), saga, row):
                yield f"saga {saga.id} became {row['state']} at {row.moment:.3f} s: {row['error']}"


def _has_reason(story: Told, saga: Saga, row: Fact) -> bool:
    if row["state"] == "parked":
        return any(entry.state == "dead" for entry in story.run.ledger.by_job[saga.job])
    if row["pivot"] is not None:
        return True
    pivots = {act.name for act in saga.own_acts() if act.pivot}
    last = {name: found for name in list(saga.steps) if (found := saga.last(name, row.step)) is not None}
    for name, entry in last.items():
        if name.startswith(UNDO_STEP) and entry.progress == "failed" and entry.tries >= UNDO_TRIES:
            return True
        if entry.progress in OPEN and (entry.kind == "at_most_once" or name in pivots):
            return True
        if entry.kind == "keyed" and entry.progress == "unknown":
            return True
        if entry.progress == "handled" and name in pivots:
            return True
    return bool(row["undoing"]) and any(
        _cannot_be_undone(story, child, row) for child in story.children(saga)
    )


def _cannot_be_undone(story: Told, child: Saga, row: Fact) -> bool:
    """It has passed its pivot, or is forgotten, or its job is, and with that its steps."""
    now = child.at(row.step)
    if now is None:
        return False
    job = story.run.ledger.by_job[child.job]
    is_pruned = any(entry.what == "pruned" and entry.step <= row.step for entry in job)
    return is_pruned or now["pivot"] is not None or now.change == "DELETE"


# --- the way there ---


def reversed_order(run: Run) -> Iterator[str]:
    """The undo of a step begins when those of all steps after it are over."""
    for saga in _sagas(run):
        for name, entries in list(saga.steps.items()):
            step = saga.last(name.removeprefix(UNDO_STEP), entries[0].step)
            if not name.startswith(UNDO_STEP):
                continue
            if step is None:
                yield f"saga {saga.id}: {name!r} began at {entries[0].moment:.3f} s, and there is no such step"
                continue
            for other in _to_undo(saga, entries[0].step):
                if (other.number or 0) > (step.number or 0) and not _is_undone(saga, other, entries[0].step):
                    yield f"saga {saga.id}: {name!r} began at {entries[0].moment:.3f} s, before {other.name!r} was undone"


def _to_undo(saga: Saga, step: int) -> Iterator[Entry]:
    for name in list(saga.steps):
        last = saga.last(name, step)
        if last is None or name.startswith(UNDO_STEP) or last.progress == "failed":
            continue
        plan = read(next((each.plan for each in saga.steps[name] if each.plan is not None), None))
        if "undo" in plan or "child" in plan:
            yield last


def _is_undone(saga: Saga, entry: Entry, step: int) -> bool:
    last = saga.last(f"{UNDO_STEP}{entry.name}", step)
    return last is not None and last.progress in KNOWN


def intended(run: Run) -> Iterator[str]:
    """Every call has an intent of its own, with the undo, committed before it."""
    for saga in _sagas(run):
        acts = {act.name: act for act in saga.own_acts() if act.kind == "step"}
        calls: Counter[tuple[str, str]] = Counter()
        for event in saga.asked:
            name = event.data[1] if event.verb == CALL else f"{UNDO_STEP}{event.data[1]}"
            if event.verb == CALL and _is_plain(acts[name]):
                continue
            calls[event.process, name] += 1
            intents = [
                entry
                for entry in saga.steps[name]
                if entry.progress == "begun" and entry.process == event.process and entry.step <= event.step
            ]
            if len(intents) < calls[event.process, name]:
                yield (
                    f"saga {saga.id}: {event.process} called for {name!r} at {event.moment:.3f} s; {len(intents)} intents "
                    f"are stored for {calls[event.process, name]} calls"
                )
            elif event.verb == CALL and acts[name].undo and "undo" not in read(intents[-1].plan):
                yield f"saga {saga.id}: {name!r} was called at {event.moment:.3f} s, and its undo is not stored"


def _is_plain(act: Act) -> bool:
    return not (act.undo or act.pivot or act.policy or act.looks)


def decided_at_once(run: Run) -> Iterator[str]:
    """That a step has failed for good is written with what follows from it: it is undone, or a person is needed."""
    for saga in _sagas(run):
        if any(act.kind == "gather" for act in saga.acts):
            continue  # where several fail, one of them is written with the decision
        acts = {act.name: act for act in saga.own_acts() if act.kind == "step"}
        for name, act in acts.items():
            for entry in saga.steps[name]:
                row = saga.at(entry.step)
                if entry.progress not in ("failed", "begun") or entry.tries < act.tries or row is None:
                    continue
                if not row["undoing"] and row["state"] not in STUCK and not _was_stuck(saga, entry):
                    yield f"saga {saga.id}: {name!r} has failed at {entry.moment:.3f} s for good, and nothing was decided"


def _was_stuck(saga: Saga, entry: Entry) -> bool:
    """A person has let it go on, and it begins with all of its tries."""
    return any(row["state"] in STUCK and row.step <= entry.step for row in saga.rows)


def never_forward_again(run: Run) -> Iterator[str]:
    for saga in _sagas(run):
        decided = saga.decided
        if decided is None:
            continue
        for act in saga.own_acts():
            last = saga.last(act.name, decided.step) if act.pivot else None
            if last is not None and last.progress in KNOWN:
                yield f"saga {saga.id}: decided to undo at {decided.moment:.3f} s, after its pivot {act.name!r}"
        anew = saga.begun_anew(decided.step)
        for row in saga.rows:
            if decided.step < row.step < anew and not row["undoing"]:
                yield f"saga {saga.id}: decided to undo at {decided.moment:.3f} s, and goes on at {row.moment:.3f} s"
        for event in saga.asked:
            if event.verb == CALL and decided.step < event.step < anew and told(run).holds(saga, event):
                yield f"saga {saga.id}: decided to undo at {decided.moment:.3f} s, and {event.data[1]!r} was called at {event.moment:.3f} s"


def not_again(run: Run) -> Iterator[str]:
    """What is recorded is not called again by who holds the saga; `at_most_once` is done once; a key is always the same."""
    for saga in _sagas(run):
        acts = {act.name: act for act in saga.own_acts() if act.kind == "step"}
        keys: dict[str, set[str]] = defaultdict(set)
        for event in saga.asked:
            name = event.data[1] if event.verb == CALL else f"{UNDO_STEP}{event.data[1]}"
            last = saga.last(name, event.step - 1)
            if last is not None and last.progress in (*KNOWN, "handled") and told(run).holds(saga, event):
                yield f"saga {saga.id}: {name!r} is {last.progress}, and was called at {event.moment:.3f} s"
            if event.verb == CALL and event.data[2] is not None:
                keys[name].add(event.data[2])
        yield from (
            f"saga {saga.id}: {name!r} was called with {len(all_)} keys"
            for name, all_ in keys.items()
            if len(all_) > 1
        )
        for name, act in acts.items():
            number = sum(event.verb == DID for event in saga.happened[name])
            if act.policy == "at_most_once" and number > 1:
                yield f"saga {saga.id}: {name!r} was done {number} times"


# --- what callers are told ---


def started(run: Run) -> Iterator[str]:
    """One saga for each id: who was told that it is started finds it, and who rolled back started none."""
    if run.plan.kind != "sagas":
        return
    made: dict[str, list[Fact]] = defaultdict(list)
    for row in run.ledger.facts["saga"]:
        if row.change != "UPDATE":
            made[row["id"]].append(row)
    for saga_id, rows in made.items():
        changes = [row.change for row in rows]
        if any(a == b for a, b in itertools.pairwise(changes)):
            yield f"there is more than one saga {saga_id}"
    for call in run.history.of(START):
        for saga_id, _ in call.asked if call.kind == "ok" else ():
            assert call.answered is not None
            if not any(row.step <= call.answered.step for row in made[saga_id]):
                yield f"{call.process} was told that saga {saga_id} is started, and it is not there"
    yield from _in_transactions(run, made)


def _in_transactions(run: Run, made: dict[str, list[Fact]]) -> Iterator[str]:
    """With the row of its caller, or not at all."""
    plainly = {job_id for call in run.history.of(START) for _, job_id in call.asked}
    rows = {entry.number: entry.commit for entry in run.ledger.of("row") if entry.reason == "saga"}
    commits = {(entry.id, entry.commit) for entry in run.ledger.of("row") if entry.reason == "saga"}
    inserted = {
        (saga_id, fact.commit): fact
        for saga_id, facts in made.items()
        for fact in facts
        if fact.change == "INSERT"
    }
    for about, fact in inserted.items():
        if fact["job_id"] not in plainly and about not in commits:
            yield f"saga {about[0]} was started at {fact.moment:.3f} s without the transaction of its caller"
    for call in run.history.of(IN_TRANSACTION):
        saga_id, op = call.asked
        if call.kind == "ok" and call.answer and (saga_id, rows.get(op)) not in inserted:
            yield f"{call.process} was told that saga {saga_id} is created with its transaction, and it was not"


def cancelled(run: Run) -> Iterator[str]:
    """Who was told that it will be undone is not told later that it is done."""
    for call in run.history.of(CANCEL):
        if call.kind != "ok" or call.answer.outcome != "accepted":
            continue
        assert call.answered is not None
        saga = told(run).sagas[call.asked[0]]
        for row in saga.became("done"):
            if row.step > call.answered.step and row["pivot"] is None:
                yield f"saga {saga.id} was cancelled at {call.answered.moment:.3f} s, and was done at {row.moment:.3f} s"
