"""Numbers for Prometheus by the names that the original has; Holdfast's own stand beside them."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

from holdfast import Job, Middleware
from holdfast.observe import Counter, Gauge, Histogram, collect_also
from publisher.core import PUBLISHING, TOKENS, hf

QUEUES = {PUBLISHING: "deviation", TOKENS: "token"}  # the others are counted by Holdfast alone
BUCKETS = (1, 2, 5, 10, 20, 30, 60, 120, 300, 600)  # seconds

ACTIVE = Gauge("publisher_active_jobs", "Jobs that run now, of all queues.")
COMPLETED = Counter(
    "publisher_jobs_completed_total",
    "Jobs that have come to an end: success, or failed after the last try. What is unknown has come to none.",
    ("queue", "status"),
)
TOOK = Histogram(
    "publisher_job_duration_seconds", "How long each run of a job took.", ("queue",), buckets=BUCKETS
)


class Numbers(Middleware):
    """Counts what this process runs."""

    def __init__(self) -> None:
        self._running = 0

    async def run(self, job: Job, call_next: Callable[[], Awaitable[Any]]) -> Any:
        self._add(1)
        began = time.monotonic()
        try:
            return await call_next()
        finally:
            self._add(-1)
            if job.queue in QUEUES:
                TOOK.observe(QUEUES[job.queue], value=time.monotonic() - began)

    def on_succeeded(self, job: Job, result: Any) -> None:  # noqa: ARG002  what ran is enough
        self._ended(job, "success")

    def on_dead(self, job: Job, error: BaseException) -> None:  # noqa: ARG002
        self._ended(job, "failed")

    def _ended(self, job: Job, status: str) -> None:
        if job.queue in QUEUES:
            COMPLETED.add(QUEUES[job.queue], status)

    def _add(self, number: int) -> None:
        self._running += number
        ACTIVE.set(to=self._running)


class Uptime:
    """Of the process that is asked: with several, that is their supervisor."""

    def __init__(self) -> None:
        self._began = time.monotonic()

    def collect(self) -> Iterable[Any]:
        from prometheus_client.core import GaugeMetricFamily  # noqa: PLC0415  when somebody asks

        seconds = time.monotonic() - self._began
        yield GaugeMetricFamily(
            "publisher_uptime_seconds", "Since this process has loaded the program.", seconds
        )


hf.use(Numbers())
collect_also(Uptime())
