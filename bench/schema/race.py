"""Run one function in several processes that start together, and collect what each returns."""

from __future__ import annotations

import multiprocessing as mp
from collections.abc import Callable, Sequence
from multiprocessing.queues import SimpleQueue
from multiprocessing.synchronize import Barrier
from typing import Any

from .model import Lap, Speed

Runner = Callable[..., list[Lap]]


def race(runner: Runner, procs: int, *args: Any) -> list[Speed]:
    """Call `runner(barrier, *args)` in `procs` processes; one Speed per phase, summed over them."""
    context = mp.get_context("spawn")
    barrier, answers = context.Barrier(procs), context.SimpleQueue()
    children = [context.Process(target=_child, args=(runner, barrier, answers, args)) for _ in range(procs)]
    for child in children:
        child.start()
    results = [answers.get() for _ in children]
    for child in children:
        child.join()
    errors = [result for result in results if isinstance(result, str)]
    if errors:
        raise RuntimeError(f"A bench process failed: {errors[0]}")
    return [Speed.of(laps) for laps in zip(*results, strict=True)]


def _child(runner: Runner, barrier: Barrier, answers: SimpleQueue[Any], args: Sequence[Any]) -> None:
    try:
        answers.put(runner(barrier, *args))
    except BaseException as error:
        answers.put(repr(error))
        barrier.abort()
        raise
