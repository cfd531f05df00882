"""The transport of one process to the simulated broker: each call takes its time, and can break on the way there or back."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.kernel.clock import sleep
from holdfast.kernel.errors import TransportUnavailable
from holdfast.testing.memory import MemoryTransport
from holdfast.testing.simulation.events.broker import SimulatedBroker
from holdfast.testing.simulation.events.spec import FLAWS
from holdfast.transport.port import Message, Refused

_PATIENCE = 1.5  # seconds for which a broker that does not answer is waited for
_FLAWED = tuple(f'"flaw":"{flaw}"'.encode() for flaw in FLAWS)


class Link(MemoryTransport):
    broker: SimulatedBroker

    def __init__(self, broker: SimulatedBroker) -> None:
        super().__init__(broker, timeout=_PATIENCE)

    async def _reached(self) -> None:
        await sleep(self.broker.latency())
        await super()._reached()

    async def publish(self, messages: Sequence[Message]) -> list[Refused | None]:
        """Sometimes the connection breaks in the middle, and the broker has the first few."""
        if any(_FLAWED[1] in message.body for message in messages):
            raise RuntimeError("a client of the broker that cannot write this message")
        if len(messages) > 1 and self.broker.faults.lost_answer and self.broker.chance() < 0.5:
            await super().publish(messages[: len(messages) // 2])
            raise TransportUnavailable("The connection broke.")
        answers = await super().publish(messages)
        await sleep(self.broker.latency())
        return answers

    def _objection(self, message: Message) -> str | None:
        if _FLAWED[0] in message.body:
            self.broker.refused(message)
            return "The message is too large for this broker."
        return super()._objection(message)
