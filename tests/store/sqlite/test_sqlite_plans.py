"""Statements of the SQLite store are planned once, and find what is held by an index, not by reading all that waits."""

from __future__ import annotations

import apsw
import pytest

from holdfast.store.sqlite import finding, holds, sagas
from holdfast.store.sqlite.store import SqliteStore
from holdfast.store.states import Held


@pytest.fixture
async def store(tmp_path):
    store = SqliteStore(tmp_path / "jobs.db")
    await store.open()
    yield store
    await store.close()


class Watched:
    """A connection that keeps what it was asked."""

    def __init__(self, db):
        self._db, self.asked = db, []

    def __getattr__(self, name):
        return getattr(self._db, name)

    @property
    def connection(self):
        return self

    def execute(self, sql, params):
        self.asked.append((sql, params))
        return self._db.connection.execute(sql, params)

    def rows(self, sql, *params):
        return self.execute(sql, params).fetchall()

    def plan(self):
        [(sql, params)] = self.asked
        return [row[3] for row in self._db.connection.execute(f"EXPLAIN QUERY PLAN {sql}", params)]


@pytest.mark.parametrize("reason", [Held.GUARD, Held.UNKNOWN_TASK])
async def test_what_is_held_is_let_go_by_the_index_of_its_reason(store, reason):
    def look(db):
        watched = Watched(db)
        holds.unhold(watched, reason, queue=None, tasks=None, guard=None, limit=10)
        return watched.plan()

    plan = await store.write(look)
    assert plan[0] == "SEARCH q USING COVERING INDEX holdfast_queued_by_hand (held=?)", plan
    assert not [line for line in plan if "TEMP B-TREE" in line], "in the order of the index"


@pytest.mark.parametrize("reason", [Held.GUARD, Held.TIME])
async def test_what_is_held_is_found_by_an_index(store, reason):
    def look(db):
        watched = Watched(db)
        wanted = {"state": None, "task": None, "queue": None, "tenant": None}
        finding.find(watched, correlation_id=None, before=None, limit=10, held=reason, **wanted)
        return watched.plan()

    first, *_ = await store.write(look)
    assert first.startswith("SCAN q USING INDEX"), first


async def test_a_statement_is_not_planned_again_for_other_values(store):
    """Who may use what is asked whenever a statement is planned."""

    def planned(db):
        asked = []

        def allow(*what):
            asked.append(what)
            return apsw.SQLITE_OK

        def times(number):
            before = len(asked)
            db.rows(sagas._HELD, number, number, f"id {number}")
            return len(asked) - before

        db.connection.authorizer = allow
        found = [times(number) for number in range(5)]
        db.connection.authorizer = None
        return found

    first, *others = await store.write(planned)
    assert first > 0
    assert set(others) == {0}
