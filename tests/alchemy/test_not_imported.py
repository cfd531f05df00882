"""Who does not use SQLAlchemy does not load it, and who does loads no second SQLite library."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import asyncio, sys
from holdfast import Holdfast

hf = Holdfast("sqlite:///shop.db")

@hf.task
async def greet(name: str) -> None: ...

async def main():
    async with hf:
        await greet.enqueue("ada")
        assert not [name for name in sys.modules if name.partition(".")[0] in ("sqlalchemy", "alembic", "greenlet")]
        async with hf.session() as session, session.begin():
            await greet.options(tx=session).enqueue("ada")
        assert "sqlalchemy" in sys.modules

asyncio.run(main())
with hf.blocking.session() as session, session.begin():
    greet.options(tx=session).enqueue_sync("ada")
hf.blocking.close()
assert "_sqlite3" not in sys.modules and "sqlite3" not in sys.modules
print("all well")
"""


def test_a_program_loads_what_it_uses(tmp_path):
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", PROGRAM],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.stdout == "all well\n", done.stderr
