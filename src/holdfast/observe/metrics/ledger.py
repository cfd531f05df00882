"""The numbers of this process: in memory, or in the folder that several processes share (HOLDFAST_METRICS_FOLDER)."""

from __future__ import annotations

import os
from pathlib import Path

from holdfast.kernel.forks import tell_child
from holdfast.kernel.ids import new_id
from holdfast.kernel.telemetry import note
from holdfast.observe.metrics.cells import FULL, Cells
from holdfast.observe.metrics.journal import Journal

FOLDER = "HOLDFAST_METRICS_FOLDER"
SUFFIX = ".cells"


class Ledger:
    """`cells` and `journal` of this process; `turn` changes when they are others, as in a process that was forked."""

    def __init__(self) -> None:
        self.turn = 0
        self.folder: Path | None = None
        self._cells: Cells | None = None
        self._journal: Journal | None = None
        tell_child(self)

    def begin(self) -> None:
        """Make room for them, once."""
        if self._cells is None:
            self._begin(_named())

    @property
    def cells(self) -> Cells:
        self.begin()
        assert self._cells is not None
        return self._cells

    @property
    def journal(self) -> Journal:
        if self._journal is None:
            self._journal = Journal(self.cells)
        return self._journal

    def keep_in(self, folder: Path) -> None:
        """From now on; what was counted before comes along."""
        before = {} if self._cells is None else self._cells.read()
        self.turn += 1
        self._cells = self._journal = None
        self._begin(folder)
        for name, number in before.items():
            self.cells.numbers[self.cells.place_of(name)] = number

    def forked(self) -> None:
        """What the parent has counted is the parent's."""
        self.turn += 1
        self._cells = self._journal = None

    def _begin(self, folder: Path | None) -> None:
        self.folder = folder
        if folder is None:
            self._cells = Cells()
            return
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._cells = Cells(folder / f"{os.getpid()}-{new_id()}{SUFFIX}")
        except OSError as error:
            if error.errno not in FULL:
                raise
            note("metrics.no_room", error=repr(error))
            self._cells = Cells()


def _named() -> Path | None:
    given = os.environ.get(FOLDER)
    return Path(given) if given else None


ledger = Ledger()
