"""The last door before a slot: a guarded run is asked for when it would begin, and who may not begin takes no slot.

What a guard has granted is good for a moment only. Whoever waited for a slot with it would have lost it by then, and would wait
for more of it in the slot.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from functools import partial

from holdfast.guards.ways import ON_LOOP, Turn
from holdfast.jobs.gate import Gate
from holdfast.jobs.run import Run
from holdfast.kernel.clock import monotonic, recover
from holdfast.kernel.spawn import spawn

_SOON = 0.25  # seconds that are worth waiting for here, instead of holding the job: a little more than from one release to the next
_PATIENCE = 1.0  # seconds for all of it
_MOMENT = 0.002  # seconds: those that are turned away in it are so together


class Entrance:
    """`again` is called with runs that shall be asked for once more, `refused` with those that their guards refuse."""

    def __init__(
        self,
        again: Callable[[Sequence[Run]], None],
        refused: Callable[[Sequence[Run]], Awaitable[None]],
    ) -> None:
        self._again, self._refused = again, refused
        self._gate = Gate()
        # For quota that comes soon, such as the first of a fleet's, and in how many seconds it is worth asking again.
        self._waiting: list[tuple[Run, float]] = []
        self._turned_away: list[Run] = []
        self._since: dict[tuple[str, int], float] = {}  # by run: when it was first asked for
        self._turn: Turn | None = None  # of who waits for quota
        self._backs: list[Callable[[], None]] = []  # what ends that
        self._serving: asyncio.Task[None] | None = None

    def admits(self, run: Run) -> bool:
        """Whether it may begin now. If not, it is kept here: to be asked for again, or turned away."""
        if not run.is_guarded:
            return True
        if run.claim.decided:  # perhaps no call is left, and then it need not wait for one
            run.late = partial(self._gate.ask, run)
            return True
        wait, now = self._gate.ask(run), monotonic()
        if wait == 0.0:
            self._since.pop(run.key, None)
            return True
        if wait > _SOON or now - self._since.setdefault(run.key, now) > _PATIENCE:
            self._since.pop(run.key, None)
            self._turned_away.append(run)
        else:
            self._waiting.append((run, wait))
            if self._turn is not None and not self._is_called(run, self._turn):
                self._turn.call()
        if self._serving is None or self._serving.done():
            self._serving = spawn(self._serve(), name="worker-gate")
        return False

    async def _serve(self) -> None:
        while self._turned_away or self._waiting:
            await recover(_MOMENT)
            if self._turned_away:
                refused, self._turned_away = self._turned_away, []
                await self._refused(refused)
            elif self._waiting:
                await self._news()
                waiting, self._waiting = self._waiting, []
                self._again([run for run, _ in waiting])

    async def _news(self) -> None:
        """Until quota may have come for one of them: who is called need not ask again and again."""
        turn = self._turn = ON_LOOP.turn()
        uncalled = [wait for run, wait in self._waiting if not self._is_called(run, turn)]
        try:
            await turn.wait(min(uncalled, default=_SOON))
        finally:
            self._turn, backs, self._backs = None, self._backs, []
            for back in backs:
                back()

    def _is_called(self, run: Run, turn: Turn) -> bool:
        if (back := self._gate.call_when(run, turn.call)) is not None:
            self._backs.append(back)
        return back is not None

    def over(self, run: Run) -> None:
        """It has ended well."""
        if run.visit is not None:
            self._gate.over(run)

    def close(self) -> list[Run]:
        """Nobody else enters; returns who is here."""
        here = [*(run for run, _ in self._waiting), *self._turned_away]
        self._waiting, self._turned_away = [], []
        self._since.clear()
        return here
