"""What a verb is given, checked before any database sees it: every store refuses the same, in the same words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

from holdfast.kernel.errors import LeaseLost, UsageError
from holdfast.kernel.names import check_int, check_name, check_seconds, check_text
from holdfast.kernel.outcomes import RESULT_LIMIT
from holdfast.kernel.show import show, storable
from holdfast.store.breakers import BreakerReport, check_hold, check_probe
from holdfast.store.idempotency import KeyClaim, KeyScope
from holdfast.store.once import pair_of
from holdfast.store.quota import DAY, Return, Want, check_amount, check_in_row, check_version
from holdfast.store.quota import check_key as check_quota_key
from holdfast.store.records import (
    NOTE_LIMIT,
    AuditEntry,
    Claim,
    Finish,
    JobRecord,
    Lease,
    NewJob,
    check_claim,
    check_id,
    is_prefix,
)  # fmt: skip
from holdfast.store.records import check_args as _check_args
from holdfast.store.states import Held, State
from holdfast.store.steps import Step

__all__ = [
    "all_held",
    "check_args",
    "check_by_hand",
    "check_claim",
    "check_claims",
    "check_each_claim_once",
    "check_entry",
    "check_finishes",
    "check_flag",
    "check_fleet_generation",
    "check_gates",
    "check_generation",
    "check_held",
    "check_held_lease",
    "check_hold",
    "check_id",
    "check_id_if_given",
    "check_ids",
    "check_if_given",
    "check_in_row",
    "check_job",
    "check_jobs",
    "check_key_claim",
    "check_lease",
    "check_limit",
    "check_names",
    "check_note",
    "check_open_for",
    "check_permits",
    "check_prefix",
    "check_priority_if_given",
    "check_probe",
    "check_progress",
    "check_queues",
    "check_quota_key",
    "check_rate",
    "check_reason",
    "check_records",
    "check_reports",
    "check_result",
    "check_returns",
    "check_scope",
    "check_seconds_if_given",
    "check_sql",
    "check_state",
    "check_states",
    "check_step",
    "check_tasks",
    "check_text",
    "check_token",
    "check_version",
    "check_want_list",
    "check_wants",
    "refuse_edit_of_many",
]

T = TypeVar("T")
SHORTEST = 0.001  # seconds that a lease must last
MOST_AT_ONCE = 1000  # wants, returns or reports in one call
BY_HAND = frozenset({Held.GUARD, Held.UNKNOWN_TASK})  # held by `hold`, until `unhold`


# What holds several things is copied: the caller may change its list while the verb waits, and a generator is read once.


def check_jobs(jobs: Any) -> tuple[NewJob, ...]:
    return _all(jobs, NewJob, "A job to enqueue is a NewJob")


def check_job(job: Any) -> None:
    check_jobs([job])


def check_finishes(finishes: Any) -> tuple[Finish, ...]:
    return _all(finishes, Finish, "A claim is finished by a Finish")


def check_claims(claims: Any) -> tuple[Claim, ...]:
    copied = _all(claims, Claim, "A claim is what claim() gave")
    for claim in copied:
        check_claim(claim)
    return copied


def check_records(records: Any) -> tuple[JobRecord, ...]:
    return _all(records, JobRecord, "A job to be explained is a JobRecord")


def check_each_claim_once(claims: Any) -> tuple[Claim, ...]:
    """A claim that is named twice is one."""
    return tuple({pair_of(claim): claim for claim in check_claims(claims)}.values())


def check_progress(progress: Any) -> float | None:
    if progress is None:
        return None
    if isinstance(progress, bool) or not isinstance(progress, int | float):
        raise UsageError(
            f"progress is a number from 0 to 1, not {show(progress)} ({type(progress).__name__})."
        )
    if not 0 <= progress <= 1:
        raise UsageError(
            f"progress is from 0 to 1, not {show(progress)}. Divide what is done by what there is."
        )
    return float(progress)


def check_note(note: Any) -> str | None:
    """For people: any characters, which are made to fit."""
    if note is None:
        return None
    if not isinstance(note, str):
        raise UsageError(f"A note is text, not {show(note)} ({type(note).__name__}).")
    text = storable(note)
    return text if len(text) <= NOTE_LIMIT else f"{text[: NOTE_LIMIT - 1]}…"


def _all(items: Any, kind: type[T], wanted: str) -> tuple[T, ...]:
    if isinstance(items, str | Mapping) or not isinstance(items, Iterable):
        raise UsageError(f"{wanted}, in a list; not {show(items)} ({type(items).__name__}).")
    copied = tuple(items)
    for item in copied:
        if not isinstance(item, kind):
            raise UsageError(f"{wanted}, not {show(item)} ({type(item).__name__}).")
    return copied


def check_ids(job_ids: Any) -> tuple[str, ...]:
    if isinstance(job_ids, str | bytes | Mapping) or not isinstance(job_ids, Iterable):
        raise UsageError(f"Job ids come in a list, not {show(job_ids)} ({type(job_ids).__name__}).")
    copied = tuple(job_ids)
    for job_id in copied:
        check_id(job_id)
    return copied


def check_prefix(prefix: Any) -> None:
    if not is_prefix(prefix):
        raise UsageError(
            f"The beginning of a job's id has 8 to 36 of its characters, in small letters; {show(prefix)} is none."
        )


def check_id_if_given(job_id: Any) -> None:
    if job_id is not None:
        check_id(job_id)


def check_args(args: Any) -> None:
    """Arguments in place of a job's own; None leaves those as they are."""
    if args is not None:
        _check_args(args)


