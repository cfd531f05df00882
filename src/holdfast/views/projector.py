"""Runs one view: reads the log of events, folds them into rows, and keeps rows and checkpoint in one commit."""

from __future__ import annotations

from holdfast.fleet.leading import TTL, Leading
from holdfast.kernel.clock import monotonic, sleep
from holdfast.kernel.crashpoints import crashpoint
from holdfast.kernel.errors import LeaseLost
from holdfast.kernel.randomness import jittered
from holdfast.kernel.telemetry import note
from holdfast.store.bell import LOG
from holdfast.store.event_records import OutboxEvent
from holdfast.store.ports import Store
from holdfast.store.records import Lease
from holdfast.store.view_records import Aside, Checkpoint, SetAside, ViewBatch
from holdfast.views.fold import Fold, Heard, hear, hear_again, keys_of
from holdfast.views.lag import gap_in, lag_at
from holdfast.views.projection import Projection
from holdfast.views.rebuilding import first_position

LEASE_NAME = "holdfast:view:{}"  # also the name of the hint that it has gone on
BATCH = 500  # events of one commit
ASIDE_LIMIT = (
    1_000  # events set aside in one generation: with more of them something else is wrong, and it waits
)
_POLL = 1.0  # seconds between looks at the log without a hint
_FIRST_TRY, _LAST_TRY = 1.0, 60.0  # seconds between tries of what is set aside, growing
_TOLD = 10.0  # seconds between notes on its lag
_SEEN = 3_600.0  # seconds after which it says again that somebody runs it
_SLICE = 0.01  # seconds for which it folds before others have a turn


class Changed(Exception):
    """Somebody has begun a rebuild, or had the view forgotten, or the log is another since: go on with what is stored now."""


class Projector(Leading):
    """A service of every worker that has the view; one at a time does it, under a lease."""

    def __init__(self, store: Store, projection: Projection, *, owner: str, ttl: float = TTL) -> None:
        name = projection.name
        super().__init__(f"view {name}", store, lease=LEASE_NAME.format(name), owner=owner, ttl=ttl)
        self._projection = projection
        self._term_now: Term | None = None

    def trouble(self) -> str | None:
        """Of the store, and of the view itself as long as this one runs it."""
        own = [] if self._term_now is None else self._term_now.troubles.values()
        told = [f"{self._name}: {each}" for each in own]
        return "; ".join([*([self._trouble] if self._trouble else []), *told]) or None

    async def _serve(self, lease: Lease) -> None:
        term = self._term_now = Term(self._store, self._projection, lease)
        try:
            while True:
                more = await term.turn()
                self._trouble = None
                if not more:
                    await self._store.wakeups.wait((LOG,), jittered(_POLL))
        finally:
            self._term_now = None

    async def catch_up(self, lease: Lease) -> bool:
        """Read all that there is; whether there was any. For who has the lease and does not stay."""
        term, found = Term(self._store, self._projection, lease), False
        while await term.turn():
            found = True
        return found


