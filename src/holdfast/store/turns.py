"""Who has its turn in an order as soon as it is stored: where nobody is before it, promote need not look."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from holdfast.store.records import NewJob


def orders_of(jobs: Iterable[NewJob]) -> list[str]:
    """The orders whose jobs among these need their turn, and nothing else that would have to be looked at."""
    simple: dict[str, bool] = {}
    for job in jobs:
        if job.ordered is not None:
            simple[job.ordered] = simple.get(job.ordered, True) and _needs_its_turn_only(job)
    return [order for order, is_simple in simple.items() if is_simple]


def _needs_its_turn_only(job: NewJob) -> bool:
    return job.concurrency is None and job.tenant is None and not job.delay and job.at is None


def turns(jobs: Sequence[NewJob], free: Collection[str]) -> list[bool | None]:
    """True: its turn; False: it waits for the one before it. None: its order is not among those that are free, or it has none."""
    taken: set[str] = set()
    found: list[bool | None] = []
    for job in jobs:
        if job.ordered is None or job.ordered not in free:
            found.append(None)
        else:
            found.append(job.ordered not in taken)
            taken.add(job.ordered)
    return found
