"""`holdfast jobs story`: what has become of a job, from its plan to its end."""

from __future__ import annotations

import json
from argparse import Namespace
from collections.abc import Sequence
from typing import Any

import msgspec

from holdfast.jobs.story import ClaimTold, HoldTold, Story
from holdfast.runtime.app import Holdfast
from holdfast.runtime.cli.command import DONE, NOT_AS_WISHED, add_command
from holdfast.runtime.cli.output import complain, document, say, show_fields, show_table
from holdfast.runtime.cli.parser import Commands, job_id
from holdfast.runtime.cli.table import Column
from holdfast.runtime.cli.times import cell, span, told

_CLAIMS = (
    Column("attempt", right=True),
    Column("began"),
    Column("took", right=True, spare=True),
    Column("worker", spare=True),
    Column("outcome"),
    Column("why"),
)
_HOLDS = (Column("held"), Column("since"), Column("for", right=True), Column("by"), Column("why"))
_STEPS = (Column("step"), Column("kind"), Column("outcome"), Column("begun"), Column("calls", right=True))
_MOVES = (Column("moved"), Column("to"), Column("priority", right=True))
_DECISIONS = (Column("decided"), Column("by"), Column("action"), Column("after"))


def add(commands: Commands) -> None:
    about = "tell what became of a job: each claim, what held it, its steps, moves and decisions"
    telling = add_command(commands, "story", story, about=about)
    telling.add_argument("id", type=job_id)


async def story(hf: Holdfast, options: Namespace) -> int:
    found = await hf.jobs.story(options.id)
    if found is None:
        complain(f"There is no job {options.id}: it was never stored here, or it is over and was pruned.")
        return NOT_AS_WISHED
    if options.json:
        document({"story": as_document(found)})
    else:
        show_story(found, await hf.store.now())
    return DONE


def as_document(found: Story) -> dict[str, Any]:
    document: dict[str, Any] = msgspec.to_builtins(found)
    for decision in document["decisions"]:
        decision |= {side: _read(decision[side]) for side in ("before", "after")}
    return document


def show_story(found: Story, now: float) -> None:
    show_fields(
        [
            ("id", found.job_id),
            ("task", found.task),
            ("state", str(found.state)),
            ("planned", told(found.planned_at, now)),
            ("enqueued", told(found.enqueued_at, now)),
            ("finished", told(found.finished_at, now)),
            ("reason", found.reason),
            ("forgotten", f"{found.forgotten} older entries" if found.forgotten else None),
        ]
    )
    _table(_CLAIMS, [_claim(each, now) for each in found.claims])
    _table(_HOLDS, [_hold(each, now) for each in found.holds])
    steps = [
        [each.name, each.kind, each.outcome, cell(each.begun_at, now), each.calls] for each in found.steps
    ]
    _table(_STEPS, steps)
    _table(_MOVES, [[cell(each.at, now), cell(each.due_at, now), each.priority] for each in found.moves])
    _table(
        _DECISIONS, [[cell(each.at, now), each.actor, each.action, each.after] for each in found.decisions]
    )


def _table(columns: tuple[Column, ...], rows: Sequence[Sequence[object]]) -> None:
    if rows:
        say()
        show_table(columns, rows, nothing="")


def _claim(claim: ClaimTold, now: float) -> list[object]:
    outcome = claim.outcome if claim.times == 1 else f"{claim.outcome}, {claim.times} times"
    took = None
    if claim.began_at is not None and claim.times == 1:
        took = span((now if claim.ended_at is None else claim.ended_at) - claim.began_at)
    return [
        claim.attempt,
        cell(claim.began_at, now),
        took,
        claim.worker,
        outcome,
        claim.error or claim.reason,
    ]


def _hold(hold: HoldTold, now: float) -> list[object]:
    lasted = None if hold.since is None else span((now if hold.until is None else hold.until) - hold.since)
    still = " so far" if hold.until is None and lasted is not None else ""
    return [hold.held, cell(hold.since, now), f"{lasted}{still}" if lasted else None, hold.key, hold.reason]


def _read(text: str | None) -> Any:
    """JSON where it is JSON; some audit rows have plain words."""
    try:
        return None if text is None else json.loads(text)
    except ValueError:
        return text
