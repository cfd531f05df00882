"""One checker for each promise: given a finished run, it yields every way in which the promise was broken."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from holdfast.testing.simulation.checkers import (
    attempts,
    bodies,
    clocks,
    contention,
    deaths,
    drains,
    effects,
    enqueues,
    keys,
    leases,
    order,
    passing_on,
    progress,
    requests,
    schedules,
    steps,
)
from holdfast.testing.simulation.checkers.run import Run, Violation

Checker = Callable[[Run], Iterator[str]]
SURPRISE = (
    "no surprises"  # an error that nobody expected: a mistake, but not a promise that a planted bug broke
)

CHECKERS: dict[str, Checker] = {
    "I1 acknowledged is present": enqueues.acknowledged_is_present,
    "I2 a job exists if and only if its transaction committed": enqueues.with_its_transaction,
    "I1 stored as given": enqueues.as_given,
    "I2 refused is absent": enqueues.refused_is_absent,
    "I2 a transaction ends in time": enqueues.cut_off,
    "I3 a request of unknown outcome, repeated, is one job": enqueues.once_for_a_request,
    "I3 a unique key has one job that is not over": enqueues.unique,
    "I3 who has a twin is told so": enqueues.twins,
    "I4 one unexpired lease, growing tokens, no early steal": leases.intervals,
    "I5 only the newest token writes": leases.fenced,
    "I5 a holder is told the truth": leases.truthful,
    "I5 tokens are of the newest epoch": requests.epochs,
    "I6 rows commit once, with the success of their job": effects.with_the_finish,
    "I6 a finish that claims is one commit": effects.claims_with_the_finish,
    "I5 only the newest token writes of its steps": steps.fenced,
    "I5 who writes of a step is told the truth": steps.told,
    "I5 who looks at steps gets all of them": steps.loaded,
    "I24 an intent is stored before its call": steps.intended,
    "I7 at most once": steps.at_most_once,
    "I7 not found counts after it has settled": steps.settled,
    "I7 what is recorded as not done was not done": steps.truthful,
    "I7 one key for each effect": steps.one_key,
    "I7 what is recorded is not done again": steps.not_again,
    "I24 every attempt gets what is recorded": steps.same_for_all,
    "I24 only what was handled is kept as that": steps.handled_by_the_task,
    "I24 what is known keeps nobody from going on": steps.kept_from_going_on,
    "I24 replays are not taken for other code": steps.unchanged,
    "I7 unknown only when an intent was open": steps.unknown_when_open,
    "I7 who dies leaves no effect open": steps.dead_with_nothing_open,
    "I7 no effect is lost": steps.nothing_lost,
    "I7 a job becomes what its holder said": requests.outcomes,
    "I7 unknown and dead wait for a decision": requests.decided,
    "I8 rescued soon after the lease ends": leases.rescued_soon,
    "I9 a worker that is well keeps its leases": leases.kept_by_the_well,
    "I9 a lost job is stopped within a renewal": leases.stopped_when_lost,
    "I10 charged before the body runs": attempts.charged_first,
    "I10 three strikes": attempts.strikes,
    "I10 attempts are bounded by the policy": attempts.bounded,
    "I10 a suspect runs alone": bodies.alone,
    "I11 deferral is not charged": attempts.uncharged,
    "I12 in order": order.ordered,
    "I12 slots": order.slots,
    "I12 slots of a worker": bodies.within_slots,
    "I12 a body holds its lock": bodies.locked,
    "I9 a timeout is kept": bodies.timed,
    "I13 by priority, then rank": order.claimed_in_order,
    "I13 a tenant's window": order.windows,
    "I13 put back to its place": order.put_back,
    "I13 nothing is left to repair": passing_on.nothing_to_repair,
    "I13 all work ends after the faults": progress.ends,
    "I13 what is over holds nothing": progress.lets_go,
    "I13 the ready start soon": progress.starts_soon,
    "I13 nobody idles beside ready work": progress.nobody_idles,
    "I13 refused only while something is wrong": progress.available,
    "I14 only the database's clock decides": clocks.on_the_database,
    "I14 later means later": requests.later,
    "I15 one job for each nominal time": schedules.ticks,
    "I15 every nominal time has its job": schedules.all_made,
    "I15 what was missed is treated as declared": schedules.policies,
    "I20 a lease has one holder": contention.exclusive,
    "I20 a lease fences": contention.fencing,
    "I20 a lease ends when its holder or an operator says so": contention.asked_for,
    "I20 a lease's holder is told the truth": contention.told,
    "I20 a key has one effect": keys.once,
    "I20 a key has one holder": keys.held,
    "I20 a key stands for one request": keys.same_request,
    "I32 who leaves charges nothing and leaves nothing": drains.leaves,
    "I36 bounded": progress.bounded,
    "on_dead is told once, with the death": deaths.told,
    "a paused queue rests": requests.paused,
    "cancel does what it says": requests.cancelled,
    "held by hand stays held": requests.held_by_hand,
    "over is kept": requests.kept,
    SURPRISE: progress.no_surprises,
}


def check(run: Run) -> list[Violation]:
    return [Violation(name, text) for name, checker in CHECKERS.items() for text in checker(run)]


__all__ = ["CHECKERS", "Checker", "Run", "Violation", "check"]
