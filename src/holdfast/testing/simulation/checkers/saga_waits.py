"""What sagas wait for reaches them: events since they began and signals, each once, and nobody waits beside what has come."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from holdfast.testing.simulation.checkers.run import Run
from holdfast.testing.simulation.checkers.saga_told import KNOWN, STUCK, WAIT_STEP, Saga, read, told
from holdfast.testing.simulation.ledger import Entry, Fact

SOON = 15.0  # seconds from when it has come, and all is well, until who waits has it
HEALING = 12.0  # seconds after the heal until all is well
_SAME = 1e-3


def taken_in_turn(run: Run) -> Iterator[str]:
    """An event that comes to a wait is the first that its saga has not had; a signal comes to one wait."""
    if run.plan.kind != "sagas":
        return
    for saga in told(run).sagas.values():
        had: dict[tuple[str | None, str | None], set[int]] = defaultdict(set)
        for name, entry in _ended(saga):
            wait = _awaited(run, saga, name)
            came = read(entry.result)
            if wait is None or wait["kind"] != "event" or came.get("timed_out"):
                continue
            about = wait["name"], wait["key"]
            matching = _matching(run, saga, wait, entry.step, within=True)
            if came["position"] not in matching:
                yield f"saga {saga.id}: {name!r} got an event that is not for it, at {entry.moment:.3f} s"
            if came["position"] in had[about]:
                yield f"saga {saga.id}: {name!r} got an event for the second time, at {entry.moment:.3f} s"
            had[about].add(came["position"])
    taken: dict[int, str] = {}
    for fact in run.ledger.facts["saga_signal"]:
        if (
            fact["taken_by"] is not None
            and taken.setdefault(fact["seq"], fact["taken_by"]) != fact["taken_by"]
        ):
            yield f"a signal was taken by {taken[fact['seq']]!r} and by {fact['taken_by']!r}"


def not_late(run: Run) -> Iterator[str]:
    """Nobody is told that nothing came in time while it lies there."""
    if run.plan.kind != "sagas":
        return
    for saga in told(run).sagas.values():
        for name, entry in _ended(saga):
            if not read(entry.result).get("timed_out"):
                continue
            wait = _awaited(run, saga, name)
            if wait is None:
                continue
            if left := _unused(run, saga, wait, entry.step):
                yield f"saga {saga.id}: {name!r} timed out at {entry.moment:.3f} s, and there is {left}"


def woken(run: Run) -> Iterator[str]:
    """Who waits has it soon after it has come, once all is well."""
    if run.plan.kind != "sagas":
        return
    for wait in run.ledger.facts["saga_wait"]:
        saga = told(run).by_number[wait["saga"]]
        if wait.change != "INSERT" or wait["kind"] == "saga":
            continue
        came = _first(run, saga, wait)
        if came is None:
            continue
        since = max(came.moment, wait.moment, run.healed + HEALING)
        until = min([run.ended, *_released(saga, wait)])
        if until - since > SOON:
            yield (
                f"saga {saga.id}: {wait['step']!r} still waits {until - since:.1f} s after what it waits for came, "
                f"at {came.moment:.3f} s"
            )


def _released(saga: Saga, wait: Fact) -> Iterator[float]:
    """When it no longer waited: it has it, it is undone, over, or stuck."""
    for entry in saga.steps[wait["step"]]:
        if entry.progress in KNOWN:
            yield entry.moment
    for row in saga.rows:
        if (
            row["undoing"]
            or row["asked"]
            or row["state"] in ("done", "undone", *STUCK)
            or row.change == "DELETE"
        ):
            yield row.moment


def _ended(saga: Saga) -> Iterator[tuple[str, Entry]]:
    """Its waits that have ended, in the order of their ends."""
    found = [
        (name, next(each for each in entries if each.progress in KNOWN))
        for name, entries in saga.steps.items()
        if name.startswith(WAIT_STEP) and any(each.progress in KNOWN for each in entries)
    ]
    return iter(sorted(found, key=lambda pair: pair[1].step))


def _awaited(run: Run, saga: Saga, step: str) -> dict[str, str | None] | None:
    """What a step waits for: by its name, and by the acts of its saga."""
    kind, _, rest = step.removeprefix(WAIT_STEP).rpartition("/")[0].rpartition("gather/")[2].partition("/")
    if "." in kind:  # a branch
        kind, _, rest = rest.partition("/")
    if kind == "signal":
        return {"kind": "signal", "name": rest, "key": None}
    if kind != "event":
        return None
    keys = {act.key for act in saga.own_acts() if act.kind == "wait" and act.name == rest}
    if len(keys) == 1:
        return {"kind": "event", "name": rest, "key": keys.pop()}
    registered = [
        fact
        for fact in run.ledger.facts["saga_wait"]
        if told(run).by_number[fact["saga"]] is saga and fact["step"] == step
    ]
    return None if not registered else {"kind": "event", "name": rest, "key": registered[0]["key"]}


def _matching(
    run: Run, saga: Saga, wait: dict[str, str | None] | Fact, step: int, *, within: bool = False
) -> dict[int, Fact]:
    """Events since the saga began, of this type and key, that were published by then: by position.

    `within`: also those of the commit in which it began, and of the one at `step`, which may have come before it or after.
    """
    began = saga.rows[0].step
    emitted: dict[int, int] = {}  # by number: the step of its commit
    found: dict[int, Fact] = {}
    for fact in run.ledger.facts["outbox"]:
        emitted.setdefault(fact["seq"], fact.step)
        if (
            fact["position"] is not None
            and fact.step < step + within
            and fact["type"] == wait["name"]
            and wait["key"] in (None, fact["key"])
            and emitted[fact["seq"]] > began - within
        ):
            found.setdefault(fact["position"], fact)
    return found


def _unused(run: Run, saga: Saga, wait: dict[str, str | None], step: int) -> str | None:
    if wait["kind"] == "signal":
        left = {
            fact["seq"]: fact["taken_by"]
            for fact in run.ledger.facts["saga_signal"]
            if told(run).by_number[fact["saga"]] is saga and fact["name"] == wait["name"] and fact.step < step
        }
        return next((f"signal {seq}" for seq, taken in left.items() if taken is None), None)
    used = _had(run, saga, wait, before=step)
    left_ = [position for position in _matching(run, saga, wait, step) if position > max(used, default=0)]
    return f"event {left_[0]}" if left_ else None


def _first(run: Run, saga: Saga, wait: Fact) -> Fact | None:
    """What has come for a wait that was registered, and that no other of its saga has had."""
    if wait["kind"] == "signal":
        signals = [fact for fact in run.ledger.facts["saga_signal"] if fact["saga"] == wait["saga"]]
        taken = {fact["seq"]: fact["taken_by"] for fact in signals}
        mine = [fact for fact in signals if taken[fact["seq"]] in (None, wait["step"])]
        return next((fact for fact in mine if fact["name"] == wait["name"]), None)
    ended = next((entry.step for name, entry in _ended(saga) if name == wait["step"]), None)
    behind = max(_had(run, saga, wait, before=ended), default=0)  # each gets the next one
    matching = _matching(run, saga, wait, 1 << 60)
    return next((fact for position, fact in sorted(matching.items()) if position > behind), None)


def _had(run: Run, saga: Saga, wait: dict[str, str | None] | Fact, before: int | None = None) -> list[int]:
    """The positions of what its waits for the same have got, and of what those may have waited for that never had to."""
    found = []
    for name, entry in _ended(saga):
        other = _awaited(run, saga, name)
        same = other is None or (other["name"], other["key"]) == (wait["name"], wait["key"])
        if same and f"event/{wait['name']}/" in name and (before is None or entry.step < before):
            found.append(read(entry.result).get("position", 0))
    return found
