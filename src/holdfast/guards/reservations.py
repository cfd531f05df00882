"""A reservation: quota that was taken for a call at a known moment. It is spent by that call, or given back."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Protocol

from holdfast.guards.meters import Receipt

HOLD = 1.0  # seconds after its moment during which a reservation is good


class Giver(Protocol):
    """The limiter, as its reservations see it."""

    def take_back(self, reservation: Reservation, /) -> None: ...
    def honours(self, reservation: Reservation, /) -> bool: ...


class Reservation:
    """The right to make one call from `at` on, a moment of the monotonic clock, until a second later at most.

    It is void when the other side asks for a pause meanwhile. One that is kept belongs to the run that it let begin: the
    limiter never gets it back, and it is still good for one call of that run. `lender` is the one that this was taken from.
    """

    __slots__ = ("_giver", "_lender", "at", "cost", "is_kept", "is_open", "key", "receipt", "until")

    def __init__(
        self,
        giver: Giver,
        key: str,
        cost: float,
        at: float,
        receipt: Receipt,
        *,
        until: float | None = None,
        lender: Reservation | None = None,
    ) -> None:
        self._giver, self.key, self.cost, self.at, self.receipt = giver, key, cost, at, receipt
        self._lender = lender
        self.until = at + HOLD if until is None else until
        self.is_open = True  # neither spent nor given back
        self.is_kept = False

    def keep(self) -> None:
        """Its run begins, and has spent it by that."""
        self.is_kept = True

    def give_back(self) -> None:
        """The call will not be made. After it was spent this does nothing."""
        if not self.is_open:
            return
        self.is_open = False
        if self._lender is not None:
            self._lender.is_open = True  # for the next call of its run
        elif not self.is_kept:
            self._giver.take_back(self)

    def left(self, now: float) -> float:
        """Seconds for which it is still good; 0: it has lapsed."""
        return max(0.0, self.until - now)

    def spend(self, now: float) -> bool:
        """The call is made. False: it was used already, is too old or void, and counts for nothing."""
        is_good = self.is_open and now <= self.until and self._giver.honours(self)
        self.is_open = False
        return is_good

    def is_of(self, giver: object, key: str, cost: float) -> bool:
        """Whether it can be used for this. A call that names no key has that of the reservation it came with."""
        return self.is_open and self._giver is giver and key in (self.key, "") and self.cost >= cost


_carried: ContextVar[Reservation | None] = ContextVar("holdfast_reservation", default=None)


@contextmanager
def carrying(reservation: Reservation | None) -> Generator[Reservation | None, None, None]:
    """The first call inside that needs this limiter and key spends it; if there is none, it is given back at the end, unless it is kept."""
    mark = _carried.set(reservation)
    try:
        yield reservation
    finally:
        _carried.reset(mark)
        if reservation is not None:
            reservation.give_back()


def carried(giver: object, key: str, cost: float) -> Reservation | None:
    """The reservation that this call came with."""
    found = _carried.get()
    return found if found is not None and found.is_of(giver, key, cost) else None
