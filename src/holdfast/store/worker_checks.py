"""Checks the arguments of the verbs about workers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from holdfast.kernel.errors import UsageError
from holdfast.kernel.names import check_int, check_name
from holdfast.kernel.show import show
from holdfast.store.worker_records import NewWorker


def check_new_worker(worker: Any) -> None:
    if not isinstance(worker, NewWorker):
        raise UsageError(
            f"A worker to register is a NewWorker, not {show(worker)} ({type(worker).__name__})."
        )


def check_rescued(rescued: Any) -> dict[str, int]:
    if not isinstance(rescued, Mapping):
        raise UsageError(f"Say how many jobs of each worker: {{'worker-1': 2}}, not {show(rescued)}.")
    return {
        check_name("worker", worker): check_int("The number of rescued jobs", number, 0, 1_000_000_000)
        for worker, number in rescued.items()
    }
