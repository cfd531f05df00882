"""`gunicorn --preload`: the master imports the program, enqueues, and forks its workers."""

import asyncio
import os
import signal
import socket
import sys
from pathlib import Path

from forked_programs import numbers_of

HERE = Path(__file__).parent
REQUESTS = range(1, 41)


async def asked(port, n):
    """The id of the process that has answered, once it has."""
    reading, writing = await asyncio.open_connection("127.0.0.1", port)
    writing.write(f"GET /?{n} HTTP/1.0\r\n\r\n".encode())
    head, _, body = (await reading.read()).partition(b"\r\n\r\n")
    writing.close()
    assert b" 200 " in head, head
    return int(body)


async def until_it_listens(port, process):
    while process.returncode is None:
        try:
            _, writing = await asyncio.open_connection("127.0.0.1", port)
        except OSError:
            await asyncio.sleep(0.05)
        else:
            writing.close()
            return


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


async def test_each_worker_has_connections_of_its_own(url, tmp_path):
    port = free_port()
    with (tmp_path / "log").open("wb") as log:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "gunicorn", "--preload", "-w", "2", "-b", f"127.0.0.1:{port}", "web:app"),
            cwd=HERE, env={**os.environ, "SHOP_URL": url}, stdout=log, stderr=log,
        )  # fmt: skip
    try:
        async with asyncio.timeout(60):
            await until_it_listens(port, process)
            answered = [await asyncio.gather(*(asked(port, n) for n in REQUESTS[at::4])) for at in range(4)]
            process.send_signal(signal.SIGTERM)
            assert await process.wait() == 0
    finally:
        if process.returncode is None:
            process.kill()
            sys.stderr.write((tmp_path / "log").read_text())
    assert len({pid for part in answered for pid in part}) == 2
    assert sorted(await numbers_of(url)) == [0, *REQUESTS]
    assert "rror" not in (tmp_path / "log").read_text()
