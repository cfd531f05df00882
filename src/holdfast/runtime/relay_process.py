"""A process that only publishes events: a relay without a worker, until a signal."""

from __future__ import annotations

import asyncio
import os
import signal

from holdfast.jobs.presence import Presence, PresenceService
from holdfast.jobs.service import check_tables
from holdfast.kernel.errors import TROUBLE, TransportUnavailable
from holdfast.kernel.here import host, version
from holdfast.kernel.ids import new_id
from holdfast.kernel.processes import exit_now
from holdfast.kernel.service import Services
from holdfast.kernel.signals import on_signals
from holdfast.kernel.telemetry import note
from holdfast.observe.output import last_words
from holdfast.runtime.app import Holdfast
from holdfast.runtime.inside import inside
from holdfast.runtime.worker_process import EXIT_SECOND_SIGNAL
from holdfast.store.worker_records import NewWorker


async def run_relay(hf: Holdfast) -> int:
    """Run until a signal; returns the exit code."""
    inside(hf).bus.catalog.check_heard()  # what nobody hears shall not be published into nothing
    leaving: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    forget = on_signals(lambda number: _leave(number, leaving), again=_leave_at_once)
    name = f"relay-{new_id()}"
    try:
        inside(hf).fleet.sit_out()
        async with hf:
            await check_tables(hf.store)
            await _make_known(hf, name)  # also while another relay publishes, perhaps one of an older version
            async with Services([inside(hf).bus.relay(name), _presence(hf, name)]):
                note("relay.started", relay=name, database=str(inside(hf).location))
                return await leaving
    finally:
        forget()


def _presence(hf: Holdfast, name: str) -> PresenceService:
    relay = NewWorker(name=name, role="relay", host=host(), pid=os.getpid(), version=version())
    return PresenceService(hf.store, Presence(relay))


async def _make_known(hf: Holdfast, name: str) -> None:
    """Who cannot be told now will be, by the relay, before it publishes."""
    try:
        await inside(hf).bus.make_known(name)
    except (*TROUBLE, TransportUnavailable) as error:
        note("relay.failed", error=repr(error))


def _leave(number: signal.Signals, leaving: asyncio.Future[int]) -> None:
    if not leaving.done():
        leaving.set_result(0)
        note("relay.leaving", signal=number.name)


def _leave_at_once(number: signal.Signals) -> None:
    last_words(f"{number.name} again: leaving at once. The lease will end by itself.")
    exit_now(EXIT_SECOND_SIGNAL)
