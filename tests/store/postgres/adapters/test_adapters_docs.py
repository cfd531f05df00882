"""The examples of docs/transactions.md, run as they stand."""

import ast
import inspect
import re
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from holdfast.testing.conformance.kit import job

PAGE = Path(__file__).parents[4] / "docs" / "transactions.md"
# Those on errors, many rows and snapshots are run by tests/docs, on both stores.
EXAMPLES = [
    each
    for each in re.findall(r"```python\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    if not any(word in each for word in ("holdfast.errors", "savepoint", "snapshot", "execute_many"))
]


class Greet:
    """Stands in for a task."""

    def __init__(self, store, tx=None):
        self._store, self._tx = store, tx

    def options(self, *, tx):
        return Greet(self._store, tx)

    async def enqueue(self, name):
        await self._store.jobs.enqueue([job(task="greet", args=f'{{"name": "{name}"}}')], tx=self._tx)


async def run(code: str, names: dict[str, Any]) -> None:
    compiled = compile(code, PAGE.name, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    try:
        await _awaited(eval(compiled, names))
    finally:
        if (engine := names.get("engine")) is not None:  # where the example fails, it does not get that far
            await _awaited(engine.dispose())


async def _awaited(outcome: object) -> None:
    if inspect.isawaitable(outcome):
        await outcome


def test_there_are_examples():
    assert len(EXAMPLES) == 5


@pytest.mark.parametrize("code", EXAMPLES, ids=range(1, len(EXAMPLES) + 1))
async def test_an_example(code, url, store, orders):
    address = url.partition("://")[2]
    code = code.replace("localhost/shop", address)
    await run(code, {"hf": store, "greet": Greet(store)})
    connection = await asyncpg.connect(url)
    assert await connection.fetchval("SELECT count(*) FROM orders") == 1
    assert await connection.fetchval("SELECT count(*) FROM holdfast.job WHERE task = 'greet'") == 1
    # and once more, failing at the end: neither is there
    await connection.execute("TRUNCATE orders, holdfast.job")
    broken = re.sub(r"(?m)^( *)(await greet.*)$", r"\1\2\n\1raise ZeroDivisionError", code)
    assert broken != code
    with pytest.raises(ZeroDivisionError):
        await run(broken, {"hf": store, "greet": Greet(store)})
    assert await connection.fetchval("SELECT count(*) FROM orders") == 0
    assert await connection.fetchval("SELECT count(*) FROM holdfast.job WHERE task = 'greet'") == 0
    await connection.close()
