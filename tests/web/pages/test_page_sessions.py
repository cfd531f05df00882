"""Forms of pages behind Sessions: what our own pages send is taken, and what another site sends is not."""

from __future__ import annotations

import re

import httpx
import pytest
from one_page import client
from starlette.routing import Route

from holdfast import Holdfast
from holdfast.web import Sessions, session_of


@pytest.fixture
async def program(tmp_path):
    async with Holdfast(f"sqlite:///{tmp_path / 'shop.db'}") as opened:
        yield opened


@pytest.mark.parametrize("order", ["sessions around pages", "pages around sessions"])
async def test_a_form_brings_the_token_of_its_session(one, program, order):
    async def login(request):
        await session_of(request).login("ada")
        return one.pages.redirect(request, "/")

    app = one.app()
    one.routes.append(Route("/login", login, methods=["POST"]))
    if order == "sessions around pages":
        app = Sessions(app, program, secure=False)
    else:
        app._app = Sessions(app._app, program, secure=False)
    async with client(app) as http:
        assert (await http.post("/login")).status_code == 303
        token = re.search(r'name="csrf_token" value="([^"]+)"', (await http.get("/")).text)[1]
        assert (await http.post("/add", data={"csrf_token": token})).status_code == 303
        assert (await http.post("/add", data={})).status_code == 403
        assert (await http.post("/add", data={"csrf_token": token[::-1]})).status_code == 403
        foreign: httpx.Response = await http.post(
            "/add", data={"csrf_token": token}, headers={"sec-fetch-site": "cross-site"}
        )
        assert foreign.status_code == 403
        assert (
            await http.post("/-/theme", data={"csrf_token": token, "theme": "dark", "path": "/"})
        ).status_code == 303
