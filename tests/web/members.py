"""A small club behind sessions: log in, look around, leave; and a browser for it that keeps cookies."""

from __future__ import annotations

import httpx
from starlette.applications import Starlette
from starlette.responses import JSONResponse, PlainTextResponse
from starlette.routing import Route, WebSocketRoute

from holdfast.web import Sessions, session_of


async def form(request):
    return PlainTextResponse(request.scope["holdfast.csrf"]())


async def login(request):
    data = await request.form()
    await session_of(request).login(data["who"], tenant="club")
    return PlainTextResponse("in")


def login_plainly(request):
    session_of(request).blocking.login("ada")
    return PlainTextResponse("in")


async def who(request):
    session = session_of(request)
    state = request.state
    return JSONResponse(
        {"who": session.principal, "state": getattr(state, "principal", None), "data": dict(session)}
    )


async def logout(request):
    await session_of(request).logout()
    return PlainTextResponse("out")


async def logout_everywhere(request):
    return PlainTextResponse(str(await session_of(request).logout_everywhere()))


async def keep(request):
    session_of(request)[request.path_params["name"]] = request.query_params["value"]
    return PlainTextResponse("kept")


async def forget(request):
    del session_of(request)[request.path_params["name"]]
    return PlainTextResponse("forgotten")


async def logins(request):
    return JSONResponse(
        [[each.name, each.is_this, each.agent] for each in await session_of(request).logins()]
    )


async def change(request):
    return PlainTextResponse(f"changed by {(await request.body()).decode('latin-1')}")


async def upload(request):
    async with request.form() as data:
        return PlainTextResponse(f"{data['csrf_token'] != ''} {len(await data['file'].read())}")


async def socket(websocket):
    await websocket.accept()
    await websocket.send_text(session_of(websocket).principal or "nobody")
    await websocket.close()


ROUTES = [
    Route("/form", form),
    Route("/login", login, methods=["POST"]),
    Route("/plain", login_plainly, methods=["POST"]),
    Route("/who", who),
    Route("/logout", logout, methods=["POST"]),
    Route("/everywhere", logout_everywhere, methods=["POST"]),
    Route("/keep/{name}", keep),
    Route("/forget/{name}", forget),
    Route("/logins", logins),
    Route("/change", change, methods=["POST", "GET"]),
    Route("/hook", change, methods=["POST"]),
    Route("/upload", upload, methods=["POST"]),
    WebSocketRoute("/socket", socket),
]


def club(hf, **options):
    return Sessions(Starlette(routes=ROUTES), hf, **{"exempt": ["POST /hook"], **options})


class Browser(httpx.AsyncClient):
    """It fetches the form's token before it sends one, as a person does."""

    def __init__(self, app, **options):
        transport = httpx.ASGITransport(app=app, raise_app_exceptions=False)
        super().__init__(transport=transport, base_url="https://club.test", **options)

    async def send_form(self, path, **fields):
        token = (await self.get("/form")).text
        return await self.post(path, data={"csrf_token": token, **fields})

    async def login(self, who):
        answer = await self.send_form("/login", who=who)
        assert answer.status_code == 200, answer.text
        return answer
