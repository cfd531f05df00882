"""Every metric that Holdfast has. Queues, tasks, guards, groups, sagas and views are declared by programs: so labels are few."""

from __future__ import annotations

from holdfast.observe.metrics.kinds import Counter, Gauge, Histogram

# --- of each process, and so of all of them together ---

JOB_RUNS = Counter(
    "holdfast_job_runs_total",
    "Runs of jobs whose end the store has accepted, by how they ended: succeeded, failed (it runs again), snoozed, cancelled, dead or unknown.",
    ("queue", "task", "outcome"),
)
JOB_WAIT = Histogram(
    "holdfast_job_wait_seconds", "From when a job was due until its run began.", ("queue", "task")
)
JOB_RUN = Histogram("holdfast_job_run_seconds", "How long runs of jobs took.", ("queue", "task"))
CLAIM = Histogram(
    "holdfast_claim_seconds",
    "How long a worker waited for the store when it was given jobs; what had ended is written in the same commit.",
    buckets=(
        0.001,
        0.002,
        0.003,
        0.005,
        0.0075,
        0.01,
        0.015,
        0.02,
        0.03,
        0.05,
        0.075,
        0.1,
        0.2,
        0.5,
        1.0,
        5.0,
    ),
)
LEASES_LOST = Counter(
    "holdfast_job_leases_lost_total", "Runs that were stopped since their lease had ended.", ("task",)
)
FINISH_REFUSED = Counter(
    "holdfast_job_ends_refused_total",
    "Runs whose end the store has refused, since another had the job by then.",
    ("task",),
)
RESCUED = Counter(
    "holdfast_jobs_rescued_total",
    "Jobs that were lost with their worker, by the state that they were given.",
    ("task", "state"),
)
GATED = Counter(
    "holdfast_jobs_gated_total", "Jobs that were claimed, and held since their guard refused them."
)
LOOP_BLOCKED = Counter(
    "holdfast_event_loop_blocked_total", "How often a task has blocked the event loop for long."
)
RUNNING = Gauge("holdfast_worker_running_jobs", "Jobs that run in this worker now.")
LAST_TURN = Gauge(
    "holdfast_worker_last_turn_seconds",
    "The clocks of processes when their event loops turned last, summed: for the supervisor.",
)
PROCESSES = Gauge("holdfast_worker_processes", "Processes of this worker that run.")
POOL = Gauge(
    "holdfast_pool_connections", "Connections to the database, by what they are: used or allowed.", ("what",)
)
POOL_WAITING = Gauge("holdfast_pool_waiting", "Callers that wait for a connection to the database.")
BREAKER_CHANGES = Counter(
    "holdfast_breaker_changes_total",
    "Changes of breakers in this worker, by their new state.",
    ("guard", "state"),
)
LIMITER_WAIT = Histogram(
    "holdfast_limiter_wait_seconds", "How long calls that had to wait for a limiter have waited.", ("guard",)
)
LIMITER_HELD_UP = Counter(
    "holdfast_limiter_held_up_total", "How often the other side has asked a limiter for less.", ("limiter",)
)
PUBLISHED = Counter("holdfast_events_published_total", "Events that this worker has published.")
QUARANTINED = Counter(
    "holdfast_events_quarantined_total", "Events that could not be published, and were set aside.", ("type",)
)
DELIVERED = Counter(
    "holdfast_inbox_deliveries_total", "Deliveries of events that were stored for a group.", ("group",)
)
DUPLICATES = Counter(
    "holdfast_inbox_duplicates_total",
    "Deliveries that a group had had before, and were left out.",
    ("group",),
)
SAGAS_OVER = Counter(
    "holdfast_sagas_ended_total", "Sagas that have ended in this worker, by how.", ("saga", "state")
)
KEYS = Counter(
    "holdfast_idempotency_requests_total",
    "Requests with a key that did not run: answered again (replayed), refused for another body (mismatched), or told to wait (busy).",
    ("what",),
)
LIMITED = Counter("holdfast_http_requests_limited_total", "Requests that were above a limit.", ("limit",))

# --- of the whole fleet, the same wherever it is asked: take the max, never the sum ---

QUEUE_READY = Gauge("holdfast_queue_ready_jobs", "Jobs that could run now.", ("queue",))
QUEUE_HELD = Gauge(
    "holdfast_queue_held_jobs", "Queued jobs that cannot run yet, by the reason.", ("queue", "reason")
)
QUEUE_RUNNING = Gauge("holdfast_queue_running_jobs", "Jobs that run.", ("queue",))
QUEUE_DEAD = Gauge(
    "holdfast_queue_dead_jobs", "Jobs that will not run again unless a person says so.", ("queue",)
)
QUEUE_UNKNOWN = Gauge(
    "holdfast_queue_unknown_jobs", "Jobs that wait for a person to say what was done.", ("queue",)
)
QUEUE_OLDEST = Gauge(
    "holdfast_queue_oldest_ready_seconds",
    "For how long the oldest job that could run has waited.",
    ("queue",),
)
QUEUE_PAUSED = Gauge("holdfast_queue_paused", "1 for each queue that is paused.", ("queue",))
WORKERS = Gauge("holdfast_workers", "Worker processes that are alive.")
OUTBOX_WAITING = Gauge("holdfast_outbox_waiting_events", "Events that wait to be published, up to a bound.")
OUTBOX_OLDEST = Gauge("holdfast_outbox_oldest_seconds", "For how long the oldest of them has waited.")
OUTBOX_QUARANTINED = Gauge("holdfast_outbox_quarantined_events", "Events that were set aside.")
VIEW_LAG = Gauge("holdfast_view_lag_seconds", "How far a view is behind.", ("view",))
VIEW_EVENTS = Gauge("holdfast_view_lag_events", "How many events a view is behind.", ("view",))
VIEW_ASIDE = Gauge("holdfast_view_aside_events", "Events that a view has set aside.", ("view",))
SAGAS = Gauge(
    "holdfast_sagas", "Sagas by their state; those that ended long ago are forgotten.", ("saga", "state")
)
GUARD_NODES = Gauge(
    "holdfast_guard_processes",
    "Processes by the state that they have a guard's breaker in.",
    ("guard", "state"),
)
GUARD_OPEN = Gauge(
    "holdfast_guard_open", "1 when a guard's breaker is open for the fleet, or held open.", ("guard",)
)
GUARD_SLOWED = Gauge(
    "holdfast_guard_slowed_keys", "Keys of a limiter for which the other side has asked for less.", ("guard",)
)
FLEET_AGE = Gauge("holdfast_fleet_figures_age_seconds", "How old the figures of the fleet are.")
FLEET_UP = Gauge(
    "holdfast_fleet_figures_up",
    "1 when the database has given the figures of the fleet; else they are missing.",
)
METRICS_LOST = Counter(
    "holdfast_metrics_lost_total", "What was not counted under its name since a process has too many numbers."
)
