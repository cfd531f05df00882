"""Audit rows are only added."""

from __future__ import annotations

from holdfast.kernel.errors import UsageError
from holdfast.store.ports import Store
from holdfast.store.records import AuditEntry
from holdfast.testing.conformance.harness import Conformance
from holdfast.testing.conformance.kit import Rollback, raises


class AuditConformance(Conformance):
    async def test_an_entry_is_read_back_as_it_was_written(self, store: Store) -> None:
        entry = AuditEntry(
            actor="ada",
            action="job.replayed",
            subject="job:1",
            before='{"to": "a"}',
            after='{"to": "Zoë"}',
            request_id="r1",
        )
        await store.audit.write(entry)
        (found,) = await store.audit.find()
        assert found.at == await store.now()
        for field in ("actor", "action", "subject", "before", "after", "request_id"):
            assert getattr(found, field) == getattr(entry, field), field

    async def test_find_selects_by_subject_newest_first_and_no_more_than_asked(self, store: Store) -> None:
        for number in range(5):
            subject = "job:1" if number % 2 else "job:2"
            await store.audit.write(AuditEntry(actor=f"a{number}", action="seen", subject=subject))
        assert [entry.actor for entry in await store.audit.find()] == ["a4", "a3", "a2", "a1", "a0"]
        assert [entry.actor for entry in await store.audit.find(subject="job:2")] == ["a4", "a2", "a0"]
        assert [entry.actor for entry in await store.audit.find(limit=2)] == ["a4", "a3"]
        assert await store.audit.find(subject="job:3") == []

    async def test_the_database_refuses_to_change_or_delete_a_row(self, store: Store) -> None:
        await store.audit.write(AuditEntry(actor="ada", action="seen", subject="job:1"))
        before = await store.audit.find()
        table = f"{self.bench.tables}audit"
        for sql in (f"UPDATE {table} SET actor = 'bob'", f"DELETE FROM {table}"):  # noqa: S608
            with raises(Exception, "audit rows are never"):
                async with store.transaction() as tx:
                    await tx.execute(sql)
        assert await store.audit.find() == before

    async def test_an_entry_commits_with_its_transaction_or_not_at_all(self, store: Store) -> None:
        entry = AuditEntry(actor="ada", action="seen", subject="job:1")
        with raises(Rollback):
            async with store.transaction() as tx:
                await store.audit.write(entry, tx=tx)
                raise Rollback
        assert await store.audit.find() == []
        async with store.transaction() as tx:
            await store.audit.write(entry, tx=tx)
        assert len(await store.audit.find()) == 1

    async def test_a_row_that_is_there_is_never_refused(self, store: Store) -> None:
        """As an older version may have written it, or another program."""
        await store.audit.write(AuditEntry(actor="ada", action="seen", subject="job:1"))
        table, subject = f"{self.bench.tables}audit", "s" * 2000
        async with store.transaction() as tx:
            await tx.execute(
                f"INSERT INTO {table} (at, actor, action, subject) SELECT at, '', ' b', '{subject}' FROM {table}"  # noqa: S608
            )
        assert [entry.subject for entry in await store.audit.find()] == [subject, "job:1"]

    async def test_what_was_read_is_checked_before_it_is_written_again(self, store: Store) -> None:
        entry = AuditEntry(actor="", action="seen", subject="job:1", at=5.0)
        with raises(UsageError, "actor must not be empty"):
            await store.audit.write(entry)
