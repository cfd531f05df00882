"""The limiter: so many calls a second, for each key, adapting to what the other side can take."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import TypeVar

from holdfast.guards.backoff import Backoff
from holdfast.guards.faults import Fault
from holdfast.guards.headers import LONGEST_PAUSE, SupportsGet, clamped, parse_rest
from holdfast.guards.limiter_keys import LimiterKeys
from holdfast.guards.limiter_looks import LimiterLooks
from holdfast.guards.limiter_news import News
from holdfast.guards.meters import Meter
from holdfast.guards.paces import PAUSE_JITTER, Pace, check_rate
from holdfast.guards.pauses import Pauses
from holdfast.guards.ports import SLICE, LimiterRecord, Quota, Slice
from holdfast.guards.registry import Registry
from holdfast.guards.reservations import Reservation, carried
from holdfast.guards.settings import Kept
from holdfast.guards.ways import IN_THREAD, ON_LOOP, Way, finished, refuse_on_loop
from holdfast.kernel.awaits import by_context, must_await
from holdfast.kernel.clock import monotonic
from holdfast.kernel.errors import RateLimited, UsageError
from holdfast.kernel.loops import new_lock
from holdfast.kernel.names import check_int, check_name, check_seconds
from holdfast.kernel.show import show
from holdfast.kernel.telemetry import note

T = TypeVar("T")
_FULL = 1.0  # seconds after which there may be room for another key
_SHORTEST = 0.001  # seconds between asking a fleet for quota
_UNCALLED = 0.5  # seconds after which who waits for it asks by himself


class Limiter(LimiterLooks, metaclass=Kept):
    """`async with limiter:` or `await limiter.take()` waits for its turn; raises RateLimited when that is too far away.

    `rate` calls a second, and `burst` of them at once (as many as come in a second, when not said). With `floor` or
    `ceiling` the rate adapts between them: each answer makes the interval shorter by the share `increase` (0.1), being
    throttled lowers the rate by the share `decrease` (0.5). `per="user:{user_id}"` gives each user a rate of his own, for
    at most `keys` users at a time. A call waits at most `wait` seconds for its turn. A `Retry-After` of the other side is
    obeyed up to `longest_pause` seconds, and for up to the share `pause_jitter` (0.2) longer. `pause=Backoff(first=300,
    ceiling=2400)` is the pause after being throttled without one: it doubles each time in a row, and an answer begins it anew.
    On a Redis that may have forgotten what was used, nothing is there at first; with `lenient` all of it is.
    """

    __slots__ = (
        "_keys", "_lenient", "_lock", "_longest_pause", "_longest_told", "_most", "_name", "_news", "_pace", "_pauses", "_quota", "_rate", "_registry", "_single", "_wait",
        "settings",
    )  # fmt: skip

    def __init__(
        self,
        *,
        rate: float,
        burst: float | None = None,
        floor: float | None = None,
        ceiling: float | None = None,
        increase: float | None = None,
        decrease: float | None = None,
        per: str | None = None,
        keys: int = 10_000,
        wait: float = 30.0,
        longest_pause: float = LONGEST_PAUSE,
        pause_jitter: float = PAUSE_JITTER,
        pause: Backoff | None = None,
        lenient: bool = False,
        quota: Quota | None = None,
        name: str | None = None,
    ) -> None:
        self._rate = check_rate(rate)
        self._pace = Pace(
            self._rate, burst=burst, floor=floor, ceiling=ceiling,
            increase=increase, decrease=decrease, pause_jitter=pause_jitter, pause=pause,
        )  # fmt: skip
        self._keys = LimiterKeys(per)
        self._registry = Registry(check_int("keys", keys, 1, 10_000_000), self._pace)
        self._single = Meter(self._pace)  # for calls without a key
        self._wait = check_seconds("wait", wait, 0.0, 86_400)
        self._longest_pause = check_seconds("longest_pause", longest_pause, 0.0, 86_400)
        own = 0.0 if self._pace.pause is None else self._pace.pause.ceiling
        self._longest_told = max(self._longest_pause, own)
        self._quota, self._lenient = quota, bool(lenient)
        self._most = self._pace.burst  # that one call may cost
        self._name = name if name is None else check_name("limiter", name)
        self._lock, self._news, self._pauses = new_lock(), News(), Pauses()

    # --- taking ---

    @must_await("limiter.take", name=lambda args: args[0].name, to=by_context)
    async def take(self, cost: float = 1.0, *, key: str = "") -> None:
        """Wait until one more call may be made."""
        await self.taken(ON_LOOP, key, cost, self._wait)

    def take_sync(self, cost: float = 1.0, *, key: str = "") -> None:
        """`take`, for threads."""
        refuse_on_loop("take_sync", "await limiter.take()")
        finished(self.taken(IN_THREAD, key, cost, self._wait))

    def try_take(self, cost: float = 1.0, *, key: str = "") -> bool:
        """Whether a call may be made now; then it is counted."""
        found = self.reserved(key, cost, monotonic(), 0.0)
        return isinstance(found, Reservation)

    def reserve(self, cost: float = 1.0, *, key: str = "", within: float | None = None) -> Reservation:
        """Take now what a call at `reservation.at` will spend; RateLimited when that is more than `within` seconds away."""
        longest = self._wait if within is None else check_seconds("within", within)
        found = self.reserved(key, cost, monotonic(), longest)
        if isinstance(found, Reservation):
            return found
        raise self.refusal(key, found)

    async def taken(
        self, way: Way, key: str, cost: float, longest: float, *, first: Reservation | float | None = None
    ) -> Reservation:
        """A reservation whose moment has come, after at most `longest` seconds. `first`: what `reserved` has just said."""
        now = monotonic()
        end = now + longest
        while True:
            found = self.reserved(key, cost, now, end - now) if first is None else first
            first = None
            if not isinstance(found, Reservation):
                if now + found > end:
                    raise self.refusal(key, found)
                await self._stood_by(way, key, cost, found, end)
            elif await self._waited(way, found, now):
                return found
            now = monotonic()

    async def _stood_by(self, way: Way, key: str, cost: float, seconds: float, end: float) -> None:
        """Until it is worth asking again; who waits for a fleet's quota is called when it comes."""
        turn = way.turn()
        back = self.call_when(key, cost, turn.call)
        if back is None:
            await way.sleep(seconds)
            return
        try:
            await turn.wait(min(_UNCALLED, max(0.0, end - monotonic())))
        finally:
            back()

    def call_when(self, key: str, cost: float, call: Callable[[], object]) -> Callable[[], None] | None:
        """Call once, on any thread, when a fleet's quota for it may have come; returns what ends the waiting.

        None: that is not what is lacking, so ask again in time.
        """
        if self._quota is None:
            return None
        with self._lock:
            meter = self._registry.find(key) if key else self._single
            if meter is None or meter.wait(cost, monotonic()) > 0:
                return None
        return self._quota.call_when(self.name, key, cost, call)

    async def _waited(self, way: Way, reservation: Reservation, now: float) -> bool:
        """Whether it still holds at its moment. Whoever is cancelled meanwhile gives it back."""
        if now >= reservation.at:
            return True
        try:
            while now < reservation.at:  # a sleep may end a little early
                await way.sleep(reservation.at - now)
                now = monotonic()
        except BaseException:
            reservation.give_back()
            raise
        return self.honours(reservation)

    def reserved(self, key: str, cost: float, now: float, longest: float) -> Reservation | float:
        """A reservation within `longest` seconds, or in how many seconds it is worth asking again. Nothing waits here."""
        try:
            fits = 0 < cost <= self._most  # no NaN does: it would forget all that was taken
        except TypeError:
            fits = False
        if not fits:
            raise self._too_much(cost)
        if (found := carried(self, key, cost)) is not None and now + longest >= found.at and found.spend(now):
            lender = found if found.is_kept else None
            at = max(now, found.at)
            return Reservation(self, found.key, cost, at, found.receipt, until=found.until, lender=lender)
        with self._lock:
            meter = self._registry.get(key, now) if key else self._single
            if meter is not None:
                return self._metered(meter, key, cost, now, longest)
        note("limiter.full", limiter=self.name, keys=len(self._registry), key=key)
        return _FULL

    def _too_much(self, cost: float) -> UsageError:
        why = f"burst={self._pace.burst:g}"
        if self._most < self._pace.burst:
            why = f"{self._most:g}: the rest of {why} makes up for the delays of a fleet that shares it"
        return UsageError(f"cost must be above 0 and at most {why}, not {show(cost)}.")

    def _metered(
        self, meter: Meter, key: str, cost: float, now: float, longest: float
    ) -> Reservation | float:
        """The lock is held."""
        wait = meter.wait(cost, now)
        if self._quota is not None:
            return wait or self._sliced(self._quota, meter, key, cost, now)
        if (
            wait
            and meter.freed
            and (found := meter.take_freed(cost, now, now + min(wait, longest))) is not None
        ):
            return Reservation(self, key, cost, *found)
        if wait > longest:
            return wait
        return Reservation(self, key, cost, now + wait, meter.take(cost, now, wait))

    def _sliced(self, quota: Quota, meter: Meter, key: str, cost: float, now: float) -> Reservation | float:
        """From the slice that the fleet has given us; never more than the whole rate. The lock is held."""
        if now >= meter.purse_until:
            meter.purse = 0.0
        if meter.purse < cost:
            slice_ = quota.take(self.name, key, cost - meter.purse)
            if slice_.units <= 0 or meter.purse + slice_.units < cost:
                return max(_SHORTEST, slice_.ask_again)
            until = now + min(slice_.lasts, SLICE)
            meter.purse_until = until if meter.purse <= 0 else min(meter.purse_until, until)
            meter.purse += slice_.units
        meter.purse -= cost
        return Reservation(self, key, cost, now, meter.take(cost, now, 0.0), until=meter.purse_until)

    def take_back(self, reservation: Reservation) -> None:
        """Called by the reservation."""
        now = monotonic()
        with self._lock:
            meter = self._registry.find(reservation.key) if reservation.key else self._single
            if meter is not None:
                meter.give_back(reservation.cost, reservation.receipt, reservation.at, now)
        if self._quota is not None and (left := reservation.left(now)) > 0:
            self._tell(self._quota.give_back, reservation.key, Slice(reservation.cost, left))

    def honours(self, reservation: Reservation) -> bool:
        """Whether no pause was asked for since it was made."""
        with self._lock:
            meter = self._registry.find(reservation.key) if reservation.key else self._single
            return meter is None or meter.honours(reservation.receipt)

    def refusal(self, key: str, wait: float) -> RateLimited:
        """The error for a call that would have to wait so long."""
        whose = f" for {key!r}" if key else ""
        return RateLimited(
            f"The limiter {self.name!r} admits no call{whose} for {wait:.6g} s. Try again then, or wait longer with wait=.",
            retry_after=wait,
        )

    # --- answers ---

    def answered(
        self, key: str, fault: Fault | None, began: float, now: float, *, retry_after: float | None = None
    ) -> None:
        """How a call ended that began then: adapt, and obey a `Retry-After`."""
        if fault is None or fault is Fault.PERMANENT:
            if self.adapts or self._pace.pause is not None:
                self._well(key, began, now)
            return
        if fault is not Fault.THROTTLED:
            return
        with self._lock:
            meter = self._registry.get(key, now) if key else self._single
            if meter is None:
                return
            before = 1 / meter.interval
            is_news = meter.throttled(began, now, clamped(retry_after, self._longest_pause))
            self._pauses.add(now, meter.paused_until)
            record = self._seen(meter, now)
        if is_news:
            self._news.slowed(self.name, key, record, before=before, full=self.fastest)
        if self._quota is not None:
            self._tell(self._quota.slowed, key, record)

    def _well(self, key: str, began: float, now: float) -> None:
        with self._lock:
            meter = self._registry.find(key) if key else self._single
            if meter is None:
                return
            in_row = meter.calmed(began)
            if self.adapts:
                meter.answered(began, now)
        if in_row and self._quota is not None:
            self._tell(self._quota.calmed, key, in_row)

    def heed(self, headers: SupportsGet, *, key: str = "") -> None:
        """The headers of an answer: when `RateLimit` says that nothing is left, there are no calls until there is more."""
        if (seconds := parse_rest(headers, self._longest_pause)) is not None:
            self.rest(seconds, key=key)

    def rest(self, seconds: float, *, key: str = "") -> None:
        """The other side says that nothing is left for so long: no calls until then. The rate stays."""
        now, pause = monotonic(), clamped(seconds, self._longest_pause) or 0.0
        with self._lock:
            meter = self._registry.get(key, now) if key else self._single
            if meter is None or not meter.rest(pause, now):
                return
            self._pauses.add(now, meter.paused_until)
            record = self._seen(meter, now)
        self._news.rested(self.name, key, record, full=self.fastest)
        if self._quota is not None:
            self._tell(self._quota.slowed, key, record)

    def throttled(self, retry_after: float | None = None, *, key: str = "") -> None:
        """For who uses a limiter alone: the other side has answered that these are too many calls."""
        now = monotonic()
        self.answered(key, Fault.THROTTLED, now, now, retry_after=retry_after)

    def succeeded(self, *, key: str = "") -> None:
        """For who uses a limiter alone: the other side has answered."""
        now = monotonic()
        self.answered(key, None, now, now)

    # --- others, and restarts ---

    def share(self, quota: Quota, *, most: float) -> None:
        """Have its quota from a fleet's from now on, `most` units for one call."""
        self._quota, self._most = quota, min(most, self._pace.burst)

    def told_pause(self, seconds: float, *, key: str = "") -> None:
        """Others say: no calls for so long. What is reserved is void; the rate stays."""
        now = monotonic()
        pause = min(check_seconds("seconds", seconds), self._longest_told)
        with self._lock:
            if (meter := self._registry.get(key, now) if key else self._single) is not None:
                meter.pause_until(now + pause, now)
                self._pauses.add(now, meter.paused_until)

    def told_in_row(self, number: int, *, key: str = "") -> None:
        """Others say: so often in a row we were throttled without being told for how long."""
        now = monotonic()
        with self._lock:
            if (meter := self._registry.get(key, now) if key else self._single) is not None:
                meter.told_in_row(number, now)

    def forked(self) -> None:
        """This is a child of the process: slices of the fleet's quota are the parent's, and so is whoever holds the lock."""
        self._lock = new_lock()
        for meter in (self._single, *self._registry.meters):
            meter.purse = 0.0

    def reset(self) -> None:
        """Begin anew: the first rate, no pause, for every key. What was taken is forgotten with it."""
        with self._lock:
            self._registry.clear()
            self._pauses.forget()
            self._single = Meter(self._pace)

    def record(self, *, key: str = "") -> LimiterRecord:
        """What to keep of a key."""
        with self._lock:
            meter = self._registry.find(key) if key else self._single
            return self._seen(meter or Meter(self._pace), monotonic())

    def restore(self, record: LimiterRecord, age: float = 0.0, *, key: str = "") -> None:
        """Go on as a record says that was made `age` seconds ago."""
        now = monotonic()
        rate = check_rate(record.rate)
        left = check_seconds("paused_for", record.paused_for) - check_seconds("age", age)
        with self._lock:
            if (meter := self._registry.get(key, now) if key else self._single) is not None:
                meter.adopt(1 / rate, now)
                meter.pause_until(now + min(left, self._longest_told), now)
                if record.in_row > meter.in_row:
                    meter.told_in_row(record.in_row, now)

    def _tell(self, what: Callable[[str, str, T], None], key: str, value: T) -> None:
        """The call in hand must not fail by what the fleet does with the news."""
        try:
            what(self.name, key, value)
        except Exception as error:  # noqa: BLE001  it is a stranger's
            note("limiter.unheard", limiter=self.name, key=key, error=repr(error))

    def _seen(self, meter: Meter, now: float) -> LimiterRecord:
        return LimiterRecord(
            rate=1 / meter.interval, paused_for=max(0.0, meter.paused_until - now), in_row=meter.in_row
        )

    def take_name(self, name: str) -> None:
        """Called by a guard; a name of its own stays."""
        self._name = self._name or name

    # --- blocks: they wait at their beginning, and nothing happens at their end ---

    def __enter__(self) -> None:
        self.take_sync()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    async def __aenter__(self) -> None:
        await self.take()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...
