"""I3: a queued job is replaced or taken by a worker, never both; who replaces it is told so, and it runs with what was told last."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator

import msgspec

from holdfast.store.records import Claim, Standing
from holdfast.store.states import State
from holdfast.testing.simulation.checkers.run import Run
from holdfast.testing.simulation.fleet import Args
from holdfast.testing.simulation.history import Call
from holdfast.testing.simulation.ledger import Entry

_SAME = 1e-3


def as_told(run: Run) -> Iterator[str]:
    """Replaced means that it was queued then, and got this time; not replaced, that it was not, or has steps."""
    entries = run.ledger.by_job
    for call, delay, standing in _met(run):
        mine = [entry for entry in entries[standing.id] if call.spans(entry) and _stays_queued(entry)]
        due = [(entry.run_at or entry.at) - entry.at for entry in mine]
        if standing.replaced and not mine:
            yield f"op {call.asked[0]}: told that it has replaced {standing.id}; nothing of that was changed"
        elif (
            standing.replaced
            and not any(abs(each - delay) <= _SAME for each in due)
            and not any(map(run.stepped_under, mine))
        ):
            yield f"op {call.asked[0]}: has replaced {standing.id}, to be due in {delay} s; it is in {due}"
        if not standing.replaced and standing.state is State.QUEUED:
            has_steps = any(entry.id == standing.id for entry in run.ledger.of("step"))
            if not has_steps:
                yield f"op {call.asked[0]}: {standing.id} was queued, has no steps, and was not replaced"


def runs_as_told(run: Run) -> Iterator[str]:
    """A claim gives the arguments of the last who has replaced it before."""
    replaced: dict[str, list[Call]] = defaultdict(list)
    for call, _, standing in _met(run):
        if standing.replaced:
            replaced[standing.id].append(call)
    for asked in run.history.of("claim", "claim_suspect") if replaced else ():
        for claim in _claims(asked):
            before = [each for each in replaced[claim.job_id] if _ended(each) < asked.invoked.step]
            op = msgspec.json.decode(claim.args, type=Args).op
            if (
                before
                and _ended_op(run, op)
                < (last := max(before, key=lambda each: each.invoked.step)).invoked.step
            ):
                yield f"job {claim.job_id}: is to run as op {op} has said; op {last.asked[0]} has replaced that before"


def _ended(call: Call) -> float:
    return math.inf if call.answered is None else call.answered.step


def _ended_op(run: Run, op: int) -> float:
    """By when all that was asked for it was answered."""
    return max(_ended(call) for call in run.history.of("enqueue", "transaction") if call.asked[0] == op)


def _met(run: Run) -> Iterator[tuple[Call, float, Standing]]:
    for call in run.history.of("enqueue", "transaction"):
        specs = run.specs[call.asked[0]]
        if call.kind == "ok" and specs and specs[0].replace and call.answer[0].standing is not None:
            yield call, specs[0].delay or 0.0, call.answer[0].standing


def _stays_queued(entry: Entry) -> bool:
    return entry.was_state == "queued" == entry.state


def _claims(call: Call) -> list[Claim]:
    if call.kind != "ok" or not call.answer:
        return []
    return call.answer if isinstance(call.answer, list) else [call.answer]