class Term:
    """What is done under one lease."""

    def __init__(self, store: Store, projection: Projection, lease: Lease) -> None:
        self._store, self._projection, self._lease = store, projection, lease
        self._name = projection.name
        self._seen = self._told = -_SEEN
        self._retries: dict[int, Retries] = {}  # by generation
        self.troubles: dict[str, str] = {}  # by what they are about

    async def turn(self) -> bool:
        """One batch of each generation; whether there may be more."""
        await self._say_seen()
        try:
            more = await self._go_on_with_all()
        except Changed:
            more = False
        await self._tell_lag()  # also while there is more: that is when it is behind
        return more

    async def _say_seen(self) -> None:
        """Also begins the view, the first time that anybody runs it."""
        if monotonic() - self._seen >= _SEEN:
            start = await first_position(self._store)
            history = self._projection.history
            if await self._store.views.begin(self._name, start=start, history=history) is not None:
                self._seen = monotonic()

    async def _go_on_with_all(self) -> bool:
        generations = await self._store.views.checkpoints(view=self._name)
        if not generations:
            self._seen = -_SEEN  # somebody has told the store to forget it
            self.troubles.clear()
            return True
        more = [await self._go_on(each) for each in generations]
        has_switched = len(generations) > 1 and await self._switch()
        return has_switched or any(more)

    async def _go_on(self, checkpoint: Checkpoint) -> bool:
        await self._try_again(checkpoint)
        retries = self._retries[checkpoint.generation]
        if retries.number > ASIDE_LIMIT:
            return False
        events = await self._store.outbox.log(after=checkpoint.position, limit=BATCH)
        events = self._without_gap(checkpoint, events)
        if not events:
            return False
        return await self._take(checkpoint, events, retries)

    def _without_gap(self, checkpoint: Checkpoint, events: list[OutboxEvent]) -> list[OutboxEvent]:
        """Those up to the first that is missing."""
        whole = []
        for place, event in enumerate(events, checkpoint.position + 1):
            if event.position != place:
                break
            whole.append(event)
        if events:  # without, there may be nothing new, or nothing left: `_tell_lag` looks at that
            self._tell_gap(checkpoint, gap_in(checkpoint.position, checkpoint.position, events))
        return whole

    def _tell_gap(self, checkpoint: Checkpoint, gap: tuple[int, int] | None) -> None:
        lost = None
        if gap is not None:
            lost = (
                f"the events from position {gap[0]} to {gap[1]} are gone: they were "
                f"pruned before this view had read them. Rebuild it from what is left: holdfast views rebuild {self._name} --partial"
            )
        self._say(checkpoint, "gap", lost)

    async def _take(self, checkpoint: Checkpoint, events: list[OutboxEvent], retries: Retries) -> bool:
        heard = hear(self._projection, events)
        fold = await self._loaded(checkpoint, heard)
        upto = events[-1].position or 0
        began = monotonic()
        stopped = None
        for each in heard:
            if not fold.take(each) and self._projection.on_error == "stop":
                upto, stopped = each.position - 1, fold.aside.pop()
                break
            if monotonic() - began > _SLICE:
                await sleep(0)
                began = monotonic()
        if upto > checkpoint.position:
            seen = tuple(event.id for event in events[: upto - checkpoint.position])
            await self._apply(checkpoint, fold, upto=upto, seen=seen)
            retries.add(len(fold.aside))
            self._tell_aside(checkpoint, retries)
            for late in fold.late:
                note("view.late_ignored", view=self._name, event=late.event_id, position=late.position)
        self._tell_stop(checkpoint, stopped)
        return stopped is None

    def _tell_stop(self, checkpoint: Checkpoint, at: SetAside | None) -> None:
        told = None
        if at is not None:
            what = at.error.partition("\n")[0]
            told = f"stands still before position {at.position}, event {at.event_id}, which it cannot take: {what}"
        self._say(checkpoint, "stopped", told)

    async def _loaded(self, checkpoint: Checkpoint, heard: list[Heard]) -> Fold:
        keys = keys_of(heard)
        return Fold(self._projection, await self._store.views.load(self._name, checkpoint.generation, keys))

    async def _apply(
        self,
        checkpoint: Checkpoint,
        fold: Fold,
        *,
        upto: int,
        seen: tuple[str, ...] = (),
        settled: tuple[int, ...] = (),
    ) -> None:
        batch = ViewBatch(
            view=self._name,
            generation=checkpoint.generation,
            after=checkpoint.position,
            upto=upto,
            seen=seen,
            rows=fold.rows,
            aside=tuple(fold.aside),
            settled=settled,
        )
        crashpoint("view.before_apply")
        if not await self._store.views.apply(self._lease, batch):
            await self._check_lease()
            raise Changed
        crashpoint("view.after_apply")
        self._store.wakeups.hint((LEASE_NAME.format(self._name),))
        for event in fold.aside:
            note("view.set_aside", view=self._name, event=event.event_id, key=event.key, error=event.error)
        note(
            "view.applied",
            view=self._name,
            generation=checkpoint.generation,
            position=upto,
            rows=len(batch.rows),
        )

    async def _check_lease(self) -> None:
        held = await self._store.leases.get(self._lease.name)
        if held is None or held.token != self._lease.token:
            raise LeaseLost(f"the lease of the view {self._name!r} is another's")

    # --- what is set aside ---

    async def _try_again(self, checkpoint: Checkpoint) -> None:
        """Of each row the first that waits: when that can be taken now, so may those behind it."""
        retries = self._retries.setdefault(checkpoint.generation, Retries())
        if not retries.is_due:
            return
        asides = await self._store.views.aside(
            self._name, generation=checkpoint.generation, limit=ASIDE_LIMIT + 1
        )
        if asides:
            settled = await self._take_again(checkpoint, asides)
            left = len(asides) - settled
            if len(asides) > ASIDE_LIMIT:  # there may be more than were read
                left = await self._store.views.count_aside(
                    self._name, generation=checkpoint.generation, limit=ASIDE_LIMIT + 1
                )
            retries.tried(left, better=settled > 0)
        else:
            retries.tried(0, better=True)
        self._tell_aside(checkpoint, retries)

    def _tell_aside(self, checkpoint: Checkpoint, retries: Retries) -> None:
        told = f"{retries.number:,} events are set aside; holdfast views show {self._name} tells why"
        if retries.number > ASIDE_LIMIT:
            told = f"stands still: more than {ASIDE_LIMIT:,} events are set aside"
        self._say(checkpoint, "aside", told if retries.number else None)

    async def _take_again(self, checkpoint: Checkpoint, asides: list[Aside]) -> int:
        heard = hear_again(self._projection, asides)
        loaded = await self._store.views.load(self._name, checkpoint.generation, keys_of(heard))
        fold = Fold.again(self._projection, loaded)
        settled = tuple(each.position for each in heard if fold.take_again(each))
        await self._apply(checkpoint, fold, upto=checkpoint.position, settled=settled)
        return len(settled)

    # --- generations ---

    async def _switch(self) -> bool:
        """To the one that is built, once it has read as far as the one that serves."""
        generations = await self._store.views.checkpoints(view=self._name)
        building = [each for each in generations if each.state == "building"]
        serving = [each for each in generations if each.state == "serving"]
        if not building or not serving or building[0].position < serving[0].position:
            return False
        if not await self._store.views.switch(self._lease, self._name, building[0].generation):
            waits = "it is built, and does not serve: events are set aside in it that the old one has"
            self._say(building[0], "switch", waits)
            return False
        self.troubles.clear()
        self._retries.pop(serving[0].generation, None)
        self._store.wakeups.hint((LEASE_NAME.format(self._name),))
        note("view.switched", view=self._name, generation=building[0].generation)
        return True

    # --- telling ---

    def _say(self, checkpoint: Checkpoint, about: str, what: str | None) -> None:
        name = f"{checkpoint.generation}:{about}"
        if what is None:
            self.troubles.pop(name, None)
            return
        told = what if checkpoint.state == "serving" else f"its rebuild: {what}"
        if self.troubles.get(name) != told:
            self.troubles[name] = told
            note("view.trouble", view=self._name, trouble=told)

    async def _tell_lag(self) -> None:
        if monotonic() - self._told >= _TOLD:
            self._told = monotonic()
            for checkpoint in await self._store.views.checkpoints(view=self._name):
                lag = await lag_at(self._store, checkpoint)
                if lag.gap is not None:  # also when nothing is left behind it
                    self._tell_gap(checkpoint, lag.gap)
                if checkpoint.state == "serving":
                    note("view.lag", view=self._name, events=lag.events, seconds=lag.seconds, aside=lag.aside)


class Retries:
    """When to try again what is set aside: soon at first, then about once a minute."""

    def __init__(self) -> None:
        self.number = 0
        self._pause, self._due = _FIRST_TRY, 0.0
        self._is_new = True

    @property
    def is_due(self) -> bool:
        return self._is_new or (self.number > 0 and monotonic() >= self._due)

    def add(self, number: int) -> None:
        if number and not self.number:
            self._wait(_FIRST_TRY)
        self.number += number

    def tried(self, left: int, *, better: bool) -> None:
        self._is_new, self.number = False, left
        self._wait(_FIRST_TRY if better else min(self._pause * 2, _LAST_TRY))

    def _wait(self, pause: float) -> None:
        self._pause, self._due = pause, monotonic() + jittered(pause)