def refuse_edit_of_many(job_ids: Sequence[str], args: str | None) -> None:
    """One text for the arguments of many jobs would be wrong for all but one of them."""
    if args is not None and len(job_ids) != 1:
        raise UsageError(
            f"New args are for one job; {len(job_ids):,} ids were given with them. Replay each with its own args."
        )


def check_held_lease(lease: Any) -> None:
    if not isinstance(lease, Lease):
        raise UsageError(f"A lease is what acquire() gave, not {show(lease)} ({type(lease).__name__}).")
    check_name("lease", lease.name)
    check_token(lease.token)


def check_key_claim(claim: Any) -> None:
    if not isinstance(claim, KeyClaim):
        raise UsageError(
            f"The claim of a key is what begin() gave, not {show(claim)} ({type(claim).__name__})."
        )
    check_scope(claim.scope)
    check_name("key", claim.key)
    check_token(claim.token)


def check_entry(entry: Any) -> None:
    if not isinstance(entry, AuditEntry):
        raise UsageError(f"An audit row is an AuditEntry, not {show(entry)} ({type(entry).__name__}).")
    entry.check()


def check_scope(scope: Any) -> None:
    if not isinstance(scope, KeyScope):
        raise UsageError(
            f"Whose key it is, is a KeyScope(tenant, principal, route); not {show(scope)} ({type(scope).__name__})."
        )


def check_token(token: Any) -> None:
    check_int("A token", token, 0, 2**63 - 1)


def check_token_if_given(token: Any) -> None:
    if token is not None:
        check_token(token)


def check_queues_if_given(queues: Any) -> tuple[str, ...] | None:
    return None if queues is None else check_names("queues", "queue", queues)


def check_flag(kind: str, flag: Any) -> None:
    if not isinstance(flag, bool):
        raise UsageError(f"{kind} is True or False, not {show(flag)} ({type(flag).__name__}).")


def check_step(step: Any) -> None:
    if not isinstance(step, Step):
        raise UsageError(f"A step to keep is a Step, not {show(step)} ({type(step).__name__}).")


def check_generation(generation: Any) -> None:
    check_int("generation", generation, 0, 1_000_000)


def check_result(result: Any) -> None:
    if result is not None:
        check_text("result", result, RESULT_LIMIT)


def check_rows(rows: Any) -> list[tuple[Any, ...]]:
    """Values for one statement after the other."""
    if isinstance(rows, str | bytes | Mapping) or not isinstance(rows, Iterable):
        raise UsageError(f"Rows are a list of tuples of values, not {show(rows)} ({type(rows).__name__}).")
    return [_row(row) for row in rows]


def _row(row: Any) -> tuple[Any, ...]:
    if isinstance(row, str | bytes) or not isinstance(row, Sequence):
        raise UsageError(
            f"A row is a tuple of the values for $1, $2 …, not {show(row)} ({type(row).__name__})."
        )
    return tuple(row)


def check_sql(sql: Any) -> None:
    if not isinstance(sql, str) or not sql.strip():
        raise UsageError(f"SQL is text that is not empty, not {show(sql)} ({type(sql).__name__}).")


def check_if_given(kind: str, name: Any) -> str | None:
    """A name to look for, or None for all."""
    return None if name is None else check_name(kind, name)


def check_tasks(tasks: Any) -> tuple[str, ...] | None:
    return None if tasks is None else check_names("tasks", "task", tasks)


def check_wants(wants: Any) -> dict[str, int]:
    if not isinstance(wants, Mapping):
        raise UsageError(f"Say how many of each queue: {{'default': 10}}, not {show(wants)}.")
    return {
        check_name("queue", queue): check_int(
            f"The number of jobs wanted of {show(queue)}", number, 0, 100_000
        )
        for queue, number in wants.items()
    }


def check_queues(queues: Any) -> tuple[str, ...]:
    return check_names("queues", "queue", queues)


def check_names(what: str, kind: str, names: Any) -> tuple[str, ...]:
    if isinstance(names, str) or not isinstance(names, Iterable):
        raise UsageError(f"{what} is a list of names, not {show(names)}.")
    return tuple(check_name(kind, name) for name in names)


