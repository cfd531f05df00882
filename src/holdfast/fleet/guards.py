"""What the guards of this process share with those of others: one loop that asks and tells, so that no call waits for it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import islice
from typing import Any

from holdfast.fleet.breakers import Member
from holdfast.fleet.pots import Pot
from holdfast.fleet.slices import Slices
from holdfast.guards.guard import Guard
from holdfast.guards.ports import BreakerRecord, LimiterRecord
from holdfast.guards.settings import differences
from holdfast.kernel.clock import monotonic, news_within, patience, recover
from holdfast.kernel.errors import HoldfastError, SchemaError, UsageError
from holdfast.kernel.forks import tell_child
from holdfast.kernel.ids import new_id
from holdfast.kernel.randomness import jittered
from holdfast.kernel.service import Looping
from holdfast.kernel.telemetry import note
from holdfast.store.breakers import BreakerReport
from holdfast.store.fleet_ports import SharedGuards
from holdfast.store.quota import Grant, Want

TTL = 10.0  # seconds for which what a node says counts
_SOON = 0.5  # seconds between reports while a breaker is not closed,
_OFTEN = 1.0  # while there are calls,
_SELDOM = 3.0  # and else
_PATIENCE = 2.0  # seconds for one round of questions; then this process is on its own
_AGAIN = 1.0  # seconds until a silent store is asked again
_SHORTEST = 0.005  # seconds between two rounds
_SPED_EVERY = 1.0  # seconds between telling that a key is faster
_TOLD = 100  # keys of which is told in one round that they are slower, or faster,
_TELLING = 0.5  # and seconds for that: the rest are told in the next one
_MIGRATING = 5.0  # seconds for which the tables may be missing at first
_LEAVING = 1.0  # seconds for giving back what was not used


class GuardFleet(Looping):
    """A service of every process that has guards. Without it, or without its store, guards go on by themselves."""

    def __init__(self) -> None:
        super().__init__("guards")
        self.node = new_id()
        self.guards: dict[str, Guard[object]] = {}
        self._members: dict[str, Member] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._news = asyncio.Event()
        self._slices = Slices(self._wake)
        self._shared: SharedGuards | None = None
        self._people: SharedGuards | None = None
        self._next_report = self._next_people = 0.0
        self._sits_out = self._is_leaving = False
        self._is_told = False  # that it is on its own
        self._began = 0.0
        tell_child(self)

    async def ahead(self, guard: Guard[Any], keys: Sequence[str], seconds: float) -> Mapping[str, float]:
        """How much of each key its fleet has left for the next seconds, as far as anybody knows.

        Nothing, while the place where guards meet is away, and of a guard that is not shared.
        """
        shared = self._shared
        if shared is None or guard.limiter is None or self._trouble is not None or self._task is None:
            return {}
        if self.guards.get(guard.name) is not guard:
            return {}
        try:
            async with patience(_PATIENCE):
                found = await shared.ahead(guard.limiter.name, keys, seconds=seconds)
        except (HoldfastError, TimeoutError):  # its own rounds will say so
            return {}
        return dict(zip(keys, found, strict=True))

    def sit_out(self) -> None:
        """This process makes no calls: it is no node of the fleet, and hears of nothing."""
        self._sits_out = True

    def add(self, guard: Guard[object]) -> None:
        """Its limiter and breaker are shared from now on."""
        if (known := self.guards.get(guard.name)) is not None:
            raise _declared_twice(known, guard)
        if guard.limiter is not None:
            self._slices.add(guard.limiter)
        if guard.breaker is not None:
            guard.breaker.share(self)
        self.guards[guard.name] = guard
        self._members[guard.name] = Member(guard, self.node, self._slices.forget)
        self._next_report = 0.0
        self._wake()

    def known(self, guard: Guard[object]) -> Guard[object] | None:
        """The one that was declared before under its name, with the same settings, as by a module that is loaded again."""
        known = self.guards.get(guard.name)
        if known is not None and differences(known.settings, guard.settings):
            raise _declared_twice(known, guard)
        return known

    def meet_at(self, shared: SharedGuards, *, people: SharedGuards | None = None) -> None:
        """`people`: where they decide, when that is another place. It is asked also when the first is away."""
        self._shared, self._people = shared, people

    async def start(self) -> None:
        if self._sits_out:
            return
        self._loop, self._news = asyncio.get_running_loop(), asyncio.Event()
        self._next_report = self._next_people = 0.0
        self._is_leaving = self._is_told = False
        self._began = monotonic()
        self._slices.come_back()
        for limiter, rate in self._slices.slower():
            note(
                "guards.slower", limiter=limiter.name, rate=limiter.fastest, burst=limiter.burst, shared=rate
            )
        await self._turn()  # what is open or held for all is so before the first call
        if self._trouble is not None and self._people is not None:
            self._slices.count_first()
        await super().start()

    async def stop(self) -> None:
        if self._loop is asyncio.get_running_loop():  # else that loop is gone
            self._is_leaving = True
            await super().stop()
            await self._give_back()
        self._slices.go_alone()
        self._task = self._loop = None

    async def _give_back(self) -> None:
        """What others may have, now that this process leaves, and must know. Quota lapses in any case."""
        if (shared := self._shared) is None or self._trouble is not None:
            return
        try:
            async with patience(_LEAVING):
                await self._calm_some(shared)
                await self._slow_some(shared)  # else who comes next does not know of the pause
                if unused := self._slices.leave():
                    await shared.give_back(unused)
        except Exception as error:  # noqa: BLE001  what is lost is time
            note("guards.not_given_back", node=self.node, error=repr(error))

    def forked(self) -> None:
        """This is a child of the process: another node, which has no part in the fleet before its Holdfast is entered."""
        self.node = new_id()
        self._task = self._loop = None
        self._trouble, self._is_told = None, False
        self._slices.forked()
        for name, guard in self.guards.items():
            self._members[name] = Member(guard, self.node, self._slices.forget)
            for part in (guard.limiter, guard.breaker, guard.bulkhead):
                if part is not None:
                    part.forked()

    def anew(self) -> None:
        """Before it is started, with another store and maybe another clock: nothing is known of any guard, as after a start."""
        self._slices.anew()
        for name, guard in self.guards.items():
            self._members[name] = Member(guard, self.node, self._slices.forget)
            guard.reset()

    # --- the port of breakers ---

    def changed(self, name: str, record: BreakerRecord, /) -> None:  # noqa: ARG002  it is asked when there is time
        self._next_report = 0.0
        self._wake()

    def _wake(self) -> None:
        """On any thread."""
        loop, news = self._loop, self._news
        if loop is not None and not news.is_set() and not loop.is_closed():
            loop.call_soon_threadsafe(news.set)

    # --- rounds ---

    async def _run(self) -> None:
        while not self._is_leaving:  # a driver may swallow that it is cancelled
            await self._rest()
            await self._turn()

    async def _turn(self) -> None:
        try:
            async with patience(_PATIENCE):
                await self._round()
        except Exception as error:  # noqa: BLE001  guards go on without it
            is_news = self._trouble is None
            self._lost(error)
            if is_news and not self._is_others_to_tell(error):
                await self._count()
        else:
            self._found()

    async def _count(self) -> None:
        """Who was there when it went away: some may have come since it was last asked, and people decide elsewhere."""
        if self._people is not None and self.guards:
            reports = [member.report() for member in self._members.values()]
            try:
                async with patience(_PATIENCE):
                    await self._hear_people(self._people, reports)
            except Exception as error:  # noqa: BLE001  as above
                note("guards.uncounted", node=self.node, error=repr(error))

    async def _rest(self) -> None:
        """Until there is something to ask or to tell; a silent store has a pause in any case."""
        if self._trouble is not None:
            await recover(jittered(_AGAIN))
            return
        self._news.clear()
        if (left := min(self._next_report, self._slices.next) - monotonic()) > 0:
            with suppress(TimeoutError):
                async with news_within(left):
                    await self._news.wait()
        await recover(_SHORTEST)

    def _lost(self, error: Exception) -> None:
        if not self._is_told and self.guards and not self._is_others_to_tell(error):
            self._is_told = True
            note("guards.alone", node=self.node, processes=self._slices.nodes, error=repr(error))
        self._trouble = f"guards: on their own, because {error!r}"
        self._next_report = 0.0  # only an answer ends this, so there must be a question
        self._slices.go_alone(is_lost=True)
        self._slices.tidy()

    def _is_others_to_tell(self, error: Exception) -> bool:
        """Whoever starts on a database without tables says so, and leaves or migrates; who does neither hears of it here."""
        return isinstance(error, SchemaError) and monotonic() < self._began + _MIGRATING

    def _found(self) -> None:
        if self._is_told:
            note("guards.together", node=self.node)
        self._trouble, self._is_told = None, False
        self._slices.come_back()

    async def _round(self) -> None:
        shared = self._shared
        if shared is None or not self.guards:
            self._next_report = monotonic() + _SELDOM
            return
        if monotonic() >= self._next_report:
            await self._report(shared)
        await self._calm_some(shared)
        await self._slow_some(shared)
        if wants := self._slices.wants():
            await self._take(shared, wants)
        if unused := self._slices.unused():
            await shared.give_back(unused)

    async def _report(self, shared: SharedGuards) -> None:
        self._next_report = monotonic() + jittered(self._pause())
        reports = {name: member.report() for name, member in self._members.items()}
        if self._people is not None:
            await self._hear_people(self._people, [*reports.values()])
        asked = monotonic()
        heard = await shared.report(self.node, [*reports.values()], ttl=TTL)
        self._slices.count(1 + max((len(each.others) for each in heard), default=0), asked)
        for fleet in heard:
            member = self._members[fleet.guard]
            member.hear(fleet)
            await member.decide(shared, reports[fleet.guard])
        self._slices.tidy()

    async def _hear_people(self, people: SharedGuards, reports: list[BreakerReport]) -> None:
        if (
            monotonic() >= self._next_people or self._trouble is not None
        ):  # then nobody else counts the processes
            self._next_people = monotonic() + jittered(_SELDOM)
            asked = monotonic()
            heard = await people.report(self.node, reports, ttl=TTL)
            self._slices.count(1 + max((len(each.others) for each in heard), default=0), asked)
            for fleet in heard:
                self._members[fleet.guard].hear_people(fleet)

    def _pause(self) -> float:
        members = self._members.values()
        if any(member.is_busy for member in members):
            return _SOON
        return _OFTEN if any(member.is_in_use for member in members) else _SELDOM

    async def _take(self, shared: SharedGuards, wants: list[Want]) -> None:
        asked = monotonic()
        try:
            grants = await shared.take(wants)
        except BaseException:
            self._slices.unasked(wants)
            raise
        found = self._slices.granted(grants, asked)
        if any(pot.is_late for pot, _ in found):
            self._next_report = 0.0  # it has its share, and must know of what
        for pot, before in found:
            if pot.grant is not None:
                self._adopt(pot, before, pot.grant)
        await self._speed_some(shared, [pot for pot, _ in found])

    def _adopt(self, pot: Pot, before: Grant | None, grant: Grant) -> None:
        """Others were told to be slower, or to pause, or have found that they may be faster."""
        if grant.paused > 0:
            pot.limiter.told_pause(grant.paused, key=pot.key)
        if pot.limiter.counts_pauses and not (pot.is_lowered or pot.calmed):
            pot.limiter.told_in_row(grant.in_row, key=pot.key)
        if pot.limiter.adapts and grant.version != (0 if before is None else before.version):
            pot.limiter.restore(LimiterRecord(rate=pot.terms.wanted(grant.rate)), key=pot.key)

    async def _calm_some(self, shared: SharedGuards) -> None:
        """As below. First, since a pause that came after an answer counts from it."""
        pots = self._slices.calm(_TOLD)
        try:
            while pots:
                pot, in_row = pots[0]
                pace = await shared.calm(pot.limiter.name, pot.key, in_row=in_row)
                if pace.in_row and not pot.is_lowered:
                    pot.limiter.told_in_row(pace.in_row, key=pot.key)
                del pots[0]
        finally:
            self._slices.not_calmed(pots)

    async def _slow_some(self, shared: SharedGuards) -> None:
        """Until the fleet has heard of one, it is told again, as it is then."""
        pots, end = self._slices.lowered(_TOLD), monotonic() + _TELLING
        try:
            while pots and monotonic() < end:
                await self._slow(shared, pots[0])
                del pots[0]
        finally:
            self._slices.lower(pots)

    async def _slow(self, shared: SharedGuards, pot: Pot) -> None:
        limiter, grant = pot.limiter, pot.grant
        record = limiter.record(key=pot.key)
        rate = pot.terms.rate(record.rate) if limiter.adapts else None
        pace = await shared.slow(
            limiter.name, pot.key, rate=rate, pause=record.paused_for,
            version=0 if grant is None else grant.version, in_row=record.in_row,
        )  # fmt: skip
        if pace.in_row > record.in_row and not pot.calmed:
            limiter.told_in_row(pace.in_row, key=pot.key)
        pot.heard(pace, rate)

    async def _speed_some(self, shared: SharedGuards, pots: Sequence[Pot]) -> None:
        """What answers have made faster here is so for all. Who is left over is told of with a later grant."""
        end = monotonic() + _TELLING
        for pot in islice(filter(_is_faster, pots), _TOLD):
            if monotonic() < end:
                await self._speed(shared, pot)

    async def _speed(self, shared: SharedGuards, pot: Pot) -> None:
        limiter, grant = pot.limiter, pot.grant
        assert grant is not None
        pot.sped = monotonic()
        is_whole = limiter.rate(key=pot.key) >= limiter.fastest * 0.999
        told = None if is_whole else pot.terms.rate(limiter.rate(key=pot.key))
        pace = await shared.sped(limiter.name, pot.key, rate=told, version=grant.version)
        pot.heard(pace, told)


def _declared_twice(known: Guard[object], guard: Guard[object]) -> UsageError:
    found = differences(known.settings, guard.settings)
    return UsageError(
        f"Guard {guard.name!r} is declared twice, at {known.place} and at {guard.place}, and they differ in "
        f"{', '.join(found) or 'nothing'}. Declare it once and import it, or give each its own name."
    )


def _is_faster(pot: Pot) -> bool:
    """Whether answers have made it faster than the fleet is, and that was not told just now."""
    limiter, grant = pot.limiter, pot.grant
    if not limiter.adapts or grant is None or grant.version == 0:
        return False
    rate = pot.terms.rate(limiter.rate(key=pot.key))
    return grant.rate < rate * 0.99 and monotonic() > pot.sped + _SPED_EVERY
