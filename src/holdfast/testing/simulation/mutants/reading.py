"""Bugs in what reads events and values: views, their checkpoints and rebuilds, and cached functions."""
# ruff: noqa: ARG001, ARG005, SLF001  a planted function takes what the true one takes, and reaches what it reaches

from __future__ import annotations

from collections.abc import Awaitable, Collection
from contextlib import ExitStack
from functools import partial
from typing import Any

import msgspec

from holdfast.kernel.clock import monotonic
from holdfast.store.cache_records import Entry, Load
from holdfast.store.ports import Store
from holdfast.store.records import Lease
from holdfast.store.sqlite import cache, views
from holdfast.store.sqlite.connection import Db
from holdfast.store.view_records import ViewBatch
from holdfast.testing.simulation.mutants.planting import mutant, replace, rewrite
from holdfast.views import fold, projector
from holdfast.views import view as of_view
from holdfast.views.cache_flights import Flights
from holdfast.views.cache_loading import Loader
from holdfast.views.cache_memory import MemoryCache
from holdfast.views.cache_place import Place
from holdfast.views.goal import Goal

of_events = partial(mutant, kind="events")

# --- views ---


@of_events("a view's checkpoint is beside")
def _a_views_checkpoint_is_beside(stack: ExitStack) -> None:
    """how far a view has read is committed before its rows are"""
    original = Db.run

    def run(self: Db, sql: str, *params: Any) -> int:
        changed = original(self, sql, *params)
        if "UPDATE holdfast_view SET position" in sql:
            self.commit()
            self.begin("IMMEDIATE")
        return changed

    replace(stack, Db, "run", run)


@of_events("views are not fenced")
def _views_are_not_fenced(stack: ExitStack) -> None:
    """who has lost a view's lease still writes its rows"""
    replace(stack, views, "_is_held", lambda db, lease: True)


@of_events("no version is looked at")
def _no_version_is_looked_at(stack: ExitStack) -> None:
    """an old batch of a view is written over newer rows, and takes its checkpoint back"""
    replace(stack, views, "_is_held", lambda db, lease: True)
    rewrite(
        stack,
        ("state <> 'old' AND position = ?", "state <> 'old' AND ? IS NOT NULL"),
        ("WHERE r.position < excluded.position", ""),
        only="holdfast_view",
    )


@of_events("a batch is folded twice")
def _a_batch_is_folded_twice(stack: ExitStack) -> None:
    """a view whose answer was lost reads again from where it was, and counts what it has"""
    original = views.apply

    def apply(db: Db, lease: Lease, batch: ViewBatch) -> bool:
        if not original(db, lease, batch):
            return False
        sql = "UPDATE holdfast_view SET position = ? WHERE view = ? AND generation = ?"
        if batch.upto > batch.after + 1:
            db.run(sql, batch.upto - 1, batch.view, batch.generation)
        return True

    replace(stack, views, "apply", apply)


@of_events("a rebuild serves at once")
def _a_rebuild_serves_at_once(stack: ExitStack) -> None:
    """a new generation of a view takes the old one's place before it has read as far"""
    original = views.begin_rebuild

    def begin_rebuild(db: Db, view: str, *, start: int, actor: str) -> Any:
        building = original(db, view, start=start, actor=actor)
        db.run("UPDATE holdfast_view SET state = 'old' WHERE view = ? AND state = 'serving'", view)
        db.run("UPDATE holdfast_view SET state = 'serving' WHERE view = ? AND state = 'building'", view)
        return building

    replace(stack, views, "begin_rebuild", begin_rebuild)


@of_events("a rebuild begins at the end")
def _a_rebuild_begins_at_the_end(stack: ExitStack) -> None:
    """who builds a view anew takes the newest position for the first"""

    async def rebuild(store: Store, name: str, *, partial: bool, actor: str) -> Any:
        newest = (await store.outbox.lag()).position
        return await store.views.begin_rebuild(name, start=newest, actor=actor)

    replace(stack, of_view, "rebuild", rebuild)


@of_events("a rebuild serves without what it set aside")
def _a_rebuild_serves_without_what_it_set_aside(stack: ExitStack) -> None:
    """a new generation of a view takes the old one's place although it lacks events that the old one has"""
    serves, _, _ = views._MAY_SERVE.partition(" AND NOT EXISTS")
    replace(stack, views, "_MAY_SERVE", serves)


