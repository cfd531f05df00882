"""The states of a job, the reasons for which a queued job is held, and the moves that are allowed."""

from __future__ import annotations

from enum import StrEnum


class State(StrEnum):
    QUEUED = "queued"  # ready, or held with a reason
    RUNNING = "running"  # claimed: it has a token and a lease
    SUCCEEDED = "succeeded"
    DEAD = "dead"  # will not run again unless a person says so
    CANCELLED = "cancelled"  # an expired job too, with the reason
    UNKNOWN = "unknown"  # a bare effect nobody can vouch for


class Held(StrEnum):
    """Why a queued job is not ready."""

    ARRIVED = "arrived"  # it has keys, and promote has not looked at it yet
    ORDERING = "ordering"  # a job before it with the same ordering key is not over
    TIME = "time"  # its time has not come
    CONCURRENCY = "concurrency"  # all slots of its concurrency key are taken
    PAUSED = "paused"  # its tenant is paused
    TENANT = "tenant"  # its tenant has a full window of ready jobs
    GUARD = "guard"  # its guard refused
    WAITING = "waiting"  # its saga waits for a signal, an event, another saga or a person
    UNKNOWN_TASK = "unknown_task"  # the worker that met it does not know the task, or only an older form


# What rests in the live table, and what is over and rests in the history.
LIVE = frozenset({State.QUEUED, State.RUNNING, State.DEAD, State.UNKNOWN})
OVER = frozenset({State.SUCCEEDED, State.CANCELLED})
# A job in one of these lets the next of its ordering key go, and frees its unique key.
SETTLED = frozenset({State.SUCCEEDED, State.CANCELLED, State.DEAD})

MOVES: dict[State, frozenset[State]] = {
    State.QUEUED: frozenset({State.RUNNING, State.CANCELLED}),
    State.RUNNING: frozenset(State),
    State.UNKNOWN: frozenset({State.QUEUED, State.SUCCEEDED, State.CANCELLED}),
    State.DEAD: frozenset({State.QUEUED, State.CANCELLED}),
    State.SUCCEEDED: frozenset(),
    State.CANCELLED: frozenset(),
}
