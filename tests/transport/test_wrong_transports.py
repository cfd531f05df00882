"""The suite finds a wrong adapter: each of these breaks one promise, and the test that is named must fail."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from test_memory_transport import MemoryHarness

from holdfast.kernel.errors import TransportUnavailable
from holdfast.testing.conformance import (
    TransportConformance,
    TransportFaultsConformance,
    transport,
    transport_delivery,
    transport_kit,
)
from holdfast.testing.memory import MemoryBroker, MemoryConsumer, MemoryTransport
from holdfast.transport.port import Refused


class AcksWhatItGives(MemoryBroker):
    def take(self, name, member, limit, redeliver_after):
        found = super().take(name, member, limit, redeliver_after)
        self.ack(name, [int(each.mark) for each in found])
        return found


class AcksBeyondAGap(MemoryBroker):
    def ack(self, name, numbers):
        group = self._groups[name]
        known = {*group.held, *group.again, *numbers}
        super().ack(name, [each for each in known if numbers and each <= max(numbers)])


class AcksForEveryGroup(MemoryBroker):
    def ack(self, name, numbers):
        for group in self._groups:
            super().ack(group, numbers)


class LosesTheOrder(MemoryBroker):
    def store(self, messages):
        super().store(messages[::-1])


class IgnoresCapacity(MemoryBroker):
    def take(self, name, member, limit, redeliver_after):
        return super().take(name, member, 10 * limit, redeliver_after)


class NeverGivesAgain(MemoryBroker):
    def take(self, name, member, limit, redeliver_after):
        return super().take(name, member, limit, 1e9)


class GivesNewerOnesFirst(MemoryBroker):
    def take(self, *asked):
        return sorted(super().take(*asked), key=lambda each: each.redelivered)


class GivesAgainInAnyOrder(MemoryBroker):
    def take(self, *asked):
        found = super().take(*asked)
        again = [each for each in found if each.redelivered]
        return [*again[::-1], *(each for each in found if not each.redelivered)]


class ForgetsWhatIsHeld(MemoryBroker):
    def stop(self):
        super().stop()
        for group in self._groups.values():
            group.held.clear()
            group.again.clear()


class LosesItsTail(MemoryBroker):
    def stop(self):
        super().stop()
        self.lose_tail(1)


class TrimsWhatIsHeld(MemoryBroker):
    @staticmethod
    def _needed(group):
        return group.place + 1


class StartsGroupsOver(MemoryBroker):
    def join(self, name, *, from_start):
        self._groups.pop(name, None)
        super().join(name, from_start=from_start)


class TakesFromTheLiving(MemoryBroker):
    def join(self, name, *, from_start):
        super().join(name, from_start=from_start)
        group = self._groups[name]
        group.again, group.held = sorted({*group.again, *group.held}), {}


class SendsWhatIsBehind(MemoryTransport):
    async def publish(self, messages):
        answers = [Refused(reason) if (reason := self._objection(each)) else None for each in messages]
        self.broker.store([each for each, no in zip(messages, answers, strict=True) if no is None])
        return answers


class SaysThatItHas(MemoryTransport):
    async def publish(self, messages):
        try:
            return await super().publish(messages)
        except TransportUnavailable:
            return [None] * len(messages)


class SendsAnIdOnce(MemoryTransport):
    sent: frozenset[str] = frozenset()

    async def publish(self, messages):
        await super().publish([each for each in messages if each.id not in self.sent])
        self.sent |= {each.id for each in messages}
        return [None] * len(messages)


class KeepsWhatItHolds(MemoryConsumer):
    async def close(self):
        pass


class AcksWhatItGivesBack(MemoryConsumer):
    async def give_back(self, marks):
        await self.ack(marks)


class SaysThatItIsAcknowledged(MemoryConsumer):
    async def ack(self, marks):
        try:
            await super().ack(marks)
        except TransportUnavailable:
            return


WRONG = {
    AcksWhatItGives: "test_what_is_held_too_long_comes_again_to_another",
    AcksBeyondAGap: "test_acknowledging_one_leaves_the_others",
    AcksForEveryGroup: "test_an_acknowledgement_is_that_of_its_group_alone",
    LosesTheOrder: "test_a_group_gets_what_is_published_in_order",
    IgnoresCapacity: "test_no_more_is_fetched_than_there_is_room_for",
    NeverGivesAgain: "test_what_is_held_too_long_comes_again_to_another",
    GivesNewerOnesFirst: "test_what_was_held_too_long_comes_first_and_in_its_order",
    GivesAgainInAnyOrder: "test_what_is_given_back_comes_first_and_in_its_order",
    ForgetsWhatIsHeld: "test_what_was_held_when_the_broker_died_comes_again",
    LosesItsTail: "test_what_was_published_survives_the_death_of_the_broker",
    TrimsWhatIsHeld: "test_trim_forgets_only_what_every_group_has_acknowledged",
    StartsGroupsOver: "test_a_known_group_goes_on_where_it_was",
    TakesFromTheLiving: "test_no_more_is_fetched_than_there_is_room_for",
    SendsWhatIsBehind: "test_what_is_too_large_is_refused_and_the_others_go_on",
    SaysThatItHas: "test_a_frozen_broker_is_not_waited_for_without_end",
    SendsAnIdOnce: "test_a_broker_that_has_lost_messages_takes_them_again",
    KeepsWhatItHolds: "test_who_leaves_gives_back_what_he_holds",
    AcksWhatItGivesBack: "test_what_is_given_back_comes_at_once",
    SaysThatItIsAcknowledged: "test_a_frozen_broker_is_not_waited_for_without_end",
}


class WrongHarness(MemoryHarness):
    def __init__(self, wrong):
        super().__init__()
        self.wrong = wrong

    def _a(self, kind):
        return self.wrong if issubclass(self.wrong, kind) else kind

    async def open(self):
        self.broker = self._a(MemoryBroker)(largest=150_000)
        return await self.second(None)

    async def _client(self, timeout):
        kind, consumers = self._a(MemoryTransport), self._a(MemoryConsumer)

        class Transport(kind):
            async def consumer(self, *args, **options):
                made = await super().consumer(*args, **options)
                made.__class__ = consumers
                return made

        made = Transport(self.broker, timeout=timeout)
        await made.open()
        return made


class Whole(TransportConformance, TransportFaultsConformance):
    __test__ = False


@pytest.mark.parametrize(
    ("wrong", "test"), [pytest.param(*each, id=each[0].__name__) for each in WRONG.items()]
)
def test_a_wrong_adapter_fails(wrong, test, monkeypatch):
    getattr(Whole(), test)(MemoryHarness())
    for module in (transport_kit, transport, transport_delivery):
        monkeypatch.setattr(module, "LONG", 1.0)  # what never comes is waited for so long
    with pytest.raises((AssertionError, TimeoutError)):
        getattr(Whole(), test)(WrongHarness(wrong))
