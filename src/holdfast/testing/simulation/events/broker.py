"""The broker in memory outside all processes: its weather is the seed's, and it notes what it stores, gives and forgets."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from functools import partial

from holdfast.testing.memory import Faults, MemoryBroker
from holdfast.testing.simulation.events.spec import Stream, Weather
from holdfast.testing.simulation.fleet import Fleet
from holdfast.transport.port import Message, Received

TAIL = 3.0  # seconds of what came last that a broker loses when it dies
MARGIN = 15.0  # seconds by which the database's clock may have been stepped meanwhile
SLOW = 2.0  # seconds that a way may take in bad weather
GARBAGE = (b"", b"{", b'{"specversion": "1.0"}', b"\xff\xfe\x00", b'{"id": 7, "type": []}', b"[" * 300)
STRANGER = "stranger"  # whose messages are no events, or of types that no program knows
STRANGE, OTHERS = "strange.seen", "other.told"  # nobody knows it; it is said to be another program's
_EVENT = b'{"specversion":"1.0","id":"%d","source":"/stranger","type":"%s"}'


class SimulatedBroker(MemoryBroker):
    def __init__(self, fleet: Fleet, stream: Stream) -> None:
        super().__init__()
        self._fleet, self._history = fleet, fleet.history
        self._stream = stream
        self._chance = random.Random(f"broker:{fleet.plan.seed}")
        self.slowest = 0.03  # seconds of a way there or back
        self._gives = True  # messages to those who fetch
        # When it has lost some, and from when on messages may be missing, by the database's clock.
        self.lost: list[tuple[float, float]] = []
        for each in stream.weather:
            self._at(each.begin, partial(self._begins, each))
            self._at(each.end, self.clears_up)
        for moment in stream.garbage:
            self._at(moment, self._publish_garbage)
        if stream.tail_lost is not None:
            self._at(stream.tail_lost, self._lose_its_tail)

    def _at(self, moment: float, call: Callable[[], None]) -> None:
        self._fleet.loop.call_at(moment, call, context=self._fleet.outside)

    # --- its weather ---

    def _begins(self, weather: Weather) -> None:
        if self._fleet.healed:
            return
        self._history.event("weather", weather.how)
        match weather.how:
            case "down":
                self.stop()
            case "frozen":
                self.freeze()
            case "slow":
                self.slowest = SLOW
            case "gives nothing":
                self._gives = False
            case how:
                self.faults = Faults(**_FAULTS[how])

    def clears_up(self) -> None:
        self.faults, self.slowest, self._gives = Faults(), 0.03, True
        self.start()
        self.thaw()

    def latency(self) -> float:
        return self._chance.uniform(0.001, self.slowest)

    def chance(self) -> float:
        return self._chance.random()

    def _publish_garbage(self) -> None:
        type_ = self._chance.choice(("", STRANGE, OTHERS))
        number = self._chance.randrange(100)
        body = _EVENT % (number, type_.encode()) if type_ else self._chance.choice(GARBAGE) + b"%d" % number
        # By itself: what nobody's process does has no randomness.
        self._append(Message(STRANGER, type_, None, body))
        self._tell()

    def _lose_its_tail(self) -> None:
        """It died, and its disk had not all of it."""
        now = self._fleet.loop.time()
        recent = sum(stored.at > now - TAIL for stored in self._log)
        lost = self.lose_tail(recent) if recent else []
        self.hang_up()
        self.lost.append((now, self._fleet.host.now() - TAIL - MARGIN))
        self._history.event("tail lost", [message.id for message in lost])

    # --- what it does, noted ---

    def _append(self, message: Message) -> None:
        super()._append(message)
        number = self._log[-1].number
        if message.id == STRANGER:
            what = "passing" if message.type == OTHERS else "garbage"
            self._history.event(what, (number, message.body.hex()))
        else:
            self._history.event("published", (message.id, message.key, number, message.body.decode()))

    def refused(self, message: Message) -> None:
        self._history.event("broker refused", message.id)

    def join(self, name: str, *, from_start: bool) -> None:
        if not self.knows(name):
            super().join(name, from_start=from_start)
            self._history.event("group made", (name, self._groups[name].place))

    def take(self, name: str, member: str, limit: int, redeliver_after: float) -> list[Received]:
        given = super().take(name, member, limit, redeliver_after) if self._gives else []
        for each in given:
            self._history.event(
                "given", (name, int(each.mark), self._id_of(int(each.mark)), each.redelivered)
            )
        return given

    def ack(self, name: str, numbers: Sequence[int]) -> None:
        before = self._open(name)
        super().ack(name, numbers)
        after = self._open(name)
        for number in sorted(before.intersection(numbers)):
            self._history.event(
                "ack lost" if number in after else "acked", (name, number, self._id_of(number))
            )

    def _open(self, name: str) -> set[int]:
        group = self._groups.get(name)
        return set() if group is None else {*group.held, *group.again}

    def _id_of(self, number: int) -> str | None:
        return next((stored.message.id for stored in self._log if stored.number == number), None)


_FAULTS: dict[str, dict[str, float]] = {
    "lost answers": {"lost_answer": 0.4},
    "lost acks": {"lost_ack": 0.5},
    "twice": {"redelivery": 0.5, "duplicate": 0.3},
    "reordered": {"reordering": 0.7},
}
