"""Checks the arguments of every store verb, once for all stores, before any database sees them."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial, wraps
from typing import Any, TypeVar

from holdfast.kernel.names import check_name, check_seconds
from holdfast.store import alert_checks as al
from holdfast.store import blob_checks as b
from holdfast.store import cache_checks as cc
from holdfast.store import checks as c
from holdfast.store import event_checks as e
from holdfast.store import saga_checks as s
from holdfast.store import view_checks as v
from holdfast.store import visit_checks as vi
from holdfast.store import worker_checks as w
from holdfast.store.cache_ports import SharedCache
from holdfast.store.fleet_ports import SharedGuards
from holdfast.store.visit_ports import SharedVisits

T = TypeVar("T")
Check = Callable[[Any], object]  # raises, or gives the value to go on with; None: as it was given

_limit, _lease = c.check_limit, partial(c.check_lease, "lease")
_name, _if_given = partial(partial, check_name), partial(partial, c.check_if_given)
_worker, _guard = _name("worker"), _name("guard")
_view = _name("view")
_saga = _name("saga")

RULES: dict[str, dict[str, dict[str, Check]]] = {
    "Jobs": {
        "enqueue": {"jobs": c.check_jobs, "again": partial(c.check_flag, "again")},
        "get": {"job_id": c.check_id},
        "entries": {"job_id": c.check_id},
        "starting": {"prefix": c.check_prefix, "limit": _limit},
        "find": {
            "state": c.check_state,
            "queue": _if_given("queue"),
            "task": _if_given("task"),
            "held": c.check_held,
            "tenant": _if_given("tenant"),
            "correlation_id": _if_given("correlation_id"),
            "before": c.check_id_if_given,
            "limit": _limit,
        },
        "of_unique": {"keys": partial(c.check_names, "keys", "unique"), "each": _limit},
        "of_tenant": {
            "tenant": _name("tenant"),
            "states": c.check_states,
            "before": c.check_id_if_given,
            "limit": _limit,
        },
        "cancel": {
            "job_id": c.check_id,
            "reason": c.check_reason,
            "running": partial(c.check_flag, "running"),
        },
        "end": {
            "job_id": c.check_id,
            "reason": c.check_reason,
            "running": partial(c.check_flag, "running"),
        },
        "move": {
            "job_id": c.check_id,
            "at": partial(c.check_seconds_if_given, "at"),
            "delay": partial(c.check_seconds_if_given, "delay"),
            "priority": c.check_priority_if_given,
        },
    },
    "Claims": {
        "claim": {"wants": c.check_wants, "lease": _lease, "worker": _worker},
        "claim_suspect": {"queues": c.check_queues, "lease": _lease, "worker": _worker},
        "renew": {"claims": c.check_each_claim_once, "lease": _lease},
        "finish": {"finishes": c.check_finishes, "parks": partial(c.check_flag, "parks")},
        "finish_and_claim": {
            "finishes": c.check_finishes,
            "wants": c.check_wants,
            "lease": _lease,
            "worker": _worker,
        },
        "release": {"claims": c.check_claims},
        "held_by": {"worker": _worker},
        "report": {"claim": c.check_claim, "progress": c.check_progress, "note": c.check_note},
        "settle": {"job_id": c.check_id, "token": c.check_token},
        "rescue": {"limit": _limit},
        "rescue_worker": {"worker": _worker},
    },
    "Dead": {
        "replay": {"job_ids": c.check_ids, "actor": _name("actor"), "args": c.check_args},
        "discard": {"job_ids": c.check_ids, "actor": _name("actor"), "reason": c.check_reason},
    },
    "Steps": {
        "write": {"claim": c.check_claim, "step": c.check_step},
        "load": {"job_id": c.check_id, "generation": c.check_generation},
        "undecided": {"job_ids": c.check_ids},
        "resolve": {
            "job_id": c.check_id,
            "actor": _name("actor"),
            "done": partial(c.check_flag, "done"),
            "effect": _if_given("effect"),
            "result": c.check_result,
            "token": c.check_token_if_given,
        },
        "to_look": {
            "tasks": partial(c.check_names, "tasks", "task"),
            "queues": c.check_queues_if_given,
            "lease": _lease,
            "limit": _limit,
        },
        "looked": {
            "job_id": c.check_id,
            "token": c.check_token,
            "after": partial(c.check_seconds_if_given, "after"),
            "counted": partial(c.check_flag, "counted"),
        },
    },
    "Holds": {
        "promote": {"window": partial(c.check_limit, kind="window"), "limit": _limit},
        "explained": {"records": c.check_records},
        "hold": {"claims": c.check_claims, "reason": c.check_by_hand},
        "unhold": {
            "reason": c.check_by_hand,
            "queue": _if_given("queue"),
            "tasks": c.check_tasks,
            "guard": _if_given("guard"),
            "limit": _limit,
        },
        "gated": {"after": _if_given("guard"), "limit": _limit},
        "gates": {"after": _if_given("guard"), "limit": _limit},
        "open_gates": {"numbers": c.check_gates},
        "shut_gates": {
            "queues": c.check_queues,
            "keys": partial(c.check_names, "keys", "guard"),
            "guards": partial(c.check_names, "guards", "guard"),
            "tasks": partial(c.check_names, "tasks", "task"),
            "window": partial(c.check_limit, kind="window"),
            "limit": _limit,
        },
        "expire": {"limit": _limit},
        "end_expired": {"limit": _limit},
        "repair": {"limit": _limit},
    },
    "Wakeups": {"wait": {"queues": c.check_queues, "timeout": partial(check_seconds, "timeout")}},
    "Queues": {
        "pause": {"queue": _name("queue"), "by": _name("by")},
        "resume": {"queue": _name("queue"), "by": _name("by")},
        "waits": {"limit": _limit},
    },
    "Tenants": {
        "pause": {"key": _name("tenant"), "reason": c.check_reason, "by": _name("by")},
        "resume": {"key": _name("tenant"), "by": _name("by")},
    },
    "History": {"prune": {"keep": partial(check_seconds, "keep")}},
    "Leases": {
        "acquire": {
            "name": _name("lease"),
            "owner": _name("owner"),
            "ttl": partial(c.check_lease, "ttl"),
        },
        "renew": {"lease": c.check_held_lease, "ttl": partial(c.check_lease, "ttl")},
        "release": {"lease": c.check_held_lease},
        "get": {"name": _name("lease")},
        "find": {"limit": _limit},
        "steal": {"name": _name("lease"), "actor": _name("actor"), "reason": c.check_reason},
        "prune": {"limit": _limit},
    },
    "Sessions": {"end_stuck": {"after": partial(check_seconds, "after")}},
    "Workers": {
        "register": {"worker": w.check_new_worker, "ttl": partial(c.check_lease, "ttl")},
        "beat": {
            "name": _worker,
            "ttl": partial(c.check_lease, "ttl"),
            "draining": partial(c.check_flag, "draining"),
        },
        "leave": {"name": _worker},
        "bury": {"name": _worker},
        "charge": {"rescued": w.check_rescued},
        "find": {"limit": _limit},
        "prune": {"keep": partial(check_seconds, "keep"), "limit": _limit},
    },
    "Schedules": {
        "begin": {"schedule": _name("schedule")},
        "tick": {
            "schedule": _name("schedule"),
            "nominal": partial(check_seconds, "nominal"),
            "job": c.check_job,
        },
        "last": {"schedule": _name("schedule")},
        "reset": {"schedule": _name("schedule"), "actor": _name("actor")},
    },
    "Views": {
        "begin": {"view": _view, "start": v.check_start, "history": partial(c.check_flag, "history")},
        "checkpoints": {"view": _if_given("view"), "limit": _limit},
        "get": {"view": _view, "key": _name("key")},
        "find": {"view": _view, "prefix": v.check_prefix, "after": v.check_after, "limit": _limit},
        "load": {"view": _view, "generation": v.check_generation, "keys": v.check_keys},
        "apply": {"lease": c.check_held_lease, "batch": v.check_batch},
        "begin_rebuild": {"view": _view, "start": v.check_start, "actor": _name("actor")},
        "switch": {"lease": c.check_held_lease, "view": _view, "generation": v.check_generation},
        "aside": {
            "view": _view,
            "generation": v.check_generation_if_given,
            "key": _if_given("key"),
            "after": v.check_start,
            "limit": _limit,
        },
        "count_aside": {"view": _view, "generation": v.check_generation_if_given, "limit": _limit},
        "forget": {"view": _view, "actor": _name("actor")},
        "prune": {"limit": _limit},
    },
    "Versions": {
        "hold": {"key": _name("key")},
        "advance": {"reader": _name("reader"), "key": _name("key"), "version": v.check_newer},
        "seen": {"reader": _name("reader"), "key": _name("key")},
        "prune": {"keep": partial(check_seconds, "keep"), "limit": _limit},
    },
    "Keys": {
        "begin": {
            "scope": c.check_scope,
            "key": _name("key"),
            "fingerprint": _name("fingerprint"),
            "lease": _lease,
        },
        "enter": {
            "scope": c.check_scope,
            "key": _name("key"),
            "fingerprint": _name("fingerprint"),
            "lease": _lease,
            "wait": partial(check_seconds, "wait"),
        },
        "answer": {
            "claim": c.check_key_claim,
            "response": partial(c.check_text, "response"),
            "keep": partial(check_seconds, "keep"),
        },
        "finish": {
            "claim": c.check_key_claim,
            "response": partial(c.check_text, "response"),
            "keep": partial(check_seconds, "keep"),
        },
        "abandon": {"claim": c.check_key_claim},
        "prune": {"limit": _limit},
    },
    "Alerts": {
        "say": {
            "kind": _name("kind"),
            "cause": _name("cause"),
            "due": partial(c.check_seconds_if_given, "due"),
            "expires": partial(c.check_seconds_if_given, "expires"),
        },
        "unsay": {"kind": _name("kind"), "cause": _name("cause")},
        "look": {"patience": partial(check_seconds, "patience")},
        "standing": {"lease": e.check_lease_if_given},
        "write": {"alerts": al.check_alerts},
        "find": {"limit": _limit},
        "prune": {"keep": partial(check_seconds, "keep"), "limit": _limit},
    },
    "Flags": {
        "set": {
            "name": _name("flag"),
            "value": partial(c.check_flag, "value"),
            "tenant": _if_given("tenant"),
            "actor": _name("actor"),
            "reason": c.check_reason,
        },
        "unset": {
            "name": _name("flag"),
            "tenant": _if_given("tenant"),
            "actor": _name("actor"),
            "reason": c.check_reason,
        },
    },
    "Visits": {
        "begin": {
            "visit": vi.check_new_visit,
            "idle": partial(check_seconds, "idle"),
            "last": partial(check_seconds, "last"),
            "replaces": _if_given("visit"),
        },
        "get": {"visit_id": _name("visit")},
        "touch": {"visit_id": _name("visit"), "idle": partial(check_seconds, "idle")},
        "write": {"visit_id": _name("visit"), "data": vi.check_data, "version": v.check_newer},
        "end": {"visit_id": _name("visit")},
        "end_of": {
            "principal": _name("principal"),
            "name": _if_given("visit"),
            "besides": _if_given("visit"),
        },
        "find": {"principal": _name("principal"), "limit": _limit},
        "secret": {"name": _name("secret"), "candidate": partial(c.check_text, "candidate")},
        "prune": {"limit": _limit},
    },
    "Guards": {
        "take": {"wants": c.check_want_list},
        "ahead": {"name": _guard, "keys": c.check_quota_keys, "seconds": partial(check_seconds, "seconds")},
        "give_back": {"returns": c.check_returns},
        "slow": {
            "name": _guard,
            "key": c.check_quota_key,
            "rate": c.check_rate,
            "pause": partial(check_seconds, "pause"),
            "version": c.check_version,
            "in_row": c.check_in_row,
        },
        "calm": {"name": _guard, "key": c.check_quota_key, "in_row": c.check_in_row},
        "look": {"name": _guard, "key": c.check_quota_key},
        "sped": {
            "name": _guard,
            "key": c.check_quota_key,
            "rate": c.check_rate,
            "version": c.check_version,
        },
        "report": {"node": _name("node"), "reports": c.check_reports, "ttl": partial(c.check_lease, "ttl")},
        "open_fleet": {
            "name": _guard,
            "generation": c.check_fleet_generation,
            "open_for": c.check_open_for,
        },
        "close_fleet": {"name": _guard, "generation": c.check_fleet_generation},
        "probe": {"name": _guard, "node": _name("node"), "permits": c.check_permits, "lease": _lease},
        "probed": {"probe": c.check_probe},
        "hold": {"name": _guard, "state": c.check_hold, "actor": _name("actor")},
        "let_go": {"name": _guard, "actor": _name("actor")},
        "reset": {"name": _guard, "actor": _name("actor")},
        "find": {"limit": _limit},
        "prune": {"limit": _limit},
    },
    "Outbox": {
        "emit": {"events": e.check_events, "again": partial(c.check_flag, "again")},
        "waiting": {"lease": c.check_held_lease, "limit": _limit},
        "stamp": {"lease": c.check_held_lease, "ids": e.check_event_ids},
        "failed": {
            "lease": c.check_held_lease,
            "event_id": c.check_id,
            "error": e.check_error,
            "rest": e.check_rest,
            "blocks": partial(c.check_flag, "blocks"),
        },
        "log": {
            "after": e.check_position,
            "before": e.check_position_if_given,
            "since": e.check_since,
            "limit": _limit,
        },
        "get": {"event_id": c.check_id},
        "find": {
            "state": e.check_outbox_state,
            "type": _if_given("type"),
            "key": _if_given("key"),
            "correlation_id": _if_given("correlation_id"),
            "limit": _limit,
        },
        "version": {"key": _name("key")},
        "requeue": {"ids": e.check_event_ids, "actor": _name("actor")},
        "drop": {"ids": e.check_event_ids, "actor": _name("actor"), "reason": c.check_reason},
        "prune": {"keep": partial(check_seconds, "keep"), "limit": _limit},
    },
    "Inbox": {
        "subscribe": {"group": _name("group"), "from_start": partial(c.check_flag, "from_start")},
        "read": {"group": _name("group"), "after": e.check_position, "limit": _limit},
        "unsubscribe": {"group": _name("group"), "actor": _name("actor")},
        "deliver": {
            "group": _name("group"),
            "deliveries": e.check_deliveries,
            "upto": e.check_position_if_given,
            "seen": e.check_seen,
            "lease": e.check_lease_if_given,
        },
        "handled": {"group": _name("group"), "event_id": e.check_event_id},
        "job_of": {"event_id": e.check_event_id},
        "prune": {"keep": partial(check_seconds, "keep"), "limit": _limit},
    },
    "Groups": {
        "announce": {
            "group": _name("group"),
            "member": _name("member"),
            "hears": e.check_hears,
            "ttl": partial(c.check_lease, "ttl"),
        },
        "announced": {"group": _name("group")},
        "waiting": {"tasks": e.check_task_names, "limit": _limit},
        "lag": {"group": _name("group"), "tasks": e.check_task_names, "limit": _limit},
    },
    "Strays": {
        "keep": {
            "transport": _name("transport"),
            "group": _name("group"),
            "messages": e.check_new_strays,
        },
        "find": {"type": _if_given("type"), "before": e.check_stray_id_if_given, "limit": _limit},
        "get": {"stray_id": e.check_stray_id},
        "drop": {"ids": e.check_stray_ids, "actor": _name("actor"), "reason": c.check_reason},
    },
    "Blobs": {
        "add": {"blob": b.check_blob},
        "get": {"name": partial(b.check_path, "name")},
        "find": {
            "prefix": partial(b.check_prefix, "prefix"),
            "after": partial(b.check_prefix, "after"),
            "state": b.check_state_if_given,
            "limit": _limit,
        },
        "usage": {"prefix": partial(b.check_prefix, "prefix")},
        "change": {
            "name": partial(b.check_path, "name"),
            "to": b.check_state,
            "of": b.check_states,
            "reason": b.check_reason_if_given,
        },
        "move": {
            "name": partial(b.check_path, "name"),
            "source": partial(b.check_path, "object"),
            "target": partial(b.check_path, "object"),
        },
        "settle": {"row": b.check_row},
        "forget": {"row": b.check_row},
        "unsettled": {"older": partial(check_seconds, "older"), "limit": _limit},
        "known": {"objects": b.check_objects},
        "purge": {"keep": partial(check_seconds, "keep"), "limit": _limit},
    },
    "Cache": {
        "get": {"keys": cc.check_keys},
        "begin": {"key": _name("key"), "tags": cc.check_tags, "lease": _lease, "why": cc.check_why},
        "renew": {"load": cc.check_load, "lease": _lease},
        "put": {
            "load": cc.check_load,
            "value": cc.check_value,
            "fresh": partial(check_seconds, "fresh"),
            "stale": cc.check_stale,
        },
        "abandon": {"load": cc.check_load, "rest": partial(check_seconds, "rest")},
        "invalidate": {"keys": cc.check_keys},
        "invalidate_tags": {"tags": cc.check_tags},
        "find": {"after": _if_given("key"), "limit": _limit},
        "prune": {"limit": _limit},
    },
    "Sagas": {
        "start": {"sagas": s.check_new},
        "get": {"saga_id": _saga},
        "of_job": {"job_id": c.check_id},
        "states": {"job_ids": c.check_ids},
        "find": {
            "state": s.check_state,
            "name": _if_given("saga"),
            "parent": _if_given("saga"),
            "correlation_id": _if_given("correlation_id"),
            "before": _if_given("saga"),
            "limit": _limit,
        },
        "signal": {"saga_id": _saga, "name": _name("signal"), "value": s.check_value},
        "signals": {"saga_id": _saga},
        "write": {
            "claim": c.check_claim,
            "step": s.check_step_if_given,
            "move": s.check_move,
            "rest": s.check_rest,
        },
        "listen": {"claim": c.check_claim, "step": c.check_step, "wait": s.check_wait},
        "hear": {"lease": c.check_held_lease, "limit": _limit, "portion": _limit},
        "cancel": {
            "saga_id": _saga,
            "actor": _name("actor"),
            "reason": c.check_reason,
            "done_too": partial(c.check_flag, "done_too"),
        },
        "retry": {"saga_id": _saga, "actor": _name("actor")},
        "settle": {
            "saga_id": _saga,
            "step": _name("step"),
            "done": partial(c.check_flag, "done"),
            "result": c.check_result,
            "actor": _name("actor"),
        },
        "park_lost": {"limit": _limit},
        "prune": {"keep": partial(check_seconds, "keep"), "limit": _limit},
    },
    "Audit": {
        "write": {"entry": c.check_entry},
        "find": {"subject": _if_given("subject"), "limit": _limit},
    },
    "Diagnosis": {"examine": {"processes": partial(c.check_limit, kind="processes")}},
}

SHARED = [verb for verb in RULES["Guards"] if verb in vars(SharedGuards)]
SHARED_CACHE = [verb for verb in RULES["Cache"] if verb in vars(SharedCache)]
SHARED_VISITS = [verb for verb in RULES["Visits"] if verb in vars(SharedVisits)]


def checked(subject: type[T]) -> type[T]:
    """A store's class for one of the ports: its verbs check what they are given first."""
    return _checked(subject, RULES[subject.__name__])


