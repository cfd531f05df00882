"""Processes of a proof by their role: who dies is replaced, who is frozen goes on later, and at the end all are ended."""

from __future__ import annotations

import asyncio
import re
import signal
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from tools.processes import Process

_LOOK = 0.1  # seconds between looks for the dead
_NAME = re.compile(r"worker (\S+) takes jobs from")
Start = Callable[[int, Path], Process]  # place in its role, and its log


@dataclass
class Member:
    """`hurt` is by seconds since 1970, as the database on this machine has them."""

    role: str
    place: int
    process: Process
    hurt: list[tuple[str, float]] = field(default_factory=list)  # how, and when
    returns: bool = False  # it was asked to leave for another to come

    @property
    def name(self) -> str | None:
        """Of a worker, as its jobs know it."""
        found = _NAME.search(self.process.log)
        return None if found is None else found[1]


class Crew:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._starts: dict[str, tuple[int, Start]] = {}
        self.members: list[Member] = []
        self.gone: list[Member] = []
        self.trouble: list[str] = []
        self.highest: dict[str, int] = {}  # memory of a process by role, in bytes
        self._keeping: asyncio.Task[None] | None = None
        self._frozen: set[int] = set()

    def role(self, name: str, number: int, start: Start) -> None:
        self._starts[name] = (number, start)
        for place in range(number):
            self._begin(name, place)

    def _begin(self, role: str, place: int) -> None:
        log = self._folder / f"{role}-{place}-{len(self.members) + len(self.gone)}.log"
        self.members.append(Member(role, place, self._starts[role][1](place, log)))

    def keep(self) -> None:
        """Replace who is gone, from now on."""
        self._keeping = asyncio.create_task(self._keep())

    async def _keep(self) -> None:
        turn = 0
        while True:
            await asyncio.sleep(_LOOK)
            for member in [each for each in self.members if not each.process.alive]:
                self._bury(member)
                # 0: it has done all that there was.
                if (member.process.code != 0 or member.returns) and member.role in self._starts:
                    self._begin(member.role, member.place)
            turn += 1
            if turn % 10 == 0:
                self._weigh()

    def _bury(self, member: Member) -> None:
        self.members.remove(member)
        self.gone.append(member)
        if "Traceback" in (log := member.process.log):
            self.trouble.append(f"{member.role} {member.process.pid}:\n{log[-2500:]}")

    def _weigh(self) -> None:
        for member in self.members:
            with suppress(psutil.NoSuchProcess):
                found = psutil.Process(member.process.pid).memory_info().rss
                self.highest[member.role] = max(self.highest.get(member.role, 0), found)

    def of(self, *roles: str) -> list[Member]:
        """Those that live and are not frozen."""
        return [
            each
            for each in self.members
            if each.role in roles and each.process.alive and each.process.pid not in self._frozen
        ]

    # --- hurting ---

    def kill(self, member: Member) -> None:
        member.hurt.append(("killed", time.time()))
        member.process.signal(signal.SIGKILL)

    def restart(self, member: Member) -> None:
        """It leaves in order, and another comes."""
        member.returns = True
        member.process.signal(signal.SIGTERM)

    async def freeze(self, member: Member, seconds: float) -> None:
        """It stands still, and then goes on as if nothing had happened."""
        member.hurt.append(("frozen", time.time()))
        self._frozen.add(member.process.pid)
        member.process.signal(signal.SIGSTOP)
        try:
            await asyncio.sleep(seconds)
        finally:
            member.process.signal(signal.SIGCONT)
            self._frozen.discard(member.process.pid)

    async def leave(self, roles: Iterable[str], seconds: float = 40.0) -> list[int]:
        """Ask them to leave in order, and start no others; their exit codes."""
        leaving = [each for each in self.members if each.role in set(roles)]
        for role in roles:
            self._starts.pop(role, None)
        for member in leaving:
            if member.process.alive:
                member.process.signal(signal.SIGTERM)
        codes = []
        for member in leaving:
            try:
                codes.append(await member.process.ended(seconds))
            except AssertionError as error:
                self.trouble.append(str(error)[-2500:])
        return codes

    def everybody(self) -> list[Member]:
        return [*self.gone, *self.members]

    async def end(self) -> None:
        """Whatever happened."""
        if self._keeping is not None:
            self._keeping.cancel()
            with suppress(asyncio.CancelledError):
                await self._keeping
        for member in self.everybody():
            member.process.destroy()
