"""The processes of a phase: workers, supervisors, callers and the provider. Who dies is replaced; at the end all are ended."""

from __future__ import annotations

import asyncio
import itertools
import os
import signal
import sys
from contextlib import suppress
from pathlib import Path

import msgspec
import psutil

from chaos import settings
from chaos.place import Place
from tools.processes import Process, environment, worker_command
from tools.waiting import until

_ROOT = Path(__file__).parents[1]
_LOOK = 0.1  # seconds between looks for the dead
_GRACE = 5.0  # seconds that jobs have when a worker is asked to leave


class Size(msgspec.Struct, frozen=True, kw_only=True):
    """How many of each, and what they do."""

    workers: int = 6
    supervisors: int = 1
    children: int = 3  # of each supervisor
    callers: int = 2
    slots: int = 4
    rate: float = 8.0  # asks in a second, of each caller
    kinds: str = "ship,ship,deliver,carry,tally,tally,tally_blindly,charge,publish,publish,publish_blindly,announce,announce"
    count: int = 0  # acknowledged asks after which a caller leaves; 0: it goes on


class Fleet:
    def __init__(self, place: Place, size: Size) -> None:
        self._place, self.size = place, size
        self._names = itertools.count(1)
        self.given: dict[str, str] = {}  # settings of workers that are started from now on
        self.folders: list[Path] = []  # and where they import from first
        self.singles: list[Process] = []
        self.supervisors: list[Process] = []
        self.callers: list[Process] = []
        self._all: list[Process] = []
        self._keeping: asyncio.Task[None] | None = None
        self._calling = True
        self.trouble: list[str] = []

    # --- life ---

    async def start(self) -> None:
        self._start("provider", [sys.executable, "-m", "chaos.provider"], [], {})
        await until(settings.address_file(self._place.folder).exists, 20)
        self._fill()
        for process in (*self.singles, *self.supervisors):
            await process.says("takes jobs from", 60)
        self._keeping = asyncio.create_task(self._keep())

    async def _keep(self) -> None:
        while True:
            await asyncio.sleep(_LOOK)
            self._fill()

    def _fill(self) -> None:
        """Put another in the place of who is gone."""
        for group in (self.singles, self.supervisors, self.callers):
            for process in [each for each in group if not each.alive]:
                self._bury(process)
                group.remove(process)
        while len(self.singles) < self.size.workers:
            self.singles.append(self.start_worker())
        while len(self.supervisors) < self.size.supervisors:
            self.supervisors.append(self.start_worker("-p", str(self.size.children)))
        while self._calling and len(self.callers) < self.size.callers:
            self.callers.append(self.start_caller())

    def _bury(self, process: Process) -> None:
        """A worker that ends by an error of its own is a finding, whatever else is well."""
        if "Traceback" in (log := process.log):
            self.trouble.append(log[-3000:])
        if process in self.callers and process.code == 0:
            self._calling = False  # it has asked for all that it should

    def start_worker(self, *options: str, **given: str) -> Process:
        options = ("-q", f"default:{self.size.slots},ticks:2", "--shutdown-timeout", str(_GRACE), *options)
        command = worker_command("chaos.program:hf", *options, lease=settings.LEASE)
        return self._start("worker", command, self.folders, self.given | given)

    def start_caller(self, **given: str) -> Process:
        name = f"c{next(self._names)}"
        given = {
            settings.CALLER: name,
            settings.KINDS: self.size.kinds,
            settings.RATE: str(self.size.rate),
        } | given
        given[settings.COUNT] = str(self.size.count)
        return self._start("caller", [sys.executable, "-m", "chaos.caller"], [], given)

    def _start(self, what: str, command: list[str], folders: list[Path], given: dict[str, str]) -> Process:
        place = self._place
        log = place.folder / f"{what}-{next(self._names)}.log"
        given = {
            "HOLDFAST_URL": place.way, "HOLDFAST_TRANSPORT_URL": place.broker,
            settings.FOLDER: str(place.folder), settings.PARENT: str(os.getpid()),
        } | given  # fmt: skip
        process = Process(command, place.folder, environment([*folders, _ROOT], **given), log)
        self._all.append(process)
        return process

    # --- for faults ---

    def workers(self) -> list[psutil.Process]:
        """Every process that runs jobs: alone, or under a supervisor."""
        pids = [each.pid for each in self.singles if each.alive]
        pids += [pid for each in self.supervisors for pid in each.children]
        found = []
        for pid in pids:
            with suppress(psutil.NoSuchProcess):
                found.append(psutil.Process(pid))
        return found

    @property
    def asks(self) -> bool:
        """Whether callers still have something to ask for."""
        return self._calling

    async def replace_workers(self) -> None:
        """All leave in order, and those that take their places have the settings of now. It is over when one of them is there."""
        old, self.singles, self.supervisors = [*self.singles, *self.supervisors], [], []
        self._fill()
        for process in old:
            process.signal(signal.SIGTERM)
        for process in old:
            await self._left(process)
        if self.singles:
            await self.singles[0].says("takes jobs from")

    async def stop_callers(self) -> None:
        """Each ends what it has asked."""
        self._calling = False
        for process in self.callers:
            process.signal(signal.SIGTERM)
        for process in self.callers:
            await self._left(process)

    async def stop(self) -> None:
        """In order."""
        await self._stop_keeping()
        leaving = [each for each in self._all if each.alive]
        for process in leaving:
            process.signal(signal.SIGTERM)
        for process in leaving:
            await self._left(process)

    async def _left(self, process: Process) -> None:
        try:
            await process.ended(_GRACE + 25)
        except AssertionError as error:
            self.trouble.append(str(error)[-3000:])
        else:
            self._bury(process)

    async def _stop_keeping(self) -> None:
        if self._keeping is not None:
            self._keeping.cancel()
            with suppress(asyncio.CancelledError):
                await self._keeping

    async def destroy(self) -> None:
        """Whatever happened."""
        await self._stop_keeping()
        for process in self._all:
            process.destroy()
