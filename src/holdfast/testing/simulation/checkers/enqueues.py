"""I1, I2, I3: what was acknowledged is there, what was refused is not, and nothing is there twice."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator

from holdfast.testing.simulation.callers import traced
from holdfast.testing.simulation.checkers.run import Run
from holdfast.testing.simulation.history import Call

LIMIT = 5.0  # seconds that a transaction on SQLite may take


def acknowledged_is_present(run: Run) -> Iterator[str]:
    for call in run.history.of("enqueue", "transaction"):
        if call.kind == "ok":
            for stored in call.answer:
                if stored.id not in run.ledger.made:
                    yield f"op {call.asked[0]} was told that {stored.id} is stored; it never was"
    pruned = {entry.id for entry in run.ledger.of("pruned")}
    for job_id in run.ledger.made:
        place = run.remaining.get(job_id)
        if place is None and job_id not in pruned:
            yield f"job {job_id} is nowhere at the end"
        elif place is not None and " and " in place:
            yield f"job {job_id} is in two places: {place}"


def with_its_transaction(run: Run) -> Iterator[str]:
    rows = Counter(entry.number for entry in run.ledger.of("row") if entry.reason == "order")
    for op, calls in _by_op(run, "transaction").items():
        answers = {call.kind for call in calls}
        ids = calls[0].asked[1]
        stored = [job_id for job_id in ids if job_id in run.ledger.made]
        if rows[op] > 1:
            yield f"op {op}: its row was written {rows[op]} times; its calls said {[call.kind for call in calls]}"
        if answers == {"fail"} and (rows[op] or stored):
            yield f"op {op}: every try failed, yet {rows[op]} rows and jobs {stored} are there"
        if "ok" in answers and not rows[op]:
            yield f"op {op}: it was told that its transaction committed; the row is not there"
        if stored and not rows[op]:
            yield f"op {op}: jobs {stored} are there without the row of their transaction"
        plain = [job_id for job_id, spec in zip(ids, run.specs[op], strict=True) if spec.unique is None]
        if rows[op] and not set(plain) <= set(stored):
            yield f"op {op}: the row is there without the jobs {sorted(set(plain) - set(stored))}"
    for op, calls in _by_op(run, "enqueue").items():
        stored = [job_id for job_id in calls[0].asked[1] if job_id in run.ledger.made]
        if stored and {call.kind for call in calls} == {"fail"}:
            yield f"op {op}: every try failed ({[call.answer for call in calls]}), yet {stored} are stored"


def cut_off(run: Run) -> Iterator[str]:
    """A transaction that keeps others from writing for too long does not commit, unless its process stood still."""
    for call in run.history.of("transaction"):
        seconds = run.plan.ops[call.asked[0]].seconds
        if call.kind == "ok" and seconds > LIMIT + 0.5 and not run.was_paused(call):
            yield f"op {call.asked[0]}: its transaction committed after {seconds} s"


def refused_is_absent(run: Run) -> Iterator[str]:
    """An error that promises that nothing was stored is kept to, call by call."""
    for call in run.history.of("enqueue", "transaction"):
        if call.kind != "fail" or call.answered is None:
            continue
        steps = range(call.invoked.step, call.answered.step + 1)
        for job_id in call.asked[1]:
            made = run.ledger.made.get(job_id)
            if made is not None and made.entry is not None and made.entry.step in steps:
                yield f"op {call.asked[0]} was told {call.answer}, yet {job_id} was stored"


def once_for_a_request(run: Run) -> Iterator[str]:
    found: Counter[tuple[int, int]] = Counter()
    for made in run.ledger.made.values():
        args = run.args(made)
        if args.op >= 0:
            found[args.op, args.place] += 1
    for (op, place), number in found.items():
        if number > 1:
            yield f"op {op}: its job {place} was stored {number} times"
    ids = Counter(entry.id for entry in run.ledger.of("enqueued"))
    for job_id, number in ids.items():
        if number > 1:
            yield f"job {job_id} was stored {number} times"


def unique(run: Run) -> Iterator[str]:
    keys = {made.id: made.unique for made in run.ledger.made.values() if made.unique is not None}
    holders: dict[str, set[str]] = defaultdict(set)
    ended: dict[str, int] = {}
    for entry in run.ledger.entries:
        key = keys.get(entry.id)
        if key is None:
            continue
        if entry.what == "enqueued":
            holders[key].add(entry.id)
            if len(holders[key]) > 1:
                yield f"unique key {key!r} has {len(holders[key])} jobs at {entry.moment:.3f} s: {sorted(holders[key])}"
        elif entry.settled:
            holders[key].discard(entry.id)
            ended[entry.id] = entry.step
    asked: dict[int, int] = {}  # a call that is repeated is answered as its first try would have been
    for call in run.history.of("enqueue", "transaction"):
        first = asked.setdefault(call.asked[0], call.invoked.step)
        for stored in call.answer if call.kind == "ok" else ():
            if not stored.created and ended.get(stored.id, first) < first:
                yield f"op {call.asked[0]} was referred to {stored.id}, which was over before it asked"


def as_given(run: Run) -> Iterator[str]:
    """What a job was enqueued with is what is stored."""
    for made in run.ledger.made.values():
        spec = run.spec(made)
        if spec is None:
            continue
        args = run.args(made)
        given = {
            name: getattr(spec, name)
            for name in ("queue", "priority", "unique", "ordered", "concurrency", "tenant", "guard")
        }
        given |= traced(run.plan.epoch, args.op, args.place)
        if run.plan.is_real:
            del given["generation"]  # only a person's replay raises it
        for name, value in given.items():
            if getattr(made, name) != value:
                yield f"job {made.id}: {name} is {getattr(made, name)!r}; it was enqueued with {value!r}"


def twins(run: Run) -> Iterator[str]:
    """Created means that this very id is stored; not created, that another with the unique key is."""
    for call in run.history.of("enqueue", "transaction"):
        if call.kind != "ok":
            continue
        op, ids, _ = call.asked
        for job_id, spec, stored in zip(ids, run.specs[op], call.answer, strict=True):
            made, told = run.ledger.made.get(job_id), run.ledger.made.get(stored.id)
            if stored.created != (stored.id == job_id) or stored.created != (made is not None):
                yield f"op {op}: told {stored} for {job_id}, which is {'' if made else 'not '}stored"
            if told is not None and told.unique != spec.unique:
                yield f"op {op}: referred to {stored.id}, whose unique key is {told.unique!r}, not {spec.unique!r}"


def _by_op(run: Run, verb: str) -> dict[int, list[Call]]:
    found: dict[int, list[Call]] = defaultdict(list)
    for call in run.history.of(verb):
        found[call.asked[0]].append(call)
    return found
