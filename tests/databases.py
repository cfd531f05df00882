"""Databases for tests: copies of a migrated template, emptied and used again because copying takes long."""

from __future__ import annotations

import itertools
import os
import re

import asyncpg

from holdfast.store.postgres.schema import MIGRATIONS
from holdfast.store.postgres.store import PostgresStore
from tools.postgres import PostgresServer

TEMPLATE = "holdfast_template"
_numbers = itertools.count(1)
_NEWEST = max(migration.number for migration in MIGRATIONS)
_NOW = re.search(r"CREATE FUNCTION holdfast\.now\(\).*?;", MIGRATIONS[0].sql, re.DOTALL)[0]
_EMPTY = f"""
    SELECT pg_terminate_backend(pid) FROM pg_stat_activity
        WHERE datname = current_database() AND pid <> pg_backend_pid();
    DO $$ BEGIN  -- deleting is quicker, but many dead rows change how claims look for jobs
        IF (SELECT n_dead_tup + n_live_tup FROM pg_stat_all_tables WHERE relid = 'holdfast.job'::regclass) > 5000
        THEN TRUNCATE holdfast.job; ELSE DELETE FROM holdfast.job; END IF;
    END $$;
    DELETE FROM holdfast.history; DELETE FROM holdfast.queue; DELETE FROM holdfast.tenant; DELETE FROM holdfast.tally; DELETE FROM holdfast.lease; DELETE FROM holdfast.worker;
    DELETE FROM holdfast.tick; DELETE FROM holdfast.key; DELETE FROM holdfast.step;
    DELETE FROM holdfast.bucket; DELETE FROM holdfast.guard; DELETE FROM holdfast.breaker; DELETE FROM holdfast.probe;
    DELETE FROM holdfast.outbox; DELETE FROM holdfast.event_key; DELETE FROM holdfast.event_block;
    DELETE FROM holdfast.event_group; DELETE FROM holdfast.inbox; DELETE FROM holdfast.stray; DELETE FROM holdfast.blob; DELETE FROM holdfast.event_member;
    UPDATE holdfast.event_position SET value = 0;
    DELETE FROM holdfast.view; DELETE FROM holdfast.view_row; DELETE FROM holdfast.view_aside; DELETE FROM holdfast.seen;
    DELETE FROM holdfast.visit; DELETE FROM holdfast.web_secret; DELETE FROM holdfast.flag; DELETE FROM holdfast.alert; DELETE FROM holdfast.alert_cause;
    DELETE FROM holdfast.cache; DELETE FROM holdfast.cache_tag;
    DELETE FROM holdfast.saga; UPDATE holdfast.saga_reader SET position = NULL, until = 0, woken = 0;
    SET session_replication_role = replica; DELETE FROM holdfast.audit; RESET session_replication_role;
    DELETE FROM holdfast.migration WHERE number > {_NEWEST};
    DO $$ DECLARE name text; BEGIN
        FOR name IN SELECT c.relname FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
            WHERE c.relname ~ '^history_[0-9]{{8}}$' AND to_date(substr(c.relname, 9), 'YYYYMMDD') > current_date + 3
        LOOP EXECUTE 'DROP TABLE holdfast.' || name; END LOOP;
        FOR name IN SELECT quote_ident(tablename) FROM pg_tables WHERE schemaname = 'public'  -- a test's own
        LOOP EXECUTE 'DROP TABLE public.' || name || ' CASCADE'; END LOOP;
    END $$;
    SELECT setval('holdfast.token', 1 + (1::bigint << 40), false), setval('holdfast.rank', 1, false);
    {_NOW.replace("CREATE FUNCTION", "CREATE OR REPLACE FUNCTION")}"""


class Databases:
    """Fresh databases on one server."""

    def __init__(self, server: PostgresServer) -> None:
        self.server = server
        self._used: list[str] = []

    async def prepare(self) -> None:
        """Make the template, once for each server."""
        await self._admin(f"CREATE DATABASE {TEMPLATE}")
        store = PostgresStore(self.server.url(TEMPLATE))
        await store.open()
        await store.migrate()
        await store.close()

    async def create(self, *, migrated: bool = True) -> str:
        """A database of its own; returns its URL."""
        if migrated and self._used:
            return self._used.pop()
        name = f"test_{os.getpid()}_{next(_numbers)}"
        await self._admin(f"CREATE DATABASE {name} TEMPLATE {TEMPLATE if migrated else 'template0'}")
        return self.server.url(name)

    async def give_back(self, url: str) -> None:
        """Empty it for the next test; what cannot be emptied is dropped."""
        try:
            await self._run(url, _EMPTY)
        except asyncpg.PostgresError:
            await self.drop(url)
        else:
            self._used.append(url)

    async def drop(self, url: str) -> None:
        await self._admin(f"DROP DATABASE IF EXISTS {url.rpartition('/')[2]} WITH (FORCE)")

    async def _admin(self, sql: str) -> None:
        await self._run(self.server.url(), sql)

    async def _run(self, url: str, sql: str) -> None:
        connection = await asyncpg.connect(url)
        try:
            await connection.execute(sql)
        finally:
            await connection.close()
