"""Holdfast: work that must not be lost and must not be done twice.

These are the public names; everything else may change.
"""

from holdfast.kernel import early as _early  # noqa: F401  before the rest, which takes a while

# isort: split
from holdfast.events.event import Event
from holdfast.events.settings import EventSettings
from holdfast.guards.backoff import Backoff
from holdfast.jobs.blocking import BlockingTx
from holdfast.jobs.control import Cancel, Reject, Retry, Snooze
from holdfast.jobs.cron import Cron
from holdfast.jobs.effects import CannotTell, Found, NotFound
from holdfast.jobs.hooks import Middleware
from holdfast.jobs.job import Job
from holdfast.jobs.signature import Secret
from holdfast.jobs.story import Story
from holdfast.jobs.task import Task
from holdfast.kernel.context import within
from holdfast.runtime.app import Holdfast
from holdfast.sagas.plans import Undo
from holdfast.sagas.running import RunningSaga
from holdfast.store.event_records import Emitted
from holdfast.store.ports import Tx
from holdfast.store.reading import ReadTx
from holdfast.store.records import JobRecord
from holdfast.store.states import State
from holdfast.views.cached import Aged

__all__ = [
    "Aged",
    "Backoff",
    "BlockingTx",
    "Cancel",
    "CannotTell",
    "Cron",
    "Emitted",
    "Event",
    "EventSettings",
    "Found",
    "Holdfast",
    "Job",
    "JobRecord",
    "Middleware",
    "NotFound",
    "ReadTx",
    "Reject",
    "Retry",
    "RunningSaga",
    "Secret",
    "Snooze",
    "State",
    "Story",
    "Task",
    "Tx",
    "Undo",
    "within",
]
