"""What a doctor looks at in views: one that stands still, and at what; one that nobody runs; what one could not take."""

from __future__ import annotations

from collections.abc import Iterator

from holdfast.store.findings import Finding, Level, bad, ok, warn
from holdfast.store.ports import Store
from holdfast.store.records import Lease
from holdfast.views.lag import Lag, lag_at
from holdfast.views.projector import ASIDE_LIMIT, LEASE_NAME

LATE = 60.0  # seconds that a published event may wait for a view
_LOOKED_AT = 1_000  # generations
_TOLD = 3  # of many, so many are told
_CHECK = "views"


async def examine(store: Store) -> list[Finding]:
    """Changes nothing."""
    found: list[Finding] = []
    for checkpoint in await store.views.checkpoints(limit=_LOOKED_AT):
        holder = await store.leases.get(LEASE_NAME.format(checkpoint.view))
        name = f"{'the rebuild of ' if checkpoint.state == 'building' else ''}{checkpoint.view}"
        found += _troubles(name, await lag_at(store, checkpoint), holder)
    if not found:
        return [ok(_CHECK, "Every view is up to date, or somebody brings it there.")]
    found.sort(key=lambda each: -list(Level).index(each.level))
    return [_together(found)]


def _together(found: list[Finding]) -> Finding:
    """One finding for all views: the worst first, with what to do about that."""
    told = "; ".join(each.found for each in found[:_TOLD])
    rest = f"; and {len(found) - _TOLD} more" if len(found) > _TOLD else ""
    return Finding(_CHECK, found[0].level, f"{told}{rest}.", found[0].todo)


def _troubles(name: str, lag: Lag, holder: Lease | None) -> Iterator[Finding]:
    yield from _standing(name, lag) or _behind(name, lag, holder)
    if 0 < lag.aside <= ASIDE_LIMIT:
        yield warn(_CHECK, f"{name} could not take {lag.aside:,} events", _show(lag))


def _standing(name: str, lag: Lag) -> list[Finding]:
    if lag.gap is not None:
        first, last = lag.gap
        return [
            bad(
                _CHECK,
                f"{name} stands still: the events from position {first} to {last} were pruned before it had read them",
                f"Build it from what is left: holdfast views rebuild {lag.view} --partial; or give it up, when no program has "
                f"it: holdfast views forget {lag.view}.",
            )
        ]
    if lag.aside > ASIDE_LIMIT:
        return [
            bad(_CHECK, f"{name} stands still: more than {ASIDE_LIMIT:,} events are set aside", _show(lag))
        ]
    return []


def _behind(name: str, lag: Lag, holder: Lease | None) -> list[Finding]:
    if lag.seconds < LATE:
        return []
    told = f"{name} is {lag.events:,} events behind, the oldest for {lag.seconds:.0f} s"
    if holder is None:
        todo = f"Start a worker that has it; or give it up, when no program has it: holdfast views forget {lag.view}."
        return [bad(_CHECK, f"{told}, and nobody runs it", todo)]
    return [
        warn(_CHECK, f"{told}, though {holder.owner} runs it", "What it meets is in the log of that worker.")
    ]


def _show(lag: Lag) -> str:
    return f"What, and why: holdfast views show {lag.view}."
