"""Time to recover: how long until what a fault has interrupted ran again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec

from chaos.elsewhere import Run

if TYPE_CHECKING:
    from chaos.world import Injection


def interrupted(runs: Sequence[Run], injection: Injection) -> Iterator[tuple[Run, Run | None]]:
    """Each run that was under way among those it hit and did not end well, with the next run of its job.

    `runs` are ordered by job and token.
    """
    for place, run in enumerate(runs):
        if injection.pids is not None and run.pid not in injection.pids:
            continue
        if run.began > injection.ended or (run.ended is not None and run.ended < injection.began):
            continue
        if run.how in ("done", "put off"):
            continue
        later = runs[place + 1] if place + 1 < len(runs) else None
        yield run, later if later is not None and later.job == run.job else None


class Recovery(msgspec.Struct, frozen=True, order=True):
    """How long it took, and for whom."""

    seconds: float
    told: str


def times(
    runs: Sequence[Run], injections: Sequence[Injection], *, from_the_end: bool, decided: Mapping[str, float]
) -> list[Recovery]:
    """For each interrupted run that was followed by another; and from each fault of all to the next run of any. In order.

    Not for one that has waited for a person in between, who comes when all faults are over: `decided` says when, by job.
    """
    found = []
    begins = sorted(run.began for run in runs)
    for injection in injections:
        since = injection.ended if from_the_end else injection.began
        for run, later in interrupted(runs, injection):
            if later is None or run.began < decided.get(run.job, 0.0) <= later.began:
                continue
            if later.began >= injection.began:
                told = f"{run.task} {run.item}, token {run.token} ({run.how or 'killed'}), then {later.token}"
                found.append(Recovery(max(0.0, later.began - since), told))
        if injection.pids is None:
            found += [
                Recovery(began - injection.ended, "any") for began in begins if began > injection.ended
            ][:1]
    return sorted(found)
