"""DBOS on PostgreSQL: a queue of workflows, with steps when those are measured. Its worker: python -m bench.peers.dbos."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa
from dbos import DBOS, DBOSClient

from bench import body
from bench.place import url

_STEPS = int(os.environ.get("BENCH_STEPS", "0"))


@DBOS.workflow(name="noop")
def noop(job: dict[str, Any]) -> None:
    for place in range(_STEPS):
        step(place)
    body.run(job)


@DBOS.step(name="step")
def step(place: int) -> int:
    return place


class Producer:
    workflow = "noop"

    def open(self) -> None:
        self._client = DBOSClient(system_database_url=url())
        self._engine = _engine()
        self._queued = {"workflow_name": self.workflow, "queue_name": "bench", "app_version": "1"}

    def close(self) -> None:
        self._client.destroy()
        self._engine.dispose()

    def one(self, job: dict[str, Any]) -> None:
        self._client.enqueue(self._queued, job)

    def many(self, jobs: Sequence[dict[str, Any]]) -> None:
        """It has no bulk call; many in one transaction comes nearest."""
        with self._engine.begin() as connection:
            for job in jobs:
                self._client.enqueue_in_transaction(connection, self._queued, job)


def _engine() -> sa.Engine:
    return sa.create_engine(url().replace("postgresql://", "postgresql+psycopg://"))


def prepare() -> None:
    """An application makes the tables; a client does not."""
    launch("prepare")
    DBOS.destroy(destroy_registry=False)


def launch(executor: str, *, concurrency: int = 100) -> None:
    DBOS(
        config={
            "name": "bench", "system_database_url": url(), "log_level": "ERROR",
            "application_version": "1", "executor_id": executor,
        }
    )  # fmt: skip
    DBOS.launch()
    tuned = (
        {}
        if os.environ.get("BENCH_DEFAULTS")
        else {"worker_concurrency": concurrency, "polling_interval_sec": 0.05}
    )
    DBOS.register_queue("bench", on_conflict="always_update", **tuned)


def left() -> int:
    return count("SELECT count(*) FROM dbos.workflow_status WHERE status IN ('ENQUEUED', 'PENDING')")


def count(sql: str) -> int:
    with _engine().connect() as connection:
        return int(connection.execute(sa.text(sql)).scalar_one())


def workers(processes: int) -> list[list[str]]:
    return [[sys.executable, "-m", "bench.peers.dbos", f"executor-{number}"] for number in range(processes)]


if __name__ == "__main__":
    launch(sys.argv[1])
    threading.Event().wait()
