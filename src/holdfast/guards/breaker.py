"""The breaker: when too many calls fail none are made for a while, and then a few, to see whether it is well again."""

from __future__ import annotations

import math
from collections.abc import Collection
from types import TracebackType

from holdfast.guards.checks import check_callable
from holdfast.guards.entered import pop, push
from holdfast.guards.faults import Classifier, Fault, check_faults, fault_of
from holdfast.guards.faults import classify as by_default
from holdfast.guards.ports import Alone, BreakerPeers, BreakerRecord, State
from holdfast.guards.probes import Probes
from holdfast.guards.settings import Kept
from holdfast.guards.switch import Switch
from holdfast.guards.trips import trip_of
from holdfast.guards.visits import called
from holdfast.kernel.clock import monotonic
from holdfast.kernel.errors import BreakerOpen, UsageError
from holdfast.kernel.loops import new_lock
from holdfast.kernel.names import check_int, check_name, check_seconds
from holdfast.kernel.show import show
from holdfast.kernel.telemetry import note

FAILING = (
    Fault.TRANSIENT,
    Fault.UNKNOWN,
)  # a permanent or throttled call was answered: the other side is alive
_LONGEST = 86_400.0  # seconds
_NOTES = {
    State.CLOSED: "breaker.closed",
    State.OPEN: "breaker.opened",
    State.HALF_OPEN: "breaker.half_opened",
}


class Permit:
    """The right to make one call. Say how it ended: `record`, `cut_off` or `not_made`. Only the first word counts."""

    __slots__ = ("_breaker", "_over", "began", "generation", "number")

    def __init__(self, breaker: Breaker, generation: int, number: int, began: float) -> None:
        self._breaker, self.generation, self.number, self.began = breaker, generation, number, began
        self._over = False

    def record(self, error: Exception | None = None) -> None:
        """The call has ended: well, or with this error."""
        classify = self._breaker.classify or by_default
        self.ended(None if error is None else fault_of(error, classify), monotonic())

    def ended(self, fault: Fault | None, now: float) -> None:
        """The call has ended with this fault, or with none."""
        if not self._over:
            self._over = True
            self._breaker.ended(self, fault, now)

    def cut_off(self) -> None:
        """Whoever made the call was cancelled; nobody knows how it would have ended."""
        self._give_back(was_made=True)

    def not_made(self) -> None:
        """The call was not made after all."""
        self._give_back(was_made=False)

    def _give_back(self, *, was_made: bool) -> None:
        if not self._over:
            self._over = True
            self._breaker.given_back(self, was_made=was_made)


