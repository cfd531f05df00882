"""Drain: how fast worker processes empty a queue that was filled before. Runs beside the peers.

The clock starts when every worker process has begun, and what was done before does not count; it ends when the store says
that nothing is left.
"""

from __future__ import annotations

import asyncio
import os
import time
from dataclasses import dataclass
from typing import Any

from bench import body
from bench.caller import Caller
from bench.fleet import Fleet

STEPS = 10  # of a job, when steps are measured
CUT = 20.0  # seconds after which a run is cut off; what was done by then counts
LEAST, MOST = 50, 400_000  # jobs
_STAGGER = 3.0  # seconds in which all processes must have begun after the first one
_START = 40.0  # seconds until the first job


def drain(peer: Any, *, guess: float, seconds: float, processes: int, **_: Any) -> dict[str, Any]:
    jobs = max(LEAST, min(MOST, int(guess * seconds)))
    asyncio.run(_fill(peer, jobs))
    if hasattr(peer, "hold"):
        peer.hold()
    with Fleet(peer.workers(processes)) as fleet:
        if hasattr(peer, "hold"):
            _await_ready(fleet, processes)
            peer.go()
        return _watch(peer, fleet, jobs, getattr(peer, "EXECUTING", processes))


def drain_steps(peer: Any, **options: Any) -> dict[str, Any]:
    """The same with jobs of several recorded steps each; the rate is that of steps."""
    os.environ["BENCH_STEPS"] = str(STEPS)  # the workers read it
    answer = drain(peer, **options | {"guess": options["guess"] / STEPS})
    return answer | {"rate": answer["rate"] * STEPS, "steps": answer["jobs"] * STEPS}


async def _fill(peer: Any, jobs: int) -> None:
    async with Caller(peer) as caller:
        await caller.fill(jobs)


def _await_ready(fleet: Fleet, processes: int) -> None:
    until = time.monotonic() + _START
    while len(body.counts()) < processes:
        _must_live(fleet)
        if time.monotonic() > until:
            raise TimeoutError(f"the workers were not up after {_START:g} s")
        time.sleep(0.01)
    time.sleep(0.3)  # and now at rest


@dataclass(frozen=True)
class Sight:
    """What had been done at a moment, and the CPU time that the workers had used."""

    done: int
    at: float
    cpu: float


def _see(fleet: Fleet) -> Sight:
    return Sight(sum(body.counts()), time.monotonic(), fleet.cpu())


def _watch(peer: Any, fleet: Fleet, jobs: int, processes: int) -> dict[str, Any]:
    first = _first_begun(fleet)
    begin = _all_begun(fleet, jobs, processes)
    _until_done(peer, fleet, jobs, begin.at + CUT)
    end = _see(fleet)
    if min(end.done, jobs) - begin.done < jobs // 20:  # so few jobs that most were done by then
        begin = first
    counted = min(end.done, jobs) - begin.done  # at least once: one may have run twice
    if counted <= 0:
        raise TimeoutError(f"{jobs} jobs are too few to measure it")
    seconds = end.at - begin.at
    return {
        "rate": counted / seconds, "jobs": counted, "seconds": round(seconds, 2),
        "cpu_us_per_job": round(1e6 * (end.cpu - begin.cpu) / counted, 1), "cut": end.done < jobs,
    }  # fmt: skip


def _first_begun(fleet: Fleet) -> Sight:
    give_up = time.monotonic() + _START
    while sum(body.counts()) == 0:
        _must_live(fleet)
        if time.monotonic() > give_up:
            raise TimeoutError(f"no job ran within {_START:g} s")
        time.sleep(0.002)
    return _see(fleet)


def _all_begun(fleet: Fleet, jobs: int, processes: int) -> Sight:
    give_up = time.monotonic() + _STAGGER
    while time.monotonic() < give_up:
        counts = body.counts()
        if len([number for number in counts if number]) >= processes or sum(counts) >= jobs:
            break
        time.sleep(0.005)
    return _see(fleet)


def _until_done(peer: Any, fleet: Fleet, jobs: int, cut: float) -> None:
    while sum(body.counts()) < jobs:
        if time.monotonic() > cut:
            return
        _must_live(fleet)
        time.sleep(0.01)
    _nothing_left(peer)


def _nothing_left(peer: Any) -> None:
    """Some acknowledge later than they run."""
    if not hasattr(peer, "left"):
        return
    until = time.monotonic() + 10
    while (left := peer.left()) and time.monotonic() < until:
        time.sleep(0.01)
    if left:
        raise TimeoutError(f"all jobs ran, and the store still has {left}")


def _must_live(fleet: Fleet) -> None:
    if not fleet.alive:
        raise RuntimeError("a worker process has ended by itself")
