"""Signals that ask this process to leave: heard on a thread of their own, since the event loop may stand still."""

from __future__ import annotations

import asyncio
import queue
import signal
import threading
import time
from collections.abc import Callable
from contextlib import suppress

from holdfast.kernel.telemetry import note

NUMBERS = (signal.SIGTERM, signal.SIGINT)
_ONE_MOMENT = 0.2  # seconds
_A_TURN = 1.0  # seconds without a turn of the loop: it stands still

Heard = Callable[[signal.Signals], None]


def on_signals(
    call: Heard, *, again: Heard | None = None, patience: float = 0.0, stuck: Callable[[], None] | None = None
) -> Callable[[], None]:
    """Have SIGTERM and SIGINT call this on the running loop; call what is returned to end that.

    `again` is called instead after the first, and `stuck` when the loop stands still `patience` seconds after it: both on
    another thread, for a task may block the loop. Two within a moment are one: a wrapper passes on what the terminal has
    sent to all, and Linux tells of a parent's death once for each of its threads.
    """
    listener = _Listener(call, again, patience, stuck)
    before = {number: signal.signal(number, listener.hear) for number in NUMBERS}

    def end() -> None:
        for number, handler in before.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)
        listener.end()

    return end


class _Listener:
    def __init__(
        self, call: Heard, again: Heard | None, patience: float, stuck: Callable[[], None] | None
    ) -> None:
        self._call, self._again, self._patience, self._stuck = call, again, patience, stuck
        self._loop = asyncio.get_running_loop()
        self._inbox: queue.SimpleQueue[tuple[int, float] | None] = queue.SimpleQueue()
        self._first: float | None = None
        self._taken = float("-inf")
        self._turned = threading.Event()
        threading.Thread(target=self._run, name="holdfast-signals", daemon=True).start()

    def hear(self, number: int, _frame: object) -> None:
        """In the signal handler, so between any two lines of the main thread: this queue's `put` may be called there."""
        self._inbox.put((number, time.monotonic()))

    def end(self) -> None:
        self._inbox.put(None)

    # --- on its own thread from here on ---

    def _run(self) -> None:
        while True:
            try:
                heard = self._inbox.get(timeout=self._pause())
            except queue.Empty:
                self._safely(self._look)
                continue
            if heard is None:
                return
            self._safely(self._take, *heard)

    def _safely(self, call: Callable[..., None], *args: object) -> None:
        """Whoever is told may fail: the next signal must still be heard."""
        try:
            call(*args)
        except Exception as error:  # noqa: BLE001  see above
            note("signal.failed", error=repr(error))

    def _pause(self) -> float | None:
        """Until it is time to look after the loop; after the first look, from turn to turn."""
        if self._first is None or self._stuck is None:
            return None
        return max(_A_TURN, self._first + self._patience - time.monotonic())

    def _take(self, number: int, now: float) -> None:
        if now - self._taken <= _ONE_MOMENT:
            return
        self._taken = now  # and not when it was heard: a key held down sends many, and must be obeyed
        is_first = self._first is None
        if is_first:
            self._first = now
        if is_first or self._again is None:
            self._post(self._call, signal.Signals(number))
        else:
            self._again(signal.Signals(number))

    def _look(self) -> None:
        self._turned.clear()
        self._post(self._turned.set)
        if not self._turned.wait(_A_TURN) and self._stuck is not None and self._inbox.empty():
            self._stuck()

    def _post(self, call: Callable[..., object], *args: object) -> None:
        with suppress(RuntimeError):  # the loop is closed: nobody waits any more
            self._loop.call_soon_threadsafe(call, *args)
