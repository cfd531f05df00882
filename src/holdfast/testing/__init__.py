"""For your tests and ours: run jobs without a worker, look at queues, turn the clock; suites for stores; the simulation."""

from holdfast.testing.asserting import Waiting, assert_enqueued, enqueued
from holdfast.testing.clock import ManualClock
from holdfast.testing.draining import Drained, drain
from holdfast.testing.freshness import fresh
from holdfast.testing.inlining import inline
from holdfast.testing.mailbox import Mailbox, mailbox
from holdfast.testing.replaying import Replay, replay
from holdfast.testing.running import Ran
from holdfast.testing.waits import Wait

__all__ = [
    "Drained",
    "Mailbox",
    "ManualClock",
    "Ran",
    "Replay",
    "Wait",
    "Waiting",
    "assert_enqueued",
    "drain",
    "enqueued",
    "fresh",
    "inline",
    "mailbox",
    "replay",
]
