"""One checker for each promise: given a finished run, it yields every way in which the promise was broken."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from holdfast.testing.simulation.checkers import (
    attempts,
    clocks,
    contention,
    effects,
    enqueues,
    leases,
    order,
    progress,
    schedules,
)
from holdfast.testing.simulation.checkers.run import Run, Violation

Checker = Callable[[Run], Iterator[str]]
SURPRISE = (
    "no surprises"  # an error that nobody expected: a mistake, but not a promise that a planted bug broke
)

CHECKERS: dict[str, Checker] = {
    "I1 acknowledged is present": enqueues.acknowledged_is_present,
    "I2 a job exists if and only if its transaction committed": enqueues.with_its_transaction,
    "I2 refused is absent": enqueues.refused_is_absent,
    "I3 a request of unknown outcome, repeated, is one job": enqueues.once_for_a_request,
    "I3 a unique key has one job that is not over": enqueues.unique,
    "I4 one unexpired lease, growing tokens, no early steal": leases.intervals,
    "I5 only the newest token writes": leases.fenced,
    "I5 a holder is told the truth": leases.truthful,
    "I6 rows commit once, with the success of their job": effects.with_the_finish,
    "I8 rescued soon after the lease ends": leases.rescued_soon,
    "I9 a worker that is well keeps its leases": leases.kept_by_the_well,
    "I9 a lost job is stopped within a renewal": leases.stopped_when_lost,
    "I10 charged before the body runs": attempts.charged_first,
    "I10 three strikes": attempts.strikes,
    "I11 deferral is not charged": attempts.uncharged,
    "I12 in order": order.ordered,
    "I12 slots": order.slots,
    "I13 by priority, then rank": order.claimed_in_order,
    "I13 all work ends after the faults": progress.ends,
    "I13 what is over holds nothing": progress.lets_go,
    "I13 the ready start soon": progress.starts_soon,
    "I14 only the database's clock decides": clocks.on_the_database,
    "I15 one job for each nominal time": schedules.ticks,
    "I20 leases by name": contention.named_leases,
    "I20 idempotency keys": contention.keys,
    "I36 bounded": progress.bounded,
    SURPRISE: progress.no_surprises,
}


def check(run: Run) -> list[Violation]:
    return [Violation(name, text) for name, checker in CHECKERS.items() for text in checker(run)]


__all__ = ["CHECKERS", "Checker", "Run", "Violation", "check"]