class Breaker(metaclass=Kept):
    """`with breaker:` or `async with breaker:` around one call, or `permit = breaker.admit()`; raises BreakerOpen.

    It opens when of at least `minimum` (20) calls in the last `window` (60) seconds, or among the last `calls`, a share
    of `failure_ratio` (0.5) failed, or a share of `slow_ratio` (0.5) took `slow` seconds or longer; or, in another form,
    after `failures` in a row; or, with `failures` and `window`, after so many within so many seconds, whatever succeeds
    between. It stays open for `cooldown` seconds, more or less by a fifth, and then admits
    `permits` calls at once. A permit that nobody hears of for `lease` seconds counts as a failure. `failing` are the
    faults that count as failures.
    """

    __slots__ = (
        "_failing",
        "_lock",
        "_name",
        "_peers",
        "_slow",
        "_switch",
        "calls",
        "classify",
        "is_agreed",
        "lease",
        "refusals",
        "settings",
    )

    def __init__(
        self,
        *,
        failure_ratio: float | None = None,
        minimum: int | None = None,
        window: float | None = None,
        calls: int | None = None,
        failures: int | None = None,
        slow: float | None = None,
        slow_ratio: float | None = None,
        cooldown: float = 30.0,
        permits: int = 3,
        lease: float = 30.0,
        classify: Classifier | None = None,
        failing: Collection[Fault] = FAILING,
        peers: BreakerPeers | None = None,
        name: str | None = None,
    ) -> None:
        trip = trip_of(
            failures=failures,
            failure_ratio=failure_ratio,
            minimum=minimum,
            window=window,
            calls=calls,
            slow_ratio=slow_ratio,
        )
        if slow is None and slow_ratio is not None:
            raise UsageError(
                f"slow_ratio={show(slow_ratio)} needs slow=, the seconds from which a call is slow."
            )
        self._slow = math.inf if slow is None else check_seconds("slow", slow, 0.001, _LONGEST)
        self.lease = check_seconds("lease", lease, 0.001, _LONGEST)  # of a permit
        probes = Probes(check_int("permits", permits, 1, 10_000), self.lease)
        self._switch = Switch(trip, probes, check_seconds("cooldown", cooldown, 0.001, _LONGEST))
        self._failing = check_faults("failing", failing)
        if classify is not None:
            check_callable("classify", classify)
        self.classify = classify
        self._peers: BreakerPeers = peers or Alone()
        self._name = name if name is None else check_name("breaker", name)
        self._lock = new_lock()
        self.is_agreed = True  # with a fleet: whether others think so too, when it is open
        self.calls = self.refusals = 0  # that have ended, and that it has not admitted, so far

    # --- calls ---

    def admit(self) -> Permit:
        """A permit for one call, or BreakerOpen."""
        return self.admitted(monotonic())

    def admitted(self, now: float) -> Permit:
        """`admit`, for who has just looked at the clock."""
        switch = self._switch
        with self._lock:
            number = switch.admit(now)
            generation = switch.generation
        if switch.changes:
            self._tell()
        if number is None:
            self.refusals += 1
            raise self._refusal(now)
        if number:
            called(self)
        return Permit(self, generation, number, now)

    def ended(self, permit: Permit, fault: Fault | None, now: float) -> None:
        """Called by the permit."""
        failed = fault is not None and fault in self._failing
        slow = now - permit.began >= self._slow
        switch = self._switch
        with self._lock:
            self.calls += 1
            if permit.generation == switch.generation:  # else it tells of a time that is over
                switch.ended(permit.number, now, failed=failed, slow=slow)
        if switch.changes:
            self._tell()

    def given_back(self, permit: Permit, *, was_made: bool) -> None:
        """Called by the permit."""
        with self._lock:
            if permit.generation == self._switch.generation:
                self._switch.given_back(permit.number, monotonic(), was_made=was_made)
        self._tell()

    def waits(self, permit: Permit, now: float, seconds: float) -> None:
        """Its call begins in so many seconds at the latest: a probe that stands in a line has not failed."""
        if permit.number:
            with self._lock:
                if permit.generation == self._switch.generation:
                    self._switch.waits(permit.number, now + min(seconds, _LONGEST))

    def renew(self, permit: Permit, now: float) -> None:
        """Its call begins only now, after a wait. Raises BreakerOpen when the breaker has opened meanwhile."""
        switch = self._switch
        with self._lock:
            if permit.generation == switch.generation:
                is_good = switch.renew(permit.number, now)
            else:
                is_good = switch.state is State.CLOSED
                permit.generation, permit.number = switch.generation, 0
            permit.began = now
        if not is_good:
            raise self._refusal(now)

    def _refusal(self, now: float) -> BreakerOpen:
        switch = self._switch
        if switch.state is State.HALF_OPEN:
            return BreakerOpen(
                f"The breaker {self.name!r} is half-open and its permits are out: wait for the probes."
            )
        if switch.held:
            return BreakerOpen(
                f"The breaker {self.name!r} is held open by a person, until one lets go of it."
            )
        left = max(0.0, switch.until - now)
        why = "others found that too many calls fail" if switch.is_told(now) else "too many calls failed"
        return BreakerOpen(
            f"The breaker {self.name!r} is open: {why}. Try again in {left:.6g} s.", retry_after=left
        )

    # --- looking ---

    @property
    def name(self) -> str:
        return self._name or "breaker"

    def take_name(self, name: str) -> None:
        """Called by a guard; a name of its own stays."""
        self._name = self._name or name

    @property
    def state(self) -> State:
        """Open ends with the cool-down, whether or not a call comes."""
        now, switch = monotonic(), self._switch
        ends = switch.state is State.OPEN and not switch.held and now >= switch.until
        return State.HALF_OPEN if ends else switch.state

    @property
    def generation(self) -> int:
        """It grows by each change of state."""
        return self._switch.generation

    def wanted(self) -> None:
        """Someone would call if he could: a reason to find out whether it is well again."""
        self.refusals += 1

    def vouched(self) -> None:
        """Who was to find out has ended well, without a call: for want of better, it is one of the probes that go well."""
        now, switch = monotonic(), self._switch
        with self._lock:
            if (number := switch.admit(now)) is not None and number:
                switch.ended(number, now, failed=False, slow=False)
        self._tell()

    def retry_in(self) -> float | None:
        """Seconds until a call may be admitted; 0: now; None: when a probe has ended, or a person lets go."""
        with self._lock:
            return self._switch.retry_in(monotonic())

    # --- people, others and restarts ---

    def share(self, peers: BreakerPeers) -> None:
        """Tell others of its changes from now on."""
        self._peers = peers

    @property
    def is_told(self) -> bool:
        """Whether it is open because others said so."""
        return self._switch.is_told(monotonic())

    @property
    def is_held(self) -> bool:
        """Whether a person holds it."""
        return self._switch.held

    def hold_open(self) -> None:
        """No calls until `let_go`."""
        with self._lock:
            self._switch.hold(State.OPEN, monotonic())
        self._tell()

    def hold_closed(self) -> None:
        """All calls, whatever fails, until `let_go`."""
        with self._lock:
            self._switch.hold(State.CLOSED, monotonic())
        self._tell()

    def let_go(self) -> None:
        """It decides by itself again: when it was held open, by probes; when closed, with nothing counted."""
        with self._lock:
            self._switch.let_go(monotonic())
        self._tell()

    def forked(self) -> None:
        """This is a child of the process: whoever holds the lock is not in it."""
        self._lock = new_lock()

    def reset(self) -> None:
        """Closed, with nothing counted and nothing held."""
        with self._lock:
            self._switch.reset(monotonic())
        self._tell()

    def told_open(self, seconds: float, generation: int) -> bool:
        """Others say: be open for so long. Their hints are numbered, and one that is not newer is ignored.

        It only makes the time longer, and never moves a breaker that a person holds. Says whether it was heeded.
        """
        seconds = check_seconds("seconds", seconds, 0.0, _LONGEST)
        now = monotonic()
        with self._lock:
            heeded = self._switch.told_open(now + seconds, generation, now)
        self._tell()
        return heeded

    def record(self) -> BreakerRecord:
        """As it is now, to be kept or shown."""
        with self._lock:
            return self._switch.record(monotonic())

    def restore(self, record: BreakerRecord, age: float = 0.0) -> None:
        """Be as a record says that was made `age` seconds ago. What was half-open asks again; counts begin anew."""
        open_for = check_seconds("open_for", record.open_for, 0.0, _LONGEST)
        left = max(0.0, open_for - check_seconds("age", age))
        with self._lock:
            self._switch.restore(record, left, monotonic())
        self._tell()

    def _tell(self) -> None:
        """Outside the lock: whoever hears of it may take his time."""
        changes = self._switch.changes
        while changes:
            try:
                record = changes.popleft()
            except IndexError:  # another thread tells it
                return
            note(_NOTES[record.state], breaker=self.name, generation=record.generation, held=record.held)
            try:
                self._peers.changed(self.name, record)
            except Exception as error:  # noqa: BLE001  the call in hand must not fail by what others do with the news
                note("breaker.unheard", breaker=self.name, error=repr(error))

    # --- blocks ---

    def __enter__(self) -> Permit:
        permit = self.admit()
        push(self, permit)
        return permit

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        permit: Permit = pop(self)
        if error is None or isinstance(error, Exception):
            permit.record(error)
        else:
            permit.cut_off()

    async def __aenter__(self) -> Permit:
        return self.__enter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.__exit__(kind, error, trace)

    def __repr__(self) -> str:
        return f"<Breaker {self.name!r} {self.state}{' (held)' if self._switch.held else ''}>"
