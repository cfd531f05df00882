"""The audit trail cannot be emptied at once either; SQLite has no statement that would."""

from __future__ import annotations

import pytest

from holdfast.store.records import AuditEntry


async def test_the_audit_trail_cannot_be_emptied(store):
    await store.audit.write(AuditEntry(actor="ada", action="seen", subject="job:1"))
    with pytest.raises(Exception, match="audit rows are never"):
        async with store.transaction() as tx:
            await tx.execute("TRUNCATE holdfast.audit")
    assert len(await store.audit.find()) == 1