def checked_shared(subject: type[T]) -> type[T]:
    """The same for a class that has only the shared part of `Guards`, whatever it is called."""
    return _checked(subject, {verb: RULES["Guards"][verb] for verb in SHARED})


def checked_cache(subject: type[T]) -> type[T]:
    """The same for a class that has only the shared part of `Cache`."""
    return _checked(subject, {verb: RULES["Cache"][verb] for verb in SHARED_CACHE})


def checked_visits(subject: type[T]) -> type[T]:
    """The same for a class that has only the shared part of `Visits`."""
    return _checked(subject, {verb: RULES["Visits"][verb] for verb in SHARED_VISITS})


def _checked(subject: type[T], verbs: dict[str, dict[str, Check]]) -> type[T]:
    for verb, rules in verbs.items():
        setattr(subject, verb, _checking(getattr(subject, verb), rules))
    return subject


def _checking(verb: Callable[..., Any], rules: dict[str, Check]) -> Callable[..., Any]:
    names = list(inspect.signature(verb).parameters)[1:]
    placed = [(names.index(name), name, check) for name, check in rules.items()]

    @wraps(verb)
    async def checking(self: object, *given: Any, **named: Any) -> Any:
        values = list(given)
        for place, name, check in placed:
            if place < len(values):
                values[place] = _cleaned(check, values[place])
            elif name in named:
                named[name] = _cleaned(check, named[name])
        return await verb(self, *values, **named)

    return checking


def _cleaned(check: Check, value: Any) -> Any:
    cleaned = check(value)
    return value if cleaned is None else cleaned
