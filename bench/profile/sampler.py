"""Samples on the CPU clock: what each thread was doing, weighed by the CPU time that it has used since the last look."""

from __future__ import annotations

import gc
import signal
import sys
import threading
import time
from collections import Counter
from types import FrameType
from typing import Any

from bench.profile.parts import TOTAL, part_of

_WAITING = {"select", "take"}  # the functions in which threads wait
_EVERY = 0.001  # seconds of CPU time; the kernel may make it a few more


class Sampler:
    """Each sample belongs to the thread that was at work, the main one or the writer; each thread has its own CPU time."""

    def __init__(self, writer: str) -> None:
        self._writer = writer
        self._samples: dict[bool, Counter[str]] = {
            True: Counter(),
            False: Counter(),
        }  # of the main thread, or not
        self.lines: Counter[str] = Counter()

    def start(self) -> None:
        self._first = self._last = _used()
        gc.callbacks.append(_notice)
        signal.signal(signal.SIGPROF, self._look)
        signal.setitimer(signal.ITIMER_PROF, _EVERY, _EVERY)

    def stop(self) -> dict[str, float]:
        """Seconds of CPU time by part."""
        signal.setitimer(signal.ITIMER_PROF, 0)
        gc.callbacks.remove(_notice)
        main, whole = (now - then for now, then in zip(_used(), self._first, strict=True))
        found: Counter[str] = Counter({TOTAL: whole})
        for is_main, seconds in ((True, main), (False, whole - main)):
            samples = self._samples[is_main] or Counter({"other": 1})
            for part, number in samples.items():
                found[part] += seconds * number / samples.total()
        return dict(found)

    def _look(self, _: int, frame: FrameType | None) -> None:
        now, last = _used(), self._last
        self._last = now
        own = now[0] - last[0]
        is_main = own >= (now[1] - last[1]) - own
        there = frame if is_main else self._frame_of_writer()
        if there is None or there.f_code.co_name in _WAITING:
            return  # it waits by now, and what it did before cannot be seen
        part = part_of(there)
        self._samples[is_main][part] += 1
        name = there.f_code.co_filename.rsplit("/", 2)[-1]
        self.lines[f"{name}:{there.f_lineno} {there.f_code.co_name} ({part})"] += 1

    def _frame_of_writer(self) -> FrameType | None:
        frames = sys._current_frames()  # noqa: SLF001  there is no other way
        for thread in threading.enumerate():
            if self._writer in thread.name and thread.ident in frames:
                return frames[thread.ident]
        return None


def _used() -> tuple[float, float]:
    """CPU seconds of the main thread, which runs this, and of all threads."""
    return time.thread_time(), time.process_time()


def _notice(phase: str, info: dict[str, Any]) -> None:
    """A signal that comes during a collection is heard here, right after it."""
