"""Sessions of ours whose client stands still in the middle of a statement: nothing but this ends them, and they keep their locks."""

from __future__ import annotations

from functools import partial

from holdfast.store.edge import checked
from holdfast.store.postgres.connection import APPLICATION
from holdfast.store.postgres.subject import Subject
from holdfast.store.statements import Procedure, Statement


def end_stuck(after: float) -> Procedure[int]:
    return len((yield Statement(_END_STUCK, (APPLICATION, after))))


# The server waits for the rest of a statement (the driver prepares it first, and then asks for its rows), or for room to
# send its answer. For it that is no idle transaction, and neither its limit for those nor that of a statement counts while
# it waits for a client. COPY waits for its client all the time, and has no locks that others want; answers to
# statements of a caller's own may be large. Found first and ended then: else the planner chooses which condition it asks first.
_END_STUCK = """
WITH stuck AS MATERIALIZED (
    SELECT pid FROM pg_stat_activity
    WHERE datname = current_database() AND usename = current_user AND application_name = $1::text
        AND pid <> pg_backend_pid() AND state = 'active' AND xact_start IS NOT NULL
        AND query_start < clock_timestamp() - make_interval(secs => $2::float8)
        AND (wait_event = 'ClientRead' AND query NOT ILIKE 'copy %'
            OR wait_event = 'ClientWrite' AND query LIKE '%holdfast.%'))
SELECT pid FROM stuck WHERE pg_terminate_backend(pid)"""


@checked
class Sessions(Subject):
    async def end_stuck(self, *, after: float) -> int:
        return await self._database.read(partial(end_stuck, after))
