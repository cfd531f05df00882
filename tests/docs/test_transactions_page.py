"""The page on transactions: its examples on errors, on both stores. Those with connections of others are in tests/store/postgres/adapters."""

from __future__ import annotations

from docs_examples import blocks


async def test_the_section_on_errors(hf):
    @hf.task(name="greet")
    async def greet(name: str) -> None:
        pass

    names = {"hf": hf, "greet": greet}
    for code in blocks("docs/transactions.md", "python"):
        if "holdfast.errors" in code or "savepoint" in code:
            exec(code, names)
    async with hf.transaction() as tx:
        await tx.execute("DROP TABLE IF EXISTS orders")  # databases are used again
        await tx.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY)")
        await tx.execute("CREATE TABLE days (day TEXT PRIMARY KEY, orders INTEGER)")
    assert [await names["place"](1), await names["place"](1)] == [True, False]
    assert len(await hf.store.jobs.find(task="greet")) == 1
    async with hf.transaction() as tx:
        for _ in range(3):
            await names["count_order"](tx, "monday")
        assert await tx.fetch("SELECT day, orders FROM days") == [("monday", 3)]
    async with hf.transaction() as tx:
        await tx.execute("DROP TABLE orders")
        await tx.execute("DROP TABLE days")
