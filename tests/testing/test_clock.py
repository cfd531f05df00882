"""The clock that tests move by hand."""

from __future__ import annotations

import asyncio
import subprocess
import sys

from holdfast.kernel import clock
from holdfast.testing.clock import START, ManualClock


def test_time_stands_still_until_it_is_moved():
    with ManualClock() as manual:
        assert (clock.now(), clock.host_now(), clock.monotonic()) == (START, START, 0.0)
        manual.advance(2.5)
        assert (clock.now(), clock.host_now(), clock.monotonic()) == (START + 2.5, START + 2.5, 2.5)


def test_a_wrong_clock_is_wrong_for_this_process_only():
    manual = ManualClock()
    manual.skew(-3600)
    assert (manual.now(), manual.host_now(), manual.monotonic()) == (START - 3600, START, 0.0)


async def test_sleepers_wake_in_their_order_when_their_time_has_come():
    woken = []

    async def sleeper(name, seconds):
        await clock.sleep(seconds)
        woken.append(name)

    with ManualClock() as manual:
        tasks = [asyncio.ensure_future(sleeper(*each)) for each in (("late", 10), ("early", 5), ("now", 0))]
        await _settle()
        assert woken == ["now"]
        manual.advance(5)
        await _settle()
        assert woken == ["now", "early"]
        manual.advance(100)
        await asyncio.gather(*tasks)
        assert woken == ["now", "early", "late"]


async def test_a_sleeper_that_was_cancelled_disturbs_nobody():
    with ManualClock() as manual:
        task = asyncio.ensure_future(clock.sleep(5))
        await _settle()
        task.cancel()
        await asyncio.wait([task])
        manual.advance(5)
        await _settle()


async def _settle():
    for _ in range(5):
        await asyncio.sleep(0)


def test_who_does_not_use_the_suite_pays_nothing_for_it():
    """Neither pytest nor Hypothesis is imported by the package, nor by the suite itself."""
    code = (
        "import sys, holdfast.testing, holdfast.testing.clock, holdfast.testing.conformance;"
        "print([name for name in ('pytest', 'hypothesis', 'apsw', 'asyncpg') if name in sys.modules])"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"
