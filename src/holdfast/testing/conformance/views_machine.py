"""Views: the model, and random batches, rebuilds and switches on it and on a store, under leases that are lost."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import count

from hypothesis import strategies as st
from hypothesis.stateful import invariant, rule

from holdfast.kernel.ids import new_id
from holdfast.store.records import Lease
from holdfast.store.view_records import NewRow, SetAside, ViewBatch
from holdfast.testing.conformance.store_machine import StoreMachine, same

VIEWS, KEYS = ("v1", "v2"), ("a", "b", "c")
TTL = 30.0


@dataclass
class Generation:
    number: int
    state: str
    start: int
    position: int
    token: int = 0
    rows: dict[str, NewRow] = field(default_factory=dict)
    aside: dict[int, tuple[str | None, int]] = field(default_factory=dict)  # position: (key, tries)


class ViewsModel:
    """`store.views`, without what time alone does."""

    def __init__(self) -> None:
        self.now = 0.0
        self.generations: dict[str, list[Generation]] = {view: [] for view in VIEWS}
        self.lease: tuple[int, float] | None = None  # token and end of the one that counts
        self.audited = 0

    def of(self, view: str, state: str) -> Generation | None:
        return next((each for each in self.generations[view] if each.state == state), None)

    def begin(self, view: str, start: int) -> Generation:
        return self.of(view, "serving") or self._make(view, "serving", start)

    def _make(self, view: str, state: str, start: int) -> Generation:
        number = 1 + max((each.number for each in self.generations[view]), default=0)
        self.generations[view].append(Generation(number, state, start, start))
        return self.generations[view][-1]

    def is_held(self, token: int) -> bool:
        return self.lease is not None and self.lease[0] == token and self.lease[1] > self.now

    def apply(self, token: int, batch: ViewBatch) -> bool:
        found = [each for each in self.generations[batch.view] if each.number == batch.generation]
        if not self.is_held(token) or not found or found[0].state == "old":
            return False
        generation = found[0]
        if generation.position != batch.after:
            again = (generation.position, generation.token) == (batch.upto, token)
            return again and batch.upto > batch.after
        generation.position, generation.token = batch.upto, token
        for row in batch.rows:
            before = generation.rows.get(row.key)
            if before is None or before.position < row.position:
                generation.rows[row.key] = row
        for event in batch.aside:
            _, tries = generation.aside.get(event.position, (None, 0))
            generation.aside[event.position] = (event.key, tries + 1)
        for position in batch.settled:
            generation.aside.pop(position, None)
        return True

    def begin_rebuild(self, view: str, start: int) -> Generation | None:
        if self.of(view, "serving") is None:
            return None
        if (building := self.of(view, "building")) is not None:
            building.state = "old"
        self.audited += 1
        return self._make(view, "building", start)

    def switch(self, token: int, view: str, number: int) -> bool:
        serving, building = self.of(view, "serving"), self.of(view, "building")
        if not self.is_held(token) or serving is None or building is None or building.number != number:
            return False
        waits = any(p <= serving.position and p not in serving.aside for p in building.aside)
        if building.position < serving.position or waits:
            return False
        serving.state, building.state = "old", "serving"
        return True

    def forget(self, view: str) -> bool:
        live = [each for each in self.generations[view] if each.state != "old"]
        for each in live:
            each.state = "old"
        self.audited += bool(live)
        return bool(live)

    def prune(self) -> int:
        olds = [each for view in VIEWS for each in self.generations[view] if each.state == "old"]
        for view in VIEWS:
            self.generations[view] = [each for each in self.generations[view] if each.state != "old"]
        return sum(len(each.rows) + len(each.aside) for each in olds)


views, places = st.sampled_from(VIEWS), st.sampled_from([0, 0, 0, 1])
which = st.sampled_from(["serving", "building", "building", "old"])
seldom = st.integers(0, 5)
changes = st.lists(
    st.tuples(st.sampled_from(KEYS), st.integers(1, 4), st.sampled_from(["{}", None])), max_size=3
)
failures = st.lists(st.tuples(st.integers(1, 4), st.sampled_from([*KEYS, None])), max_size=2)


class ViewsMachine(StoreMachine):
    def __init__(self) -> None:
        super().__init__()
        self.model = ViewsModel()
        self.leases: list[Lease] = []
        self._owner = count(1)
        self.take_lease()
        for view in VIEWS:
            self.begin(view, 0)

    @rule()
    def take_lease(self) -> None:
        held = self.model.lease is not None and self.model.lease[1] > self.model.now
        found = self.do(self.store.leases.acquire("v", owner=f"w{next(self._owner)}", ttl=TTL))
        same(found is None, held)
        if found is not None:
            self.leases.append(found)
            self.model.lease = (found.token, self.model.now + TTL)

    @rule(chance=seldom)
    def release(self, chance: int) -> None:
        lease = self.leases[-1]
        if chance == 0 and self.do(self.store.leases.release(lease)):
            self.model.lease = None

    @rule(seconds=st.sampled_from([1.0, 1.0, 1.0, 40.0]))
    def advance(self, seconds: float) -> None:
        self.do(self.bench.advance(self.store, seconds))
        self.model.now += seconds

    @rule(view=views, start=st.integers(0, 2))
    def begin(self, view: str, start: int) -> None:
        found = self.do(self.store.views.begin(view, start=start))
        assert found is not None
        expected = self.model.begin(view, start)
        same(
            (found.generation, found.start, found.position),
            (expected.number, expected.start, expected.position),
        )

    @rule(view=views, place=places, state=which, shift=st.sampled_from([0, 0, 0, 0, 1, -1]), length=st.integers(0, 3), rows=changes, failed=failures, settle=st.booleans())  # fmt: skip
    def apply(
        self,
        view: str,
        place: int,
        state: str,
        shift: int,
        length: int,
        rows: list[tuple[str, int, str | None]],
        failed: list[tuple[int, str | None]],
        settle: bool,
    ) -> None:
        known = self.model.of(view, state) or self.model.of(view, "serving")
        after = max(0, (0 if known is None else known.position) + shift)
        batch = ViewBatch(
            view=view,
            generation=9 if known is None else known.number,
            after=after,
            upto=after + length,
            rows=tuple(
                {key: NewRow(key=key, data=data, position=after + by) for key, by, data in rows}.values()
            ),
            aside=tuple(
                {
                    after + by: SetAside(
                        position=after + by, event_id=new_id(), event="{}", error="no", key=key
                    )
                    for by, key in failed
                }.values()
            ),
            settled=tuple(known.aside) if known is not None and settle and not failed else (),
        )
        lease = self.leases[-1 - place % len(self.leases)]
        same(self.do(self.store.views.apply(lease, batch)), self.model.apply(lease.token, batch))

    @rule(view=views, start=st.integers(0, 2), chance=seldom)
    def begin_rebuild(self, view: str, start: int, chance: int) -> None:
        if chance > 1 and self.model.of(view, "building") is not None:
            return  # or none would ever be done with
        found = self.do(self.store.views.begin_rebuild(view, start=start, actor="ada"))
        expected = self.model.begin_rebuild(view, start)
        same(found and found.generation, expected and expected.number)

    @rule(view=views, place=places)
    def switch(self, view: str, place: int) -> None:
        building = self.model.of(view, "building")
        number = 9 if building is None else building.number
        lease = self.leases[-1 - place % len(self.leases)]
        found = self.do(self.store.views.switch(lease, view, number))
        same(found, self.model.switch(lease.token, view, number))

    @rule(view=views, chance=seldom)
    def forget(self, view: str, chance: int) -> None:
        if chance == 0:
            same(self.do(self.store.views.forget(view, actor="ada")), self.model.forget(view))

    @rule()
    def prune(self) -> None:
        same(self.do(self.store.views.prune()), self.model.prune())

    @invariant()
    def the_store_is_as_the_model(self) -> None:
        live = [
            (view, each.number, each.state, each.start, each.position)
            for view in VIEWS
            for each in self.model.generations[view]
            if each.state != "old"
        ]
        found = self.do(self.store.views.checkpoints())
        same([(c.view, c.generation, c.state, c.start, c.position) for c in found], live)
        for view in VIEWS:
            self._same_rows(view, self.model.of(view, "serving"))
        same(len(self.do(self.store.audit.find(limit=1000))), self.model.audited)

    def _same_rows(self, view: str, serving: Generation | None) -> None:
        rows = {} if serving is None else serving.rows
        for key in KEYS:
            row, expected = self.do(self.store.views.get(view, key)), rows.get(key)
            same(row and (row.data, row.position), expected and (expected.data, expected.position))
        there = sorted(key for key, row in rows.items() if row.data is not None)
        same([row.key for row in self.do(self.store.views.find(view))], there)
        aside = {} if serving is None else serving.aside
        found = [(each.position, each.key, each.tries) for each in self.do(self.store.views.aside(view))]
        same(found, [(position, *aside[position]) for position in sorted(aside)])
        same(self.do(self.store.views.count_aside(view, limit=1000)), len(aside))
        if serving is not None:
            held = self.do(self.store.views.load(view, serving.number, KEYS)).held
            same(held, {key for key, _ in aside.values() if key is not None})