def check_gates(numbers: Any) -> dict[str, int]:
    if not isinstance(numbers, Mapping):
        raise UsageError(f"Say how many jobs of each key: {{'api/user:7': 3}}, not {show(numbers)}.")
    if len(numbers) > MOST_AT_ONCE:
        raise UsageError(f"{len(numbers):,} keys are too many for one call: at most {MOST_AT_ONCE:,}.")
    return {
        check_name("guard", key): check_int(f"The number of jobs of {show(key)}", number, 0, 100_000)
        for key, number in numbers.items()
    }


def check_lease(kind: str, seconds: Any) -> None:
    """A lease that ends before it begins would be anyone's."""
    check_seconds(kind, seconds, SHORTEST)


def check_seconds_if_given(kind: str, seconds: Any) -> float | None:
    return None if seconds is None else check_seconds(kind, seconds)


def check_priority_if_given(priority: Any) -> int | None:
    return None if priority is None else check_int("priority", priority, -100, 100)


def check_limit(limit: Any, kind: str = "limit") -> None:
    check_int(kind, limit, 1, 1_000_000)


def check_by_hand(reason: Any) -> Held:
    if not isinstance(reason, str) or reason not in BY_HAND:
        names = ", ".join(sorted(BY_HAND))
        raise UsageError(f"Only these reasons are set and ended by hand: {names}; not {show(reason)}.")
    return Held(reason)


def check_state(state: Any) -> State | None:
    if state is None:
        return None
    if not isinstance(state, str) or state not in State.__members__.values():
        raise UsageError(f"A job's state is one of {', '.join(State)}; not {show(state)}.")
    return State(state)


def check_states(states: Any) -> tuple[State, ...]:
    if isinstance(states, str) or not isinstance(states, Iterable):
        raise UsageError(f"States are a list such as {{State.DEAD}}, not {show(states)}.")
    return tuple(dict.fromkeys(found for each in states if (found := check_state(each)) is not None))


def check_held(held: Any) -> Held | None:
    if held is None:
        return None
    if not isinstance(held, str) or held not in Held.__members__.values():
        raise UsageError(f"A job is held for one of {', '.join(Held)}; not {show(held)}.")
    return Held(held)


def check_reason(reason: Any) -> str:
    """For people: any text, made fit. It is kept more than once, so an endless one is cut here."""
    if not isinstance(reason, str):
        raise UsageError(f"A reason is text, not {show(reason)} ({type(reason).__name__}).")
    return storable(reason)


def all_held(finishes: Sequence[Finish], accepted: list[bool]) -> list[bool]:
    """In a caller's transaction a lost claim is no ordinary answer: the rows beside it must roll back."""
    for item, ok in zip(finishes, accepted, strict=True):
        if not ok:
            raise LeaseLost(
                f"Job {item.claim.job_id} is no longer held by token {item.claim.token}: it was rescued and may run "
                "elsewhere. This transaction must roll back."
            )
    return accepted


def check_want_list(wants: Any) -> tuple[Want, ...]:
    copied = _bounded(_all(wants, Want, "Quota is asked for by a Want"), "wants")
    _once_each([(want.name, want.key) for want in copied], "Quota", "ask for all of it in one want")
    return copied


def check_quota_keys(keys: Any) -> tuple[str, ...]:
    if isinstance(keys, str) or not isinstance(keys, Sequence):
        raise UsageError(f"Keys are a list of texts; not {show(keys)}.")
    return _bounded(tuple(check_quota_key(key) for key in keys), "keys")


def check_returns(returns: Any) -> tuple[Return, ...]:
    return _bounded(_all(returns, Return, "Quota is given back by a Return"), "returns")


def check_reports(reports: Any) -> tuple[BreakerReport, ...]:
    copied = _bounded(_all(reports, BreakerReport, "A node tells of a breaker by a BreakerReport"), "reports")
    _once_each([report.guard for report in copied], "The breaker", "a node has one of each name")
    return copied


def _bounded(items: tuple[T, ...], kind: str) -> tuple[T, ...]:
    if len(items) > MOST_AT_ONCE:
        raise UsageError(f"{len(items):,} {kind} are too many for one call: at most {MOST_AT_ONCE:,}.")
    return items


def _once_each(names: Sequence[object], what: str, todo: str) -> None:
    seen = set[object]()
    for name in names:
        if name in seen:
            raise UsageError(f"{what} of {show(name)} is in the list twice: {todo}.")
        seen.add(name)


def check_rate(rate: Any) -> float | None:
    return None if rate is None else check_amount("rate", rate)


def check_open_for(seconds: Any) -> float:
    return check_seconds("open_for", seconds, SHORTEST, DAY)


def check_permits(permits: Any) -> None:
    check_int("permits", permits, 1, 10_000)


def check_fleet_generation(generation: Any) -> None:
    check_int("generation", generation, 0, 2**63 - 2)
