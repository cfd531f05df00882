"""Quota that a fleet shares: what is asked and answered, and the arithmetic of one bucket, the same on every store.

A bucket is GCRA, kept as a level and its moment instead of a theoretical arrival time: the two say the same, but a level
is in units, so a rate that changes needs no conversion, and small costs at high rates are not lost in rounding.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import msgspec

from holdfast.kernel.errors import UsageError
from holdfast.kernel.names import check_int, check_name, check_seconds
from holdfast.kernel.show import show

DAY = 86_400.0  # seconds that a pause lasts at most
IDLE = 3600.0  # seconds without a question after which a full bucket is forgotten
SLOWED_KEPT = 7 * DAY  # the same when the other side has asked for less: that is remembered for longer
LEAST, MOST = 1e-9, 1e9  # units, and units a second
FINEST = 1e-6  # seconds: the finest time that both databases keep
TERMS_KEPT = 5.0  # seconds for which the largest rate and burst that anybody asked with count for all
_INT8 = 2**63


class Want(msgspec.Struct, frozen=True):
    """Ask for quota of one key: at least and at most so many units, of a bucket that all who ask describe alike."""

    name: str  # of the limiter
    key: str  # of whom it limits; empty: it has one bucket for all
    least: float
    most: float
    rate: float  # units a second, when the other side has not asked for less
    burst: float  # units that it holds
    lenient: bool = False  # where what was used may be forgotten, nothing was

    def __post_init__(self) -> None:
        _set(self, "name", check_name("guard", self.name))
        _set(self, "key", check_key(self.key))
        for kind in ("least", "most", "rate", "burst"):
            _set(self, kind, check_amount(kind, getattr(self, kind)))
        if self.least > self.most:
            raise UsageError(f"least is {self.least:g} and most is {self.most:g}: least is the smaller one.")
        if self.least > self.burst:
            raise UsageError(
                f"least is {self.least:g} and the burst is {self.burst:g}: so much is never there at once. "
                "Ask for less, or raise the burst."
            )


class Grant(msgspec.Struct, frozen=True):
    name: str
    key: str
    units: float  # 0: nothing was granted
    wait: float  # seconds until `least` can be had, as far as is known now; 0: at once
    rate: float  # the one that counts: the wanted one, or what the other side has left us
    paused: float  # seconds for which nothing is granted; 0: no pause
    version: int  # of the rate that the other side has left us: `slow` and `sped` name it
    at: float  # when it was granted
    mark: float  # units that had drained by then, since the bucket was made: so its age is known when it is given back
    in_row: int = 0  # as in Pace


class Return(msgspec.Struct, frozen=True):
    """Units of a grant that were not used."""

    grant: Grant
    units: float

    def __post_init__(self) -> None:
        check_grant(self.grant)
        _set(self, "units", check_amount("units", self.units))
        if self.units > self.grant.units:
            raise UsageError(
                f"{self.units:g} units are given back of a grant of {self.grant.units:g}. Give back what is left of it."
            )


class Pace(msgspec.Struct, frozen=True):
    """What the other side has left us of one key."""

    name: str
    key: str
    rate: float | None  # None: it has not asked for less
    version: int  # grows with every change; 0: never changed
    paused: float  # seconds for which nothing is granted
    in_row: int = 0  # how often it was too much for the other side, in a row, and it did not say for how long


_set = msgspec.structs.force_setattr


def check_amount(kind: str, value: Any, low: float = LEAST) -> float:
    """Units, or units a second, as a float."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise UsageError(f"{kind} must be a number, not {show(value)} ({type(value).__name__}).")
    if not low <= value <= MOST:  # no NaN passes
        raise UsageError(f"{kind} must be from {low:g} to {MOST:g}, not {show(value)}.")
    return float(value)


def check_key(key: Any) -> str:
    return "" if isinstance(key, str) and key == "" else check_name("key", key)


