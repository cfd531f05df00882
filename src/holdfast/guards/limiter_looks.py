"""What can be asked of a limiter without taking anything: its name, its rate, its keys, and what is left."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

from holdfast.guards.headers import Allowance, ratelimit_headers
from holdfast.guards.limiter_keys import LimiterKeys
from holdfast.guards.meters import Meter
from holdfast.guards.paces import Pace
from holdfast.guards.pauses import Pauses
from holdfast.guards.registry import Registry
from holdfast.kernel.clock import monotonic


class LimiterLooks:
    """The part of a limiter that changes nothing of it."""

    __slots__ = ()

    _keys: LimiterKeys
    _lock: AbstractContextManager[Any]
    _longest_pause: float
    _name: str | None
    _lenient: bool
    _pace: Pace
    _pauses: Pauses
    _rate: float
    _registry: Registry
    _single: Meter
    _wait: float

    @property
    def name(self) -> str:
        return self._name or "limiter"

    @property
    def is_lenient(self) -> bool:
        """Where what was used may be forgotten, nothing was."""
        return self._lenient

    @property
    def fastest(self) -> float:
        """The most calls a second that it may come to."""
        return 1 / self._pace.fastest

    @property
    def burst(self) -> float:
        return self._pace.burst

    @property
    def keys(self) -> int:
        """How many of them it keeps at most."""
        return self._registry.limit

    @property
    def adapts(self) -> bool:
        return self._pace.fastest != self._pace.slowest

    @property
    def counts_pauses(self) -> bool:
        """Whether its pauses grow."""
        return self._pace.pause is not None

    @property
    def longest_pause(self) -> float:
        return self._longest_pause

    @property
    def paused_share(self) -> float:
        """Of the last hour, in this process: 0 to 1."""
        with self._lock:
            return self._pauses.share()

    @property
    def longest_wait(self) -> float:
        return self._wait

    def rate(self, *, key: str = "") -> float:
        """Calls a second, now."""
        meter = self._registry.find(key) if key else self._single
        return self._rate if meter is None else 1 / meter.interval

    @property
    def fields(self) -> tuple[str, ...]:
        """What `per` names."""
        return self._keys.fields

    def key_for(self, *values: Any, **named: Any) -> str:
        """The key that `per` makes of these values; without `per`, the one value as text."""
        return self._keys.of(values, named)

    def allowance(self, *, key: str = "") -> Allowance:
        """What is left for this key; nothing is taken."""
        now = monotonic()
        with self._lock:
            meter = (self._registry.find(key) if key else self._single) or Meter(self._pace)
            return Allowance(
                limit=self._pace.burst,
                remaining=meter.remaining(now),
                window=self._pace.burst * meter.interval,
                reset=max(0.0, meter.full_at - now, meter.paused_until - now),
                retry_after=meter.wait(1.0, now),
            )

    def soon(self, seconds: float, *, key: str = "") -> float:
        """How much may be taken within so many seconds; nothing is taken."""
        now = monotonic()
        with self._lock:
            meter = (self._registry.find(key) if key else self._single) or Meter(self._pace)
            return meter.coming(now, now + seconds)

    def headers(self, *, key: str = "") -> dict[str, str]:
        """`RateLimit-Policy`, `RateLimit` and, when the next call would be refused, `Retry-After`."""
        return ratelimit_headers(self.name, self.allowance(key=key))

    def __repr__(self) -> str:
        return f"<Limiter {self.name!r} {self._rate:g}/s burst {self._pace.burst:g}>"
