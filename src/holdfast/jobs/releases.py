"""Lets held jobs go when their guard would admit them: at the limiter's rate, or as its bulkhead has room; one by one while half open."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from holdfast.guards.bulkhead import Bulkhead
from holdfast.guards.guard import Guard
from holdfast.guards.limiter import Limiter
from holdfast.guards.ports import State
from holdfast.jobs.gating import guard_of, is_closed, is_sick, key_of
from holdfast.kernel.clock import look_after, monotonic
from holdfast.kernel.randomness import jittered
from holdfast.kernel.service import Looping
from holdfast.kernel.telemetry import note
from holdfast.store.ports import Store
from holdfast.store.records import Lease
from holdfast.store.states import Held

LEASE_NAME = "holdfast:guard:{}"
TTL = 5.0  # seconds; a killed holder's successor begins after that
_BUSY, _IDLE = 0.2, 1.0  # seconds between looks: while something is held, and else
_STRANGE = 30.0  # seconds between looks at jobs of guards that are not known here
_PART = 2000  # jobs of one key that go at once at most
_KEYS = 1000  # keys of one question
_STRANGERS = 500  # jobs of one key that nobody here knows
_KEPT = 60.0  # seconds for which it is remembered how many jobs of a key were let go
_SECOND = 1.0  # of the rate: so much is let go at once at most
_CALLED = 1.0  # seconds after which a job that was let go has made its call, or is held again


Ahead = Callable[[Guard[Any], Sequence[str], float], Awaitable[Mapping[str, float]]]


class Pour:
    """How many jobs of one key may go now."""

    def __init__(self, now: float) -> None:
        self.at, self._room = now, 1.0
        self._gone_at = now  # when the last ones were let go
        self._released: int | None = None  # permits of the bulkhead, by the last look

    def take(self, guard: Guard[Any], key: str, now: float, ahead: float) -> int:
        """`ahead`: what the fleet has left of this key until the next look."""
        breaker = guard.breaker
        number = self._metered(guard.limiter, key, now, ahead)
        if goes_by_room(guard):
            number = min(number, self._fitting(guard.bulkhead))
        if breaker is not None and breaker.state is not State.CLOSED:
            breaker.wanted()
            self._room = min(self._room, 1.0)
            number = min(number, int(breaker.retry_in() == 0.0))
        self._room -= number
        if number:
            self._gone_at = now
        return number

    def _metered(self, limiter: Limiter | None, key: str, now: float, ahead: float) -> int:
        passed, self.at = now - self.at, now
        if limiter is None:
            self._room = _PART
            return _PART
        rate = limiter.rate(key=key)
        self._room = min(self._room + passed * rate, max(1.0, min(rate * _SECOND, ahead)))
        if now - self._gone_at >= _CALLED:  # what was let go too early is held again, and has left its quota
            self._room = max(self._room, 1.0)
        return int(min(self._room, _PART, limiter.soon(_BUSY, key=key), ahead))

    def _fitting(self, bulkhead: Bulkhead | None) -> int:
        """As many as there is room for, and as many as may have ended by the next look."""
        assert bulkhead is not None
        before, self._released = self._released, bulkhead.released
        return bulkhead.room + (0 if before is None else bulkhead.released - before)


def goes_by_room(guard: Guard[Any]) -> bool:
    """Whether each worker lets go of what its own bulkhead has room for: nothing else holds them."""
    return guard.bulkhead is not None and guard.limiter is None and is_closed(guard)


async def unknown(guard: Guard[Any], keys: Sequence[str], seconds: float) -> Mapping[str, float]:  # noqa: ARG001  nobody is asked
    """There is no fleet."""
    return {}


class Releases(Looping):
    """A service of every worker that has guarded tasks; of each guard one worker at a time does it, under a lease.

    `ahead` says how much the fleet has left of a guard's keys for the next seconds: other processes call, too.
    """

    def __init__(
        self,
        store: Store,
        guards: Callable[[], Iterable[Guard[Any]]],
        tasks: Sequence[str],
        *,
        owner: str,
        ttl: float = TTL,
        ahead: Ahead = unknown,
    ) -> None:
        super().__init__("releases")
        self._ahead = ahead
        self._store, self._tasks, self._owner, self._ttl = store, tasks, owner, ttl
        self._all_guards = guards  # that are known by now: one of a step is met when it is asked
        self._next_strange = 0.0
        self._leases: dict[str, tuple[Lease, float]] = {}  # by guard, and when it was last renewed
        self._ask_again: dict[
            str, float
        ] = {}  # by guard that is another's: not at every look, or all would write all the time
        self._pours: dict[str, Pour] = {}

    async def _run(self) -> None:
        while True:
            is_busy = False
            try:
                is_busy = await self._look()
                self._trouble = None
            except Exception as error:  # noqa: BLE001  somebody must do it
                self._trouble = f"releases: {error}"
                note("releases.failed", error=repr(error))
            await look_after(jittered(_BUSY if is_busy else _IDLE))

    async def _look(self) -> bool:
        """Whether anything is held that is ours to let go."""
        keys = await self._keys()
        guards = {guard.name: guard for guard in self._all_guards()} if keys else {}
        known = {text: guard for text in keys if (guard := guard_of(text, guards)) is not None}
        now = monotonic()
        # What was let go may be back at the next look but one: it must not find a fresh one then.
        kept = {text: pour for text, pour in self._pours.items() if now - pour.at < _KEPT}
        self._pours = kept | {text: kept.get(text) or Pour(now) for text in known}
        is_let_go = await self._let_strange_go([text for text in keys if text not in known]) > 0
        ours = await self._ours(known.values())
        for some in _parts([text for text in known if known[text].name in ours]):
            is_let_go |= await self._let_go({text: known[text] for text in some})
        if is_let_go:
            self._store.wakeups.hint(("*",))  # they may be of any queue
        return bool(ours)

    async def _keys(self) -> list[str]:
        """All keys for which jobs are held."""
        found = part = await self._store.holds.gates(limit=_KEYS)
        while len(part) == _KEYS:
            part = await self._store.holds.gates(after=part[-1], limit=_KEYS)
            found = found + part
        return found

    async def _let_strange_go(self, keys: Sequence[str]) -> int:
        """Held by guards that this program does not have, now and then those of its own tasks: theirs may be another by now."""
        if not keys or monotonic() < self._next_strange:
            return 0
        self._next_strange = monotonic() + jittered(_STRANGE)
        unhold = self._store.holds.unhold
        return sum(
            [await unhold(Held.GUARD, guard=text, tasks=self._tasks, limit=_STRANGERS) for text in keys]
        )

    async def _ours(self, guards: Iterable[Guard[Any]]) -> set[str]:
        of_all = {guard.name for guard in guards if goes_by_room(guard)}
        names = sorted({guard.name for guard in guards if not is_sick(guard)} - of_all)
        return of_all | {name for name in names if await self._is_ours(name)}

    async def _is_ours(self, name: str) -> bool:
        now = monotonic()
        lease, renewed = self._leases.pop(name, (None, 0.0))
        if lease is not None and now - renewed < self._ttl / 3:
            self._leases[name] = lease, renewed
            return True
        if lease is not None:
            lease = await self._store.leases.renew(lease, ttl=self._ttl)
        elif now >= self._ask_again.get(name, now):
            text = LEASE_NAME.format(name)
            lease = await self._store.leases.acquire(text, owner=self._owner, ttl=self._ttl)
            self._ask_again[name] = now + jittered(self._ttl / 3)
        if lease is not None:
            self._leases[name] = lease, now
        return lease is not None

    async def _let_go(self, guards: Mapping[str, Guard[Any]]) -> bool:
        """As many of each key as its guard would admit, all of them in one transaction."""
        left, now = await self._left(guards), monotonic()
        wanted = {
            text: self._pours[text].take(guard, key_of(guard, text), now, left.get(text, math.inf))
            for text, guard in guards.items()
        }
        numbers = {text: number for text, number in wanted.items() if number > 0}
        return any((await self._store.holds.open_gates(numbers)).values()) if numbers else False

    async def _left(self, guards: Mapping[str, Guard[Any]]) -> dict[str, float]:
        """What the fleet has left, by the keys under which jobs are held."""
        found: dict[str, float] = {}
        for guard in {guard.name: guard for guard in guards.values() if guard.limiter is not None}.values():
            texts = {key_of(guard, text): text for text, its in guards.items() if its is guard}
            left = await self._ahead(guard, list(texts), _BUSY)
            found |= {texts[key]: units for key, units in left.items()}
        return found


def _parts(keys: Sequence[str]) -> Iterator[Sequence[str]]:
    return (keys[start : start + _KEYS] for start in range(0, len(keys), _KEYS))
