"""`admissions all`: the API and a worker as processes of their own, which start together and end together."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from types import FrameType

from admissions.core import settings
from admissions.running import GRACE, SECOND_SIGNAL

_PATIENCE = GRACE + 15  # seconds; who has not left then is ended
_LOOK = 0.1  # seconds between looks at the children


class Both:
    """A signal is passed on; a child that ends by itself takes the other with it, since half a portal helps nobody."""

    def __init__(self, commands: list[list[str]]) -> None:
        self._asked = threading.Event()
        self._at_once = False
        self._children = [
            # A session of its own: Ctrl-C comes to us alone, and each child hears of it once.
            subprocess.Popen(command, start_new_session=True)  # noqa: S603  our own words
            for command in commands
        ]

    def on_signal(self, _number: int, _frame: FrameType | None) -> None:
        if self._asked.is_set():
            self._at_once = True
            self._send(signal.SIGKILL)
        self._asked.set()

    def run(self) -> int:
        while not self._asked.is_set() and all(each.poll() is None for each in self._children):
            self._asked.wait(_LOOK)
        died = next((each.returncode for each in self._children if each.returncode is not None), None)
        self._send(signal.SIGTERM)
        self._wait()
        if self._at_once:
            return SECOND_SIGNAL
        if died is not None and not self._asked.is_set():
            return died if died > 0 else 1
        return max((abs(each.returncode) for each in self._children), default=0)

    def _wait(self) -> None:
        until = time.monotonic() + _PATIENCE
        while any(each.poll() is None for each in self._children):
            if time.monotonic() > until:
                self._send(signal.SIGKILL)
            time.sleep(_LOOK)

    def _send(self, number: signal.Signals) -> None:
        for each in self._children:
            if each.poll() is None:
                each.send_signal(number)


def run(processes: int) -> int:
    this = [sys.executable, "-m", "admissions.main"]
    parent = ["--parent", str(os.getpid())]
    both = Both([[*this, "api", *parent], [*this, "worker", "-p", str(processes), *parent]])
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, both.on_signal)
    print(f"The portal is at {settings.public_url}; Ctrl-C ends it.", flush=True)  # noqa: T201  it is a command
    if settings.is_simulated:
        print(  # noqa: T201  a program speaks
            f"Stripe is simulated at {settings.stripe_url}: no money moves. Pay with card 4242 4242 4242 4242.",
            flush=True,
        )
    return both.run()
