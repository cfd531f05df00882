"""The one list of everything that is noted: its name, its fields, its level in the log, and its sentence.

`tools/check_notes.py` compares it with the source, both ways. A field with `?` behind it is not always given. A part of a
sentence in [brackets] is left out when a field in it is empty.
"""

from __future__ import annotations

from logging import DEBUG, ERROR, INFO, WARNING

import msgspec


class Entry(msgspec.Struct, frozen=True):
    name: str  # subject.past_tense
    fields: tuple[str, ...]  # without those that are not always given
    optional: tuple[str, ...]
    level: int
    sentence: str
    logger: str


def find(name: str) -> Entry | None:
    return NOTES.get(name)


def _entry(logger: str, name: str, fields: str, level: int, sentence: str) -> Entry:
    names = fields.split()
    always = tuple(each for each in names if not each.endswith("?"))
    return Entry(
        name, always, tuple(each[:-1] for each in names if each.endswith("?")), level, sentence, logger
    )


_JOBS = (
    ("job.began", "job task queue attempt", DEBUG, "job {job} of {task} begins, attempt {attempt}"),
    ("job.succeeded", "job task queue attempt", DEBUG, "job {job} of {task} has succeeded, attempt {attempt}"),
    ("job.failed", "job task queue attempt attempts after error", WARNING, "job {job} of {task} failed, attempt {attempt} of {attempts}; it runs again in {after} s: {error}"),
    ("job.snoozed", "job task queue attempt after reason", DEBUG, "job {job} of {task} is put off for {after} s[: {reason}]"),
    ("job.cancelled", "job task queue attempt reason", INFO, "job {job} of {task} is cancelled[: {reason}]"),
    ("job.died", "job task queue? attempt? error", ERROR, "job {job} of {task} is dead: {error}"),
    ("job.failed_after_completion", "job task error", ERROR, "job {job} of {task} has succeeded, and its function failed after that: {error}"),
    ("job.finish_refused", "job task token", WARNING, "job {job} of {task} ended here, but token {token} is no longer its newest: its end is refused"),
    ("job.gated", "guards jobs", DEBUG, "{jobs} jobs are held: their guard refuses them ({guards})"),
    ("job.lease_lost", "job task token why", WARNING, "the lease of job {job} of {task} ended, and this run is stopped: {why}"),
    ("job.rescued", "job task worker state", WARNING, "job {job} of {task} was lost with worker {worker}, and is {state} now"),
    ("job.unknown", "job task queue attempt reason", ERROR, "job {job} of {task} is unknown, and waits for a person: {reason}"),
    ("look.decided", "job task effect done outcome", INFO, "effect {effect} of job {job} of {task} was looked up, done: {done}; the job is {outcome}"),
    ("look.in_vain", "job task why", WARNING, "unknown effects of job {job} of {task} could not be looked up: {why}"),
    ("job.unknown_task", "job task why", WARNING, "job {job} waits for a worker that knows it: {why}"),
    ("executor.failed", "job task error", ERROR, "the end of job {job} of {task} could not be judged: {error}"),
    ("executor.cannot_settle", "job error", WARNING, "the store could not say whether job {job} is over, and is asked again: {error}"),
    ("on_dead.failed", "job task error", ERROR, "an on_dead handler failed for job {job} of {task}: {error}"),
    ("on_unknown.failed", "job task error", ERROR, "an on_unknown handler failed for job {job} of {task}: {error}"),
    ("on_cancelled.failed", "job task error", ERROR, "an on_cancelled handler failed for job {job} of {task}: {error}"),
    ("hook.failed", "hook error", ERROR, "the hook {hook} failed: {error}"),
    ("gate.failed", "job task error", WARNING, "a guard could not be asked for job {job} of {task}: {error}"),
    ("steps.not_loaded", "job error", WARNING, "the steps of job {job} could not be read yet: {error}"),
    ("steps.not_written", "job error", WARNING, "a step of job {job} could not be written yet: {error}"),
)  # fmt: skip
_WORKER = (
    ("worker.started", "worker queues", INFO, "worker {worker} takes jobs from {queues}"),
    ("worker.claimed", "worker jobs seconds", DEBUG, "worker {worker} was given {jobs} jobs in {seconds} s"),
    ("worker.leaving", "signal", INFO, "{signal}: no further claims; running jobs may end. Once more leaves at once."),
    ("worker.stopped", "worker", INFO, "worker {worker} has left"),
    ("worker.trouble", "worker? error", ERROR, "the store cannot be reached: {error}"),
    ("worker.left_running", "worker tasks", WARNING, "worker {worker} leaves while runs go on that did not stop: {tasks}"),
    ("worker.no_wakeups", "error", WARNING, "this worker could not wait for wake-ups, and polls: {error}"),
    ("worker.release_failed", "number error", WARNING, "{number} jobs could not be put back yet: {error}"),
    ("worker.hold_failed", "jobs error", WARNING, "{jobs} jobs could not be held, and are put back: {error}"),
    ("worker.room_kept", "worker error", WARNING, "worker {worker} could not give back its right to run a suspect alone: {error}"),
    ("worker.strays_returned", "worker number", WARNING, "worker {worker} put back {number} jobs that it was given without hearing of it"),
    ("worker.not_shown", "worker error", WARNING, "[worker {worker}: ]its row for `holdfast workers` could not be written: {error}"),
    ("renewer.failed", "error", ERROR, "leases were not renewed: {error}"),
    ("loop.blocked", "task seconds", WARNING, "task {task} has blocked the event loop for {seconds} s; make it a plain `def`, or await"),
)  # fmt: skip
_SUPERVISOR = (
    ("supervisor.leaving", "signal processes", INFO, "{signal}: {processes} processes are asked to leave"),
    ("child.not_started", "error", ERROR, "no process could be started: {error}"),
    ("child.died", "worker how", ERROR, "worker {worker} died ({how})"),
    ("child.killed", "process grace", WARNING, "process {process} did not leave in {grace} s and is ended"),
    ("child.jobs_put_back", "worker number", INFO, "worker {worker}: {number} of its jobs were put back"),
    ("child.jobs_kept", "worker error", WARNING, "worker {worker}: its jobs could not be put back yet: {error}"),
    ("child.jobs_left", "worker", WARNING, "what worker {worker} may have held was not put back: the store does not answer"),
)  # fmt: skip
_UPKEEP = (
    ("upkeep.failed", "duty error", WARNING, "upkeep failed ({duty}): {error}"),
    ("scheduler.failed", "schedule error", ERROR, "the scheduler failed (schedule: {schedule}): {error}"),
    ("schedule.fired", "schedule nominal job", DEBUG, "schedule {schedule} has enqueued job {job} for {nominal}"),
    ("schedule.passed_over", "schedule nominal why", WARNING, "schedule {schedule} was passed over at {nominal}: {why}"),
    ("releases.failed", "error", WARNING, "held jobs were not let go: {error}"),
    ("history.pruned", "jobs", DEBUG, "{jobs} jobs that were over for long are forgotten"),
    ("history.busy", "day error", WARNING, "the table of finished jobs of {day} is busy: {error}"),
    ("promote.failed", "jobs error", ERROR, "held jobs could not be made ready ({jobs}): {error}"),
    ("rescue.passed_over", "worker jobs error", WARNING, "{jobs} jobs of dead workers could not be put back yet[, of worker {worker}]: {error}"),
    ("claim.answer_lost", "worker error", WARNING, "worker {worker} did not hear what it was given: {error}"),
)  # fmt: skip
_GUARDS = (
    ("breaker.opened", "breaker generation held", WARNING, "breaker {breaker} is open"),
    ("breaker.half_opened", "breaker generation held", INFO, "breaker {breaker} is half open: it tries a few calls"),
    ("breaker.closed", "breaker generation held", INFO, "breaker {breaker} is closed"),
    ("breaker.unheard", "breaker error", WARNING, "other processes could not be told of breaker {breaker}: {error}"),
    ("limiter.held_up", "limiter key why paused_for slowed_to full more", WARNING, "limiter {limiter}[ ({key})]: {why}; nobody calls for {paused_for} s[, and then {slowed_to} of {full} a second][; so {more} times more since that was told last]"),
    ("limiter.slowed", "limiter key rate full paused_for", DEBUG, "limiter {limiter}[ ({key})] has {rate} of {full} calls a second, after a pause of {paused_for} s"),
    ("limiter.rested", "limiter key paused_for", DEBUG, "limiter {limiter}[ ({key})] rests for {paused_for} s: nothing is left of the other side's quota"),
    ("limiter.waited", "guard seconds", DEBUG, "a call of guard {guard} has waited {seconds} s for its limiter"),
    ("limiter.full", "limiter keys key", WARNING, "limiter {limiter} knows {keys} keys, and refuses another: {key}"),
    ("limiter.unheard", "limiter key error", WARNING, "other processes could not be told of limiter {limiter}: {error}[; key: {key}]"),
    ("guards.alone", "node processes error", WARNING, "guards go on by themselves, each of {processes} processes with its share: {error}"),
    ("guards.together", "node", INFO, "guards share their state again"),
    ("guards.slower", "limiter rate burst shared", WARNING, "limiter {limiter} gets {shared} of its {rate} calls a second: burst={burst} is too small to be shared, raise it"),
    ("guards.late", "limiter key seconds", DEBUG, "the shared quota of limiter {limiter} came {seconds} s late[; key: {key}]"),
    ("guards.not_given_back", "node error", DEBUG, "quota that was left over could not be given back: {error}"),
    ("guards.uncounted", "node error", WARNING, "the processes that share guards could not be counted: {error}"),
    ("guard.gave_up", "guard reason error", WARNING, "guard {guard} does not try again, {reason}: {error}"),
    ("guard.retried", "guard attempt wait fault error", DEBUG, "guard {guard} tries again in {wait} s, after attempt {attempt}: {error}"),
    ("classifier.failed", "error failure", ERROR, "a classifier of errors failed on {error}: {failure}"),
    ("retry_after.ignored", "value", WARNING, "a Retry-After header cannot be read: {value}"),
    ("deadline.ignored", "value", WARNING, "a deadline header cannot be read: {value}"),
    ("flags.not_read", "error", WARNING, "flags could not be read, and those that were known count on: {error}"),
    ("lock.lost", "lock", WARNING, "the lock {lock} was lost"),
    ("lock.not_renewed", "lock error", WARNING, "the lock {lock} was not renewed: {error}"),
    ("lock.not_released", "lock error", WARNING, "the lock {lock} could not be given back, and ends with its lease: {error}"),
    ("leading.lost", "service", WARNING, "the lease of {service} was lost: another process may have it"),
    ("leading.not_renewed", "service error", WARNING, "the lease of {service} was not renewed: {error}"),
    ("leading.not_released", "service error", WARNING, "the lease of {service} could not be given back, and ends by itself: {error}"),
)  # fmt: skip
_EVENTS = (
    ("relay.started", "relay database", INFO, "{relay} publishes events of {database}"),
    ("relay.leaving", "signal", INFO, "{signal}: the relay leaves"),
    ("relay.failed", "error", ERROR, "events are not published: {error}"),
    ("relay.published", "count", DEBUG, "{count} events are published"),
    ("relay.lag", "waiting oldest quarantined position rate", DEBUG, "{waiting} events wait to be published, {quarantined} are set aside"),
    ("relay.event_failed", "event type key error", WARNING, "event {event} ({type}[, key: {key}]) could not be published yet: {error}"),
    ("relay.quarantined", "event type key error", ERROR, "event {event} ({type}[, key: {key}]) could not be published, and is set aside: {error}"),
    ("relay.left_to_others", "brokers", WARNING, "events of this database go through a broker, {brokers}, which this program does not have: it leaves them to those who do, until holdfast outbox forget-broker says otherwise"),
    ("redrive.failed", "event type error", ERROR, "event {event} ({type}) could not be published again: {error}"),
    ("redrive.done", "count position", INFO, "{count} events were published again, up to position {position}"),
    ("consumer.failed", "error", ERROR, "events are not read for a group: {error}"),
    ("group.delivered", "group count again", DEBUG, "{count} events are delivered to the group {group}, {again} had been before"),
    ("group.unknown_type", "group stray type", WARNING, "nobody here knows the type {type}: such messages are kept as strays of the group {group}, the first is {stray}"),
    ("group.stray", "group stray error", WARNING, "a message for the group {group} was not understood, and is kept as stray {stray}: {error}"),
    ("events.pruned", "events deliveries", DEBUG, "{events} events and {deliveries} deliveries that nobody needs any more are forgotten"),
    ("transport.group_lost", "transport topic? group error", WARNING, "{transport} has lost the group {group}, which begins again with all that there is: {error}"),
    ("transport.stream_made", "transport topic", INFO, "{transport} has a new stream for the topic {topic}"),
    ("transport.not_closed", "transport error", WARNING, "the connection to {transport} could not be closed: {error}"),
)  # fmt: skip
_SAGAS = (
    ("saga.over", "saga name state", DEBUG, "saga {saga} of {name} is over: {state}"),
    ("saga.undoing", "saga name error", WARNING, "saga {saga} of {name} is being undone: {error}"),
    ("saga.step_undone", "saga name step", DEBUG, "saga {saga} of {name} has undone its step {step}"),
    ("saga.stuck", "saga name state error", ERROR, "saga {saga} of {name} stands still ({state}): {error}"),
    ("saga.parked", "saga", ERROR, "saga {saga} is parked: its job will not carry it any further"),
    ("saga.module_broken", "module error", ERROR, "the module {module}, which a saga needs, cannot be imported: {error}"),
    ("sagas.failed", "error", ERROR, "events are not handed to sagas: {error}"),
    ("saga.not_read", "job error", WARNING, "the saga of job {job} could not be read yet: {error}"),
    ("saga.not_moved", "job error", WARNING, "the saga of job {job} could not be written yet: {error}"),
    ("saga.not_heard", "job error", WARNING, "the saga of job {job} could not begin to wait for an event yet: {error}"),
    ("saga.not_started", "job error", WARNING, "a child of a saga, job {job}, could not be started yet: {error}"),
    ("saga.not_cancelled", "job error", WARNING, "a child of a saga, {job}, could not be cancelled yet: {error}"),
)  # fmt: skip
_VIEWS = (
    ("view.failed", "error", ERROR, "a view is not kept up to date: {error}"),
    ("view.applied", "view generation position rows", DEBUG, "view {view} is at position {position}: {rows} rows are written"),
    ("view.lag", "view events seconds aside", DEBUG, "view {view} is {events} events behind, {seconds} s; {aside} are set aside"),
    ("view.late_ignored", "view event position", WARNING, "view {view} ignores event {event}, at position {position}: it has a newer one of its key"),
    ("view.set_aside", "view event key error", ERROR, "view {view} sets event {event} aside[, key: {key}]: {error}"),
    ("view.switched", "view generation", INFO, "view {view} is built anew, and serves generation {generation}"),
    ("view.trouble", "view trouble", ERROR, "view {view}: {trouble}"),
)  # fmt: skip
_CACHE = (
    ("cache.unreachable", "place verb error", WARNING, "the cache in {place} does not answer ({verb}): {error}"),
    ("cache.unreadable", "key error", WARNING, "what the cache has for {key} cannot be read, and is loaded anew: {error}"),
    ("cache.load_failed", "place key why error", WARNING, "loading {key} for the cache failed ({why}): {error}"),
    ("cache.lease_lost", "place key", DEBUG, "another process may load {key} for the cache by now"),
    ("cache.outdated", "place key", DEBUG, "{key} was invalidated while it was loaded"),
    ("cache.refresh_put_off", "place key", DEBUG, "{key} is not refreshed yet: too many others are"),
    ("cache.waited_in_vain", "place key", DEBUG, "another process did not load {key} in time"),
    ("cache.invalidation_lost", "place number", ERROR, "{number} invalidations are forgotten: the cache in {place} has not answered for too long"),
    ("cache.invalidation_owed", "place number", WARNING, "{number} invalidations have not reached the cache in {place} yet"),
)  # fmt: skip
_MAIL = (
    ("mail.sent", "job message to", DEBUG, "job {job} has sent the mail {message} to {to}"),
    ("mail.refused", "job message to error", WARNING, "the mail {message} of job {job} to {to} is refused for good: {error}"),
)  # fmt: skip
_BLOBS = (
    ("blob.lost", "blob object", ERROR, "the object {object} of the blob {blob} is gone, and Holdfast has not removed it: the blob is marked as missing"),
    ("blob.link_refused", "method path error", WARNING, "a link to a blob was refused, {method} {path}: {error}"),
)  # fmt: skip
_METRICS = (
    ("port.opened", "address port", INFO, "probes and metrics are served at {address}:{port}"),
    ("port.failed", "error", ERROR, "a request for probes or metrics failed: {error}"),
    ("metrics.untidy", "error", DEBUG, "numbers of processes that are gone are not counted up yet: {error}"),
    ("metrics.no_room", "error", WARNING, "the disk has no room for the numbers of this process, and no other tells them: {error}"),
    ("metrics.failed", "error", ERROR, "runs were not counted: {error}"),
    ("metrics.no_figures", "error", WARNING, "the figures of the fleet are missing: {error}"),
)  # fmt: skip
_TRACES = (
    ("traces.failed", "error", ERROR, "a span is missing, or is not what it should be: {error}"),
)  # fmt: skip
_STORE = (
    ("store.tried_again", "store error", WARNING, "{store} is asked again: {error}"),
    ("store.not_durable", "store setting", WARNING, "{setting} is off in {store}: a power failure can lose what was acknowledged"),
    ("store.sessions_ended", "count", WARNING, "{count} sessions of the database, whose transactions stood still for too long, were ended"),
    ("session.held_lock", "seconds first", WARNING, "a session of SQLAlchemy held the write lock of the SQLite file for {seconds} s, from this statement on: {first}"),
    ("store.foreign_library", "path found", ERROR, "nothing more is written to {path}: {found}"),
    ("store.thread_died", "thread error", ERROR, "the thread {thread} of the store has died: {error}"),
    ("wakeups.polling", "store reason", WARNING, "wake-ups do not arrive here; jobs are found by polling: {reason}"),
    ("wakeups.hint_lost", "error", DEBUG, "a wake-up was not sent: {error}"),
)  # fmt: skip
_PROCESS = (
    ("task.failed", "task error", ERROR, "the background task {task} failed: {error}"),
    ("task.exited", "code", WARNING, "sys.exit({code}) in a task: it is a failure of whoever awaits that, and no end of this process"),
    ("thread.failed", "thread error", ERROR, "the thread {thread} failed: {error}"),
    ("periodic.failed", "name error", WARNING, "{name} failed, and is tried again: {error}"),
    ("service.stop_failed", "service error", ERROR, "{service} could not be stopped: {error}"),
    ("signal.failed", "error", ERROR, "a signal was heard, and acting on it failed: {error}"),
    ("fork.child_not_told", "heir error", ERROR, "{heir} could not be made ready in a forked child: {error}"),
    ("reply.unheard", "count", DEBUG, "{count} answers found nobody who waits for them: their event loop is closed"),
)  # fmt: skip
_WEB = (
    ("upload.not_discarded", "object error", WARNING, "the bytes {object} of an upload that was refused could not be removed, and are swept later: {error}"),
    ("request.failed", "method path code error", ERROR, "{method} {path} failed: {error}"),
    ("request.refused", "method path code error", WARNING, "{method} {path} is answered with {code}: {error}"),
    ("request.shed", "why", WARNING, "a request is refused, as too much is waiting: {why}"),
    ("request.not_shed", "error", WARNING, "nobody knows how long jobs wait, so no request is refused for it: {error}"),
    ("request.limited", "limit key", DEBUG, "a request of {key} is above the limit {limit}"),
    ("request.repeated", "key what", DEBUG, "the request with the idempotency key {key} is {what}"),
    ("request.key_lost", "key", WARNING, "the request with the idempotency key {key} took longer than its lease, and another has the key: nothing of it is kept"),
    ("request.key_kept", "key error", WARNING, "the idempotency key {key} could not be given back, and is free when its lease ends: {error}"),
)  # fmt: skip
_ALERTS = (
    ("alert.told", "alert kind cause state number", WARNING, "alert {alert} is {state}: {kind}, {cause}, {number}"),
    ("alerts.not_looked", "kind error", WARNING, "it could not be seen whether there is an alert of the kind {kind}: {error}"),
    ("alerts.failed", "error", ERROR, "alerts could not be looked for: {error}"),
)  # fmt: skip
NOTES = {
    name: _entry(f"holdfast.{logger}", name, fields, level, sentence)
    for logger, entries in {
        "jobs": _JOBS,
        "worker": _WORKER,
        "supervisor": _SUPERVISOR,
        "upkeep": _UPKEEP,
        "guards": _GUARDS,
        "events": _EVENTS,
        "sagas": _SAGAS,
        "views": _VIEWS,
        "cache": _CACHE,
        "mail": _MAIL,
        "blobs": _BLOBS,
        "metrics": _METRICS,
        "alerts": _ALERTS,
        "traces": _TRACES,
        "store": _STORE,
        "process": _PROCESS,
        "web": _WEB,
    }.items()
    for name, fields, level, sentence in entries
}
