"""`watchdog(60)`: an API whose event loop stands still ends itself, where nobody restarts what does not answer."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from holdfast.kernel import voice
from holdfast.kernel.names import check_seconds
from holdfast.kernel.processes import exit_now
from holdfast.kernel.watchdog import Watchdog

_STUCK = 70  # as a worker with --watchdog


@contextmanager
def watchdog(seconds: float = 60.0) -> Generator[None, None, None]:
    """`with watchdog(60): yield` in the lifespan of an app: the process ends, with the exit code 70, when its event loop has not turned for so long.

    Time for which the whole process was stopped does not count.
    """
    limit = check_seconds("seconds", seconds, minimum=1)

    def stuck() -> None:
        voice.say(f"holdfast: leaving at once: the event loop has stood still for {limit:g} s")
        exit_now(_STUCK)

    dog = Watchdog(limit, stuck)
    try:
        yield
    finally:
        dog.stop()
