"""The guards of a worker, for a task's own process: its calls are admitted and recorded here, as if they were made here."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import msgspec

from holdfast.guards.admission import Admission
from holdfast.guards.guard import Guard
from holdfast.guards.ways import ON_LOOP
from holdfast.jobs.frames import Answer, Ask, Frame, Said, Told
from holdfast.kernel.clock import monotonic
from holdfast.kernel.errors import Refused
from holdfast.kernel.processes import Say
from holdfast.kernel.spawn import spawn

_decoder: msgspec.json.Decoder[Frame] = msgspec.json.Decoder(Frame)


class Lending:
    """Of one run. What is asked inherits its context: the first call spends the quota that came with it."""

    def __init__(self, guards: Mapping[str, Guard[Any]]) -> None:
        self._guards = guards
        self._asked: dict[int, asyncio.Task[None]] = {}
        self._out: dict[int, Admission] = {}

    @property
    def names(self) -> list[str]:
        return [name for name, guard in self._guards.items() if guard.gates.has_any]

    def hear(self, line: bytes, say: Say) -> bool:
        """Whether it was the last."""
        match _decoder.decode(line):
            case Ask() as ask:
                task = self._asked[ask.number] = spawn(self._admit(ask, say), name="guard-for-child")
                task.add_done_callback(lambda _: self._asked.pop(ask.number, None))
            case Told() as told:
                self._hear_of(told)
            case Answer():
                return True
        return False

    async def _admit(self, ask: Ask, say: Say) -> None:
        until = None if ask.left is None else monotonic() + ask.left
        try:
            self._out[ask.number] = await self._guards[ask.guard].gates.admit(
                ON_LOOP, ask.key, ask.cost, until
            )
        except Refused as refusal:
            said = Said(
                number=ask.number,
                refusal=kind_of(refusal),
                text=str(refusal),
                retry_after=refusal.retry_after,
            )
        except Exception as error:  # noqa: BLE001  it is for who asked
            said = Said(number=ask.number, refusal="UsageError", text=str(error))
        else:
            said = Said(number=ask.number)
        say(msgspec.json.encode(said) + b"\n")

    def _hear_of(self, told: Told) -> None:
        if told.how != "rests":
            self._end(told)
        elif (admission := self._out.get(told.number)) is not None and told.retry_after is not None:
            admission.rests(told.retry_after)

    def _end(self, told: Told) -> None:
        admission = self._out.pop(told.number, None)
        if admission is None:
            if (task := self._asked.get(told.number)) is not None:
                task.cancel()
            return
        if told.took is not None:
            admission.took(told.took)
        match told.how:
            case "succeeded":
                admission.succeeded()
            case "failed" if told.fault is not None:
                admission.failed_with(told.fault, told.for_breaker or told.fault, told.retry_after)
            case "not_made":
                admission.not_made()
            case _:
                admission.cut_off()

    def close(self) -> None:
        """The process has ended: nobody will tell what became of its attempts."""
        for task in [*self._asked.values()]:
            task.cancel()
        for admission in self._out.values():
            admission.cut_off()
        self._out.clear()


def kind_of(refusal: Refused) -> str:
    """The name of its type among ours: that of an HTTP client's is another's as well."""
    return next(kind.__name__ for kind in type(refusal).__mro__ if kind.__module__ == Refused.__module__)