@of_events("own writes are not waited for")
def _own_writes_are_not_waited_for(stack: ExitStack) -> None:
    """who asks for the row with his own event gets the row that is there"""
    original = Goal._has_read

    async def has_read(self: Goal, event_id: str) -> bool:
        await original(self, event_id)
        return True

    replace(stack, Goal, "_has_read", has_read)


@of_events("a view reads what it likes")
def _a_view_reads_what_it_likes(stack: ExitStack) -> None:
    """of a stretch of the log the last event is left out, and the checkpoint passes it"""
    original = fold.hear
    replace(
        stack,
        projector,
        "hear",
        lambda projection, events: original(projection, list(events)[:20][:-1] or events),
    )


# --- cached functions ---


@of_events("every reader loads")
def _every_reader_loads(stack: ExitStack) -> None:
    """nobody looks whether the value is being loaded in this process"""
    replace(stack, Flights, "get", lambda self, place, key: None)
    replace(stack, MemoryCache, "begin", _granted)
    _every_process_loads(stack)


async def _granted(self: MemoryCache, key: str, *, tags: Any, lease: float, why: Any = None) -> Load:
    row = self._rows.get(key) or self._new(key)
    self._token += 1
    row.token, row.lease_until = self._token, monotonic() + lease
    return Load(key, self._token, row.lease_until)


@of_events("every process loads")
def _every_process_loads(stack: ExitStack) -> None:
    """who wants to load a value is not told that another does"""
    original = cache._entry

    def entry(db: Db, row: Any) -> Entry:
        return msgspec.structs.replace(original(db, row), is_loading=False)

    replace(stack, cache, "_entry", entry)


@of_events("a load overwrites an invalidation")
def _a_load_overwrites_an_invalidation(stack: ExitStack) -> None:
    """a value that was loaded before an invalidation is kept after it"""

    def put(db: Db, load: Load, value: str, *, fresh: float, stale: float) -> bool:
        tags = "[]"
        sql = """INSERT OR REPLACE INTO holdfast_cache (key, value, written_at, fresh_until, stale_until, tags, forget)
            VALUES (?, ?, ?, ?, ?, ?, ?)"""
        db.run(sql, load.key, value, db.now, db.now + fresh, db.now + stale, tags, db.now + stale)
        return True

    def held(self: MemoryCache, load: Load) -> Any:
        return self._rows.get(load.key) or self._new(load.key)

    replace(stack, cache, "put", put)
    replace(stack, MemoryCache, "_held", held)


@of_events("tags are not looked at")
def _tags_are_not_looked_at(stack: ExitStack) -> None:
    """a value is served although one of its tags was invalidated since"""
    replace(stack, cache, "_counts", lambda db, tags: True)


@of_events("what is refused is served all the same")
def _what_is_refused_is_served_all_the_same(stack: ExitStack) -> None:
    """who asks after an invalidation joins a load from before it, and gets what that brings"""

    async def keep(self: Loader, load: Load, text: str) -> bool:
        await self._place.put(load, text, fresh=self._terms.fresh_for(), stale=self._terms.stale)
        return True

    replace(stack, Loader, "_keep", keep)


@of_events("stale for ever")
def _stale_for_ever(stack: ExitStack) -> None:
    """an old value is served however old it is, while nobody can load a new one"""
    original = MemoryCache.put

    async def put(self: MemoryCache, load: Load, value: str, *, fresh: float, stale: float) -> bool:
        return await original(self, load, value, fresh=fresh, stale=stale * 10)

    replace(stack, MemoryCache, "put", put)


@of_events("a cache's failure is everyone's")
def _a_caches_failure_is_everyones(stack: ExitStack) -> None:
    """a store that does not answer fails whoever reads through the cache"""

    async def answer(self: Place, verb: str, work: Awaitable[Any]) -> Any:
        return await work

    replace(stack, Place, "_answer", answer)


@of_events("an invalidation is forgotten")
def _an_invalidation_is_forgotten(stack: ExitStack) -> None:
    """what could not be invalidated at once is served again, as soon as the store answers"""

    async def invalidate(self: Place, kind: str, names: Collection[str]) -> bool:
        work = (
            self.kept.invalidate(tuple(names)) if kind == "key" else self.kept.invalidate_tags(tuple(names))
        )
        try:
            await work
        except Exception:  # noqa: BLE001  the bug
            return False
        return True

    replace(stack, Place, "invalidate", invalidate)
