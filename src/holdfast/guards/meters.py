"""One key of a limiter: when its next call may be made (GCRA), and how the interval between calls adapts (AIMD).

A call of cost 1 takes one interval of the future. `full_at` is the moment when all that was taken has come back; `burst`
intervals may be taken ahead. So in any T seconds at most T / interval + burst is admitted.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from typing import TypeAlias

from holdfast.guards.paces import Pace
from holdfast.kernel.randomness import jittered, random

_HAIR = 1e-7  # seconds: sums of binary numbers are off by less, and nobody should wait for that
_REMEMBERED = 600.0  # seconds after which having been throttled no longer matters

# What the meter wants to know of something taken, when it is given back: the pauses, the takers and the delayed takers
# until then, whether it was delayed, which moment had been promised before, and when it was taken.
Receipt: TypeAlias = tuple[int, int, int, bool, float, float]
_NOT_LAST = (-1, -1)  # numbers of one who has come to another's moment: others were delayed behind that


class Meter:
    """Not safe for threads: the limiter has a lock."""

    __slots__ = (
        "_delayed", "_number", "_pace", "_pauses", "_promised", "_slowed_at", "freed", "full_at", "in_row", "interval",
        "paused_until", "purse", "purse_until",
    )  # fmt: skip

    def __init__(self, pace: Pace) -> None:
        self._pace = pace
        self.interval = pace.start
        self.full_at = self.paused_until = 0.0
        self._slowed_at = -_REMEMBERED
        self._promised = 0.0  # the latest moment of a call that was admitted
        self.in_row = 0  # how often it was throttled without being told for how long, since the last answer
        self._pauses = 0  # what was promised before the last one is void
        self._number = 0  # of the last that was taken
        self._delayed = 0  # how many of them had to wait
        self.freed: list[
            tuple[float, float]
        ] = []  # a heap: moments of those who no longer want theirs, and what they cost
        self.purse = self.purse_until = 0.0  # what is left of the last slice of a fleet's quota

    # --- taking and giving back ---

    def wait(self, cost: float, now: float) -> float:
        """Seconds until so much may be taken; 0: now."""
        start = self._start(now)
        moment = max(start, max(start, self.full_at) + (cost - self._pace.burst) * self.interval)
        return moment - now if moment - now > _HAIR else 0.0

    def take(self, cost: float, now: float, wait: float) -> Receipt:
        """Take it, for a call in `wait` seconds."""
        before = self._promised
        self.full_at = max(self._start(now), self.full_at) + cost * self.interval
        self._number += 1
        self._delayed += wait > 0.0
        self._promised = now + wait
        return self._pauses, self._number, self._delayed, wait > 0.0, before, now

    def honours(self, receipt: Receipt) -> bool:
        """Whether what was promised still holds: no pause has been asked for since."""
        return receipt[0] == self._pauses

    def take_freed(self, cost: float, now: float, until: float) -> tuple[float, Receipt] | None:
        """The moment, before `until`, of someone who no longer wants his: nobody is later or more than if he had it."""
        freed = self.freed
        while freed and freed[0][0] <= now:
            heappop(freed)
        if not freed or freed[0][0] >= until:
            return None
        if freed[0][1] >= cost:
            at, _ = heappop(freed)
        else:  # the first is too small for it
            place = min((each for each in freed if each[1] >= cost), default=None)
            if place is None or place[0] >= until:
                return None
            freed.remove(place)
            heapify(freed)
            at, _ = place
        return at, (self._pauses, *_NOT_LAST, True, 0.0, now)

    def give_back(self, cost: float, receipt: Receipt, at: float, now: float) -> None:
        """It was not used. What delays nobody can be given to another; what time has given back since then cannot."""
        pauses, number, delayed, was_delayed, before, taken = receipt
        if pauses != self._pauses:
            return  # it is void
        if number == self._number:
            self._number -= 1
            self._delayed -= was_delayed
            self._promised = before
            self.full_at -= cost * self.interval
        elif delayed == self._delayed:
            # Nobody after it was delayed, so they would all have come when they came; the first of them perhaps to a
            # meter that was full until then.
            self.full_at -= max(0.0, cost * self.interval - (now - taken))
        elif at > now:  # whoever was delayed keeps his moment; this one is for the next who asks
            heappush(self.freed, (at, cost))
        # Else it is lost: another at a later moment would be one too many.

    def _start(self, now: float) -> float:
        """No call can be before this."""
        return max(now, self.paused_until, self._promised)

    # --- adapting ---

    def answered(self, began: float, now: float) -> None:
        """A call that began then was answered. One from before the last slowing down tells nothing."""
        if self.interval > self._pace.fastest and began >= self._slowed_at:
            self._change(max(self._pace.fastest, self.interval * self._pace.shorter), now)

    def calmed(self, began: float) -> int:
        """A call that began then was answered: how often it had been throttled in a row, which begins anew now."""
        if began < self._slowed_at:
            return 0
        before, self.in_row = self.in_row, 0
        return before

    def told_in_row(self, number: int, now: float) -> None:
        """Others know so much. Calls of ours that were under way then, and are throttled, are no news."""
        if number > self.in_row:
            self._slowed_at = now
        self.in_row = number

    def throttled(self, began: float, now: float, pause: float | None) -> bool:
        """The other side asks for less, and perhaps for a pause. Many calls that were sent before count as one."""
        is_news = began >= self._slowed_at
        if is_news:
            self._slowed_at = now
            self._change(min(self._pace.slowest, self.interval * self._pace.longer), now)
            if pause is None and self._pace.pause is not None:
                self.in_row += 1
                pause = self._pace.pause.longest(self.in_row)
        seconds = jittered(self.interval) if pause is None else self._apart(pause)
        if is_news or pause is not None:
            self.pause_until(now + seconds, now)
        return is_news

    def rest(self, pause: float, now: float) -> bool:
        """Nothing is left for so long. Whether that is news: each answer until then says it again."""
        is_news = now + pause > max(now, self.paused_until)
        if is_news:
            self.pause_until(now + self._apart(pause), now)
        return is_news

    def _apart(self, pause: float) -> float:
        """Those who were told the same pause must not come back before it, nor all at once."""
        return pause * (1 + self._pace.jitter * random())

    def adopt(self, interval: float, now: float) -> None:
        """Be as slow or fast as an earlier process was, within the bounds of today."""
        self._change(min(self._pace.slowest, max(self._pace.fastest, interval)), now)
        if self.interval > self._pace.start:
            self._slowed_at = now

    def pause_until(self, moment: float, now: float) -> None:
        """Nothing before, whatever was promised, and then one after the other instead of a burst."""
        if moment > max(now, self.paused_until):
            self.paused_until, self._promised = moment, 0.0
            self._pauses += 1
            self.freed.clear()
            made = min(
                self.full_at, now + self._pace.burst * self.interval
            )  # what is not void: calls until now
            self.full_at = max(made, moment + (self._pace.burst - 1) * self.interval)

    def _change(self, interval: float, now: float) -> None:
        """What was taken ahead stays taken: it is counted in intervals. What was promised stays promised."""
        if interval > self.interval:  # what was taken before took less, and would be given back as more
            self._number += 1
            self._delayed += 1
        start = self._start(now)
        if self.full_at > start:
            self.full_at = start + (self.full_at - start) * interval / self.interval
        self.interval = interval

    # --- looking ---

    def matters(self, now: float) -> bool:
        """Whether a new one in its place would admit more."""
        is_slow = self.interval > self._pace.start and now < self._slowed_at + _REMEMBERED
        return (
            is_slow
            or (self.in_row > 0 and now < self.paused_until + _REMEMBERED)
            or now < max(self._start(now), self.full_at)
            or (self.purse > 0 and now < self.purse_until)
        )

    def coming(self, now: float, until: float) -> float:
        """How much may be taken by then."""
        start = self._start(now)
        if start >= until:
            return 0.0
        return (
            max(0.0, self._pace.burst - max(0.0, self.full_at - start) / self.interval)
            + (until - start) / self.interval
        )

    def remaining(self, now: float) -> float:
        """How much may be taken now."""
        if now < self._start(now):
            return 0.0
        return max(0.0, self._pace.burst - max(0.0, self.full_at - now) / self.interval)
