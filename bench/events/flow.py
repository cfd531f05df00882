"""Send events and see them handled: how many in a second, and how soon after the commit. Runs beside the peers.

A peer's module has `prepare`, `Producer` (open, one, close; `one` answers when its row was committed, in ns), `workers` (the
commands that start so many processes) and, where its handlers write rows, `handled` (how many there are).
"""

from __future__ import annotations

import asyncio
import random
import time
from typing import Any

from bench import body
from bench.fleet import Fleet
from bench.place import arguments

LEAST, MOST = 50, 40_000  # events of one measurement
_UP = 40.0  # seconds until the workers listen
_CUT = 60.0  # seconds until all are handled
_PAUSE = (0.02, 0.04)  # seconds between two events, when latency is measured
_PROBES = 10  # events that are not counted; their numbers are below 0


def events(
    peer: Any, *, guess: float, seconds: float, callers: int, processes: int, **_: Any
) -> dict[str, Any]:
    """From the first emit until the last is handled, many callers at once."""
    number = max(LEAST, min(MOST, int(guess * seconds)))
    with Fleet(peer.workers(processes)) as fleet:
        return asyncio.run(_events(peer, fleet, number, callers, processes))


async def _events(peer: Any, fleet: Fleet, number: int, callers: int, processes: int) -> dict[str, Any]:
    producer = peer.Producer()
    await producer.open()
    try:
        await _until_up(fleet, processes)
        await _warm_up(peer, fleet, producer, callers)
        before, cpu, begin = sum(body.counts()), fleet.cpu(), time.perf_counter()
        await _emit(producer, number, callers)
        emitted = time.perf_counter() - begin
        await _until_handled(peer, fleet, before + number)
        seconds = time.perf_counter() - begin
    finally:
        await producer.close()
    return {
        "rate": number / seconds, "events": number, "seconds": round(seconds, 2), "emitted": round(emitted, 2),
        "cpu_us_per_event": round(1e6 * (fleet.cpu() - cpu) / number, 1),
    }  # fmt: skip


async def _warm_up(peer: Any, fleet: Fleet, producer: Any, callers: int) -> None:
    """Connections are opened and statements prepared."""
    await _emit(producer, 2 * callers, callers)
    await _until_handled(peer, fleet, 2 * callers)


async def _emit(producer: Any, number: int, callers: int) -> None:
    numbers = iter(range(number))

    async def call() -> None:
        for each in numbers:
            await producer.one(arguments(each))

    await asyncio.gather(*(call() for _ in range(callers)))


async def _until_up(fleet: Fleet, processes: int) -> None:
    until = time.monotonic() + _UP
    while len(body.counts()) < processes:
        must_live(fleet)
        if time.monotonic() > until:
            raise TimeoutError(f"the workers were not up after {_UP:g} s")
        await asyncio.sleep(0.01)
    await asyncio.sleep(0.5)  # and now at rest


async def _until_handled(peer: Any, fleet: Fleet, number: int) -> None:
    """All handlers have run, and what they wrote is committed."""
    until = time.monotonic() + _CUT
    rows = getattr(peer, "handled", None)
    while (done := sum(body.counts())) < number or (rows is not None and (done := await rows()) < number):
        must_live(fleet)
        if time.monotonic() > until:
            raise TimeoutError(f"{done} of {number} events were handled after {_CUT:g} s")
        await asyncio.sleep(0.005)


def must_live(fleet: Fleet) -> None:
    if not fleet.alive:
        raise RuntimeError("a worker process has ended by itself")


# --- emit alone ---


def emit_one(peer: Any, *, seconds: float, **_: Any) -> dict[str, Any]:
    return asyncio.run(_emits(peer, 1, seconds))


def emit_concurrent(peer: Any, *, seconds: float, callers: int, **_: Any) -> dict[str, Any]:
    return asyncio.run(_emits(peer, callers, seconds))


async def _emits(peer: Any, callers: int, seconds: float) -> dict[str, Any]:
    """Nobody hears them. Each caller awaits its own commit."""
    producer = peer.Producer()
    await producer.open()
    try:
        await _emit(producer, 4 * callers, callers)
        begin = time.perf_counter()

        async def call(caller: int) -> int:
            done = 0
            while time.perf_counter() - begin < seconds:
                await producer.one(arguments(1_000_000 * (caller + 1) + done))
                done += 1
            return done

        done = sum(await asyncio.gather(*(call(caller) for caller in range(callers))))
        return {"rate": done / (time.perf_counter() - begin), "events": done, "callers": callers}
    finally:
        await producer.close()


# --- latency ---


def event_latency(peer: Any, *, samples: int, **_: Any) -> dict[str, Any]:
    """From the commit of the caller's row until the handler begins, at low load, in ms."""
    with Fleet(peer.workers(1)) as fleet:
        return asyncio.run(_latency(peer, fleet, samples))


async def _latency(peer: Any, fleet: Fleet, samples: int) -> dict[str, Any]:
    producer = peer.Producer()
    await producer.open()
    try:
        await _until_up(fleet, 1)
        committed = {
            number: await _send(producer, number) for number in (*range(-_PROBES, 0), *range(samples))
        }
        times = await _begun(fleet, committed)
    finally:
        await producer.close()
    at = sorted(times)
    return {"p50": at[len(at) // 2], "p99": at[min(len(at) - 1, int(len(at) * 0.99))], "samples": len(at)}


async def _send(producer: Any, number: int) -> int:
    committed: int = await producer.one(arguments(number, sent=1))
    await asyncio.sleep(random.uniform(*_PAUSE))
    return committed


async def _begun(fleet: Fleet, committed: dict[int, int]) -> list[float]:
    until = time.monotonic() + _CUT
    while True:
        first: dict[int, int] = {}
        for number, _, started, _ in body.starts():
            first.setdefault(number, started)
        if len(first) >= len(committed):
            return [(first[number] - at) / 1e6 for number, at in committed.items() if number >= 0]
        must_live(fleet)
        if time.monotonic() > until:
            raise TimeoutError(f"only {len(first)} of {len(committed)} events were handled")
        await asyncio.sleep(0.05)
