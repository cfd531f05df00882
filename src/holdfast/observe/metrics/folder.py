"""The numbers of all processes that share a folder. Those of the dead are added to the past, each once; so none ever falls."""

from __future__ import annotations

import fcntl
import json
import os
from collections import Counter
from collections.abc import Awaitable, Callable, Generator, Iterable
from contextlib import contextmanager
from pathlib import Path

import msgspec

from holdfast.kernel.telemetry import note
from holdfast.observe.metrics.cells import Left, adopt, key_of, look
from holdfast.observe.metrics.journal import COUNTED, Block, left_in
from holdfast.observe.metrics.ledger import SUFFIX

_LOCK, _PAST = "lock", "past.json"
Settle = Callable[[bytes], Awaitable["list[tuple[int, float]] | None"]]


class _Past(msgspec.Struct):
    merged: list[str]
    numbers: dict[str, float]


class Folder:
    def __init__(self, path: Path) -> None:
        self.path = path

    def read(self) -> dict[str, float]:
        """The sums of the living and the dead, by their names."""
        with self._locked():
            merged, past = self._past()
            return _sum([past, *(look(path) for path in self._files() if path.name not in merged)])

    def living(self) -> list[dict[str, float]]:
        """Of each process that has its file still."""
        merged, _ = self._past()
        return [look(path) for path in self._files() if path.name not in merged]

    async def tidy(self, settle: Settle) -> None:
        """Count what the dead had sent and did not hear of, and add their numbers to the past."""
        for path in self._files():
            if (left := adopt(path)) is None:
                continue
            try:
                if await _settled(left, settle):
                    self._bury(left)
            finally:
                left.close()

    def _bury(self, left: Left) -> None:
        """In one rename. Whoever is killed before the file is removed finds it named among the merged."""
        assert left.path is not None
        with self._locked():
            merged, past = self._past()
            files = {path.name for path in self._files()}
            if left.path.name not in files:
                return  # another has done it, before we had the lock
            if left.path.name not in merged:
                past = _sum([past, {name: number for name, number in left.read().items() if _is_kept(name)}])
                merged = (merged & files) | {left.path.name}
                self._keep(json.dumps({"merged": sorted(merged), "numbers": past}))
            left.path.unlink(missing_ok=True)

    def _keep(self, past: str) -> None:
        draft = self.path / f"{_PAST}.new"
        with draft.open("w") as file:
            file.write(past)
            file.flush()
            os.fsync(file.fileno())  # or a machine that loses its power leaves an empty one
        draft.rename(self.path / _PAST)

    def _past(self) -> tuple[set[str], dict[str, float]]:
        try:
            found = msgspec.json.decode((self.path / _PAST).read_bytes(), type=_Past)
        except FileNotFoundError:
            return set(), {}
        except msgspec.DecodeError as error:  # Prometheus takes it for a new beginning
            note("metrics.untidy", error=repr(error))
            return set(), {}
        return set(found.merged), found.numbers

    def _files(self) -> list[Path]:
        return sorted(self.path.glob(f"*{SUFFIX}"))

    @contextmanager
    def _locked(self) -> Generator[None, None, None]:
        """For no longer than files are read and one is written."""
        fd = os.open(self.path / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX)
            yield
        finally:
            os.close(fd)


async def _settled(left: Left, settle: Settle) -> bool:
    """Whether nothing of it is open any more."""
    whole = True
    for block in left_in(left):
        if block.state == COUNTED:
            block.finish()
        elif not await _settled_block(left, block, settle):
            whole = False
    return whole


async def _settled_block(left: Left, block: Block, settle: Settle) -> bool:
    added = await settle(block.what_was_sent())
    if added is None:
        return False
    with left.lock:
        block.count(added)
    return True


def _sum(many: Iterable[dict[str, float]]) -> dict[str, float]:
    found = Counter[str]()
    for numbers in many:
        for name, number in numbers.items():
            found[name] += number  # type: ignore[assignment]  # a Counter of floats adds them as well
    return dict(found)


def _is_kept(name: str) -> bool:
    """A gauge says what is so now, and this process is gone."""
    return key_of(name)[0] != "g"
