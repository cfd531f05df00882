"""Through PgBouncer in transaction mode: each transaction may get another server connection. Where it is installed."""

from __future__ import annotations

import asyncio
import os
import shutil
import socket
import subprocess
import time
from urllib.parse import urlsplit, urlunsplit

import pytest
from kit import end, job, put_many, take

from holdfast.kernel.outcomes import Done, Retry
from holdfast.store.postgres.store import PostgresStore

SETTINGS = """
[databases]
* = host=127.0.0.1 port={server} user=postgres
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = 3
max_client_conn = 100
"""


@pytest.fixture
def pooled_url(postgres_url, tmp_path):
    program = shutil.which("pgbouncer")
    if program is None:
        pytest.skip("PgBouncer is not installed")
    place = urlsplit(postgres_url)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    settings = tmp_path / "pgbouncer.ini"
    settings.write_text(SETTINGS.format(server=place.port, port=port))
    user = ["-u", "nobody"] if os.getuid() == 0 else []
    for folder in (tmp_path, *tmp_path.parents[:3]):
        folder.chmod(0o755)
    with subprocess.Popen([program, "-q", *user, str(settings)]) as pooler:
        try:
            _wait_for(port)
            address = f"{place.username}@127.0.0.1:{port}"
            yield urlunsplit(place._replace(netloc=address, query="statement_cache_size=0&pool_size=8"))
        finally:
            pooler.terminate()


def _wait_for(port):
    for _ in range(100):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    pytest.fail("PgBouncer did not start")


@pytest.fixture
async def pooled(pooled_url):
    store = PostgresStore(pooled_url)
    await store.open()
    yield store
    await store.close()


async def test_many_callers_share_few_connections(pooled):
    await asyncio.gather(*(put_many(pooled, 5, ordered=f"k{n % 7}") for n in range(20)))
    done = 0
    while claims := await _next(pooled):
        done += sum(await asyncio.gather(*(end(pooled, claim, Done()) for claim in claims)))
    assert done == 100


async def _next(store):
    await store.holds.promote()
    return await take(store, 20)


async def test_transactions_are_whole(pooled):
    async with pooled.transaction() as tx:
        await tx.execute("CREATE TABLE orders (id integer)")

    async def order(number):
        async with pooled.transaction() as tx:
            await tx.execute("INSERT INTO orders VALUES ($1)", number)
            await pooled.jobs.enqueue([job()], tx=tx)
            if number % 3 == 0:
                raise ValueError

    await asyncio.gather(*(order(number) for number in range(30)), return_exceptions=True)
    async with pooled.transaction() as tx:
        assert await tx.fetch("SELECT count(*) FROM orders") == [(20,)]
    assert len(await take(pooled, 50)) == 20


async def test_leases_and_fences_hold(pooled):
    await put_many(pooled, 1)
    [claim] = await take(pooled, 1)
    assert len(await pooled.claims.renew([claim], lease=30)) == 1
    assert await end(pooled, claim, Retry())
    assert not await end(pooled, claim, Done())
