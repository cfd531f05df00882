"""The page on HTTP: its app runs as it stands there, under a real server, and does what the page says of it."""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys

import httpx
import pytest
from docs_examples import blocks

from tools.local_server import free_port

BROWSER = {"accept": "text/html"}


@pytest.fixture
async def shop(tmp_path):
    app, _ = blocks("docs/web.md", "python")
    (tmp_path / "shop.py").write_text(app)
    (tmp_path / "templates").mkdir()
    for name, text in zip(("orders", "login"), blocks("docs/web.md", "html"), strict=True):
        (tmp_path / "templates" / f"{name}.html").write_text(text)
    port = free_port()
    command = [sys.executable, "-m", "uvicorn", "shop:app", "--port", str(port), "--log-level", "warning"]
    with (tmp_path / "out").open("w") as out:
        server = await asyncio.create_subprocess_exec(*command, cwd=tmp_path, stdout=out, stderr=out)
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=20) as http:
            try:
                async with asyncio.timeout(60):
                    while not await _answers(http):
                        assert server.returncode is None, (tmp_path / "out").read_text()
                        await asyncio.sleep(0.05)
                http.said = lambda: (tmp_path / "out").read_text()
                yield http
            finally:
                server.terminate()
                await server.wait()


async def _answers(http):
    try:
        return (await http.get("/health/ready")).status_code == 200
    except httpx.TransportError:
        return False


async def test_an_order_that_is_sent_twice_is_one(shop):
    key = {"Idempotency-Key": "5f0e"}
    assert (await shop.post("/api/orders", params={"pieces": 3})).status_code == 400
    first, second = [await shop.post("/api/orders", params={"pieces": 3}, headers=key) for _ in range(2)]
    assert (first.status_code, first.content) == (second.status_code, second.content) == (202, b'{"order":1}')
    assert second.headers["idempotent-replayed"] == "true"
    assert (await shop.post("/api/orders", params={"pieces": 4}, headers=key)).status_code == 422
    async with asyncio.timeout(30):
        while "order 1 is on its way" not in shop.said():
            await asyncio.sleep(0.05)
    parts = await shop.get("/", headers={"x-holdfast-regions": "#orders"})
    assert re.findall(r"<li>(.*?)</li>", parts.text) == ["1: 3 pieces"]


async def test_somebody_logs_in_and_out(shop):
    page = await shop.get("/login")
    fields = {"csrf_token": token_of(page), "who": "ada", "password": "wrong"}
    assert "There is nobody with this name and password." in (await shop.post("/login", data=fields)).text
    answer = await shop.post("/login", data={**fields, "password": "countess"})
    assert (answer.status_code, answer.headers["location"]) == (303, "/")
    page = await shop.get("/")
    assert "You are logged in as ada" in page.text
    outdated = await shop.post("/logout", data=fields, headers=BROWSER)
    assert (outdated.status_code, "<h1>This page is too old</h1>" in outdated.text) == (403, True)
    assert (await shop.post("/logout", data={"csrf_token": token_of(page)})).status_code == 303
    assert "Log in" in (await shop.get("/")).text


async def test_the_tries_of_an_account_are_counted(shop):
    page = await shop.get("/login")
    fields = {"csrf_token": token_of(page), "who": "ada", "password": "wrong"}
    answers = [await shop.post("/login", data=fields, headers=BROWSER) for _ in range(6)]
    assert [answer.status_code for answer in answers] == [422] * 5 + [429]
    assert "<h1>Too many requests</h1>" in answers[-1].text
    assert answers[-1].headers["x-correlation-id"] in answers[-1].text


def token_of(page):
    return re.search(r'name="csrf_token" value="([^"]+)"', page.text)[1]


def test_the_part_for_wsgi_prints_what_it_says(tmp_path):
    _, program = blocks("docs/web.md", "python")
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.stdout == "".join(blocks("docs/web.md", "text")), done.stderr