def check_grant(grant: Any) -> None:
    """What a store reads of it: it may have travelled."""
    if not isinstance(grant, Grant):
        raise UsageError(f"A grant is what take() gave, not {show(grant)} ({type(grant).__name__}).")
    check_name("guard", grant.name)
    check_key(grant.key)
    check_amount("The units of a grant", grant.units, 0.0)
    check_amount("The rate of a grant", grant.rate)
    check_seconds("The time of a grant", grant.at)
    if type(grant.mark) is not float or not 0.0 <= grant.mark < math.inf:
        raise UsageError(f"The mark of a grant is a number from 0, not {show(grant.mark)}.")


def check_in_row(number: Any) -> int:
    return check_int("in_row", number, 0, 1_000_000)


def check_version(version: Any) -> int:
    return check_int("version", version, 0, _INT8 - 1)


class Bucket(msgspec.Struct, frozen=True, kw_only=True):
    """One key's row. It holds `level` units at the moment `at`, and `rate` of them drain a second."""

    at: float
    rate: float
    level: float = 0.0
    drained: float = 0.0  # units that could have drained since it was made: a clock that counts units
    slowed: float | None = None  # the rate that the other side has left us
    version: int = 0
    lowered: int = 0  # the version that it was last lowered to
    paused_until: float | None = None
    fastest: float = 0.0  # the largest rate, and
    burst: float = 0.0  # the largest burst, that anybody has asked with lately:
    terms_until: float | None = None  # until then they count also for who asks with less
    in_row: int = 0  # how often it was too much for the other side since it last answered

    @property
    def forget(self) -> int:
        """The minute from which on nobody misses this row. Only its minute, so that an index on it changes rarely."""
        idle = self.at + (IDLE if self.slowed is None and not self.in_row else SLOWED_KEPT)
        return math.ceil(max(idle, self.at + self.level / self.rate, self.paused_until or 0.0) / 60)


def settled(bucket: Bucket, now: float) -> Bucket:
    """The bucket as it is now. What lies ahead of the clock was written before that was set back, and moves with it."""
    passed = now - bucket.at
    drained = max(passed, 0.0) * bucket.rate
    until = bucket.paused_until
    if until is not None:
        until += min(passed, 0.0)
    return msgspec.structs.replace(
        bucket,
        at=now,
        level=max(bucket.level - drained, 0.0),
        drained=bucket.drained + drained,
        paused_until=min(until, now + DAY) if until is not None and until > now else None,
        terms_until=bucket.terms_until if passed >= 0 else None,
    )


def take(bucket: Bucket | None, want: Want, now: float) -> tuple[Bucket, Grant]:
    """What is granted of a bucket now, and what is left of it. A bucket that nobody knows is full."""
    known = on_terms(settled(bucket if bucket is not None else Bucket(at=now, rate=want.rate), now), want)
    free = known.burst - known.level
    granted = min(want.most, want.burst, free) if known.paused_until is None and free >= want.least else 0.0
    left = msgspec.structs.replace(known, level=known.level + granted)
    return left, grant_of(want, left, granted)


def on_terms(known: Bucket, want: Want) -> Bucket:
    """With the rate and burst that count. Of two versions of a program, the one with less would find the bucket full for ever."""
    until = known.terms_until
    is_kept = until is not None and known.at < until
    fastest = max(want.rate, known.fastest) if is_kept else want.rate
    burst = max(want.burst, known.burst) if is_kept else want.burst
    is_largest = (fastest, burst) == (want.rate, want.burst)
    return msgspec.structs.replace(
        known,
        rate=fastest if known.slowed is None else min(fastest, known.slowed),
        fastest=fastest,
        burst=burst,
        terms_until=known.at + TERMS_KEPT if is_largest else until,
    )


def grant_of(want: Want, left: Bucket, granted: float) -> Grant:
    paused = pause_of(left)
    wait = max(paused, _missing(left, want))
    return Grant(
        want.name,
        want.key,
        granted,
        wait + FINEST if wait else 0.0,  # rounded down, it would be too early
        left.rate,
        paused,
        left.version,
        left.at,
        left.drained,
        left.in_row,
    )


def _missing(left: Bucket, want: Want) -> float:
    """Seconds until its least can be had. Longer than the terms last, only its own are certain."""
    missing = left.level + want.least - left.burst
    wait = missing / left.rate if missing > 0 else 0.0
    if left.terms_until is None or left.at + wait < left.terms_until:
        return wait
    return max(wait, (left.level + want.least - want.burst) / min(left.rate, want.rate))


def pause_of(bucket: Bucket) -> float:
    return 0.0 if bucket.paused_until is None else max(bucket.paused_until - bucket.at, 0.0)


def ahead(bucket: Bucket | None, seconds: float, now: float) -> float:
    """Units that may be had within so many seconds, by whoever asks first. One that nobody has asked for yet is full: no bound."""
    if bucket is None or not bucket.burst:
        return math.inf if bucket is None or pause_of(settled(bucket, now)) <= seconds else 0.0
    known = settled(bucket, now)
    if pause_of(known) > seconds:
        return 0.0
    return min(known.burst, max(known.burst - known.level + known.rate * seconds, 0.0))


def give_back(bucket: Bucket, item: Return, now: float) -> Bucket:
    """Less by what is still in the bucket of these units. What has drained since they were granted made room already."""
    known = settled(bucket, now)
    if not item.grant.at <= now < item.grant.at + IDLE:  # the bucket may be another one by now, or the clock
        return known
    worth = max(item.units - max(known.drained - item.grant.mark, 0.0), 0.0)
    return msgspec.structs.replace(known, level=max(known.level - worth, 0.0))


def merged(returns: Iterable[Return]) -> list[Return]:
    """Each key once, in a fixed order. Of several grants the oldest counts: no more is left of them than if all were."""
    found: dict[tuple[str, str], Return] = {}
    for item in returns:
        grant = item.grant
        if (known := found.get((grant.name, grant.key))) is None:
            found[grant.name, grant.key] = item
            continue
        oldest = min(known.grant, grant, key=lambda each: each.mark)
        units = min(known.units + item.units, MOST)
        whole = msgspec.structs.replace(oldest, units=units, at=min(known.grant.at, grant.at))
        found[grant.name, grant.key] = Return(whole, units)
    return [found[key] for key in sorted(found)]


def counted(bucket: Bucket, in_row: int, version: int) -> Bucket:
    """How often it was too much, unless the rate was lowered since the one who asks looked: then that one has counted it."""
    is_new = version >= bucket.lowered and in_row > bucket.in_row
    return msgspec.structs.replace(bucket, in_row=in_row) if is_new else bucket


def slowed(bucket: Bucket, rate: float | None, pause: float, version: int, token: int) -> Bucket:
    """Lowered, unless that was done since the one who asks looked; and paused, in any case."""
    until = max(bucket.paused_until or 0.0, bucket.at + pause) if pause else bucket.paused_until
    changed = msgspec.structs.replace(bucket, paused_until=until)
    if rate is None or version < bucket.lowered or (bucket.slowed is not None and rate >= bucket.slowed):
        return changed
    return msgspec.structs.replace(
        changed, slowed=rate, rate=min(bucket.rate, rate), version=token, lowered=token
    )


def sped(bucket: Bucket, rate: float | None, version: int, token: int) -> Bucket:
    """Raised, or left to itself, unless someone has changed it since the one who asks looked."""
    if bucket.slowed is None or version != bucket.version or (rate is not None and rate <= bucket.slowed):
        return bucket
    return msgspec.structs.replace(bucket, slowed=rate, version=token)


def calmed(bucket: Bucket, in_row: int) -> Bucket:
    """The next pause is the first again, unless there was another since the one who asks looked."""
    return msgspec.structs.replace(bucket, in_row=0) if bucket.in_row == in_row else bucket


def freed(bucket: Bucket, token: int) -> Bucket:
    """As if the other side had never asked for less, and nobody who thinks so yet is right."""
    return msgspec.structs.replace(
        bucket, slowed=None, paused_until=None, version=token, lowered=token, in_row=0
    )


def pace_of(name: str, key: str, bucket: Bucket | None) -> Pace:
    if bucket is None:
        return Pace(name, key, None, 0, 0.0)
    return Pace(name, key, bucket.slowed, bucket.version, pause_of(bucket), bucket.in_row)
