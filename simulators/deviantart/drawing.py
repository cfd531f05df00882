"""Pictures of the simulated site, drawn from a number: no art of anybody."""

from __future__ import annotations

import random

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

WIDTH, HEIGHT = 300, 200
_PALETTES = (
    ("#20315c", "#f2c27b", "#c9605b", "#0f1a38"),
    ("#e9dcc3", "#7d9f6a", "#33566b", "#1d2f2b"),
    ("#2b1b3d", "#f08fc0", "#7a5cc2", "#140d20"),
    ("#c7e3e6", "#f6f1e4", "#e08a4f", "#35626b"),
    ("#f4e2de", "#b9485a", "#5b2a43", "#2a1522"),
)


def address(request: Request, about: str) -> str:
    """Where the picture of this is, on this server."""
    return f"{request.base_url}pictures/{random.Random(about).randrange(10**9)}.svg"


async def _show(request: Request) -> Response:
    headers = {
        "cache-control": "max-age=3600",
        "content-security-policy": "default-src 'none'; style-src 'unsafe-inline'",
    }
    return Response(_drawn(request.path_params["number"]), media_type="image/svg+xml", headers=headers)


def _drawn(number: int) -> str:
    """A sky, a sun, and three ridges before it."""
    chance = random.Random(number)
    sky, sun, *ground = chance.choice(_PALETTES)
    shapes = [
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="{sky}"/>',
        f'<circle cx="{chance.randrange(60, 240)}" cy="{chance.randrange(30, 100)}" r="{chance.randrange(16, 44)}" fill="{sun}"/>',
    ]
    for step in range(3):
        colour, top = ground[step % 2], 90 + 34 * step
        points = " ".join(f"{x},{top + chance.randrange(-26, 26)}" for x in range(0, WIDTH + 30, 30))
        opacity = (0.55, 0.8, 1)[step]
        shapes.append(
            f'<polygon points="0,{HEIGHT} {points} {WIDTH},{HEIGHT}" fill="{colour}" opacity="{opacity}"/>'
        )
    return f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}">{"".join(shapes)}</svg>'


routes: list[BaseRoute] = [Route("/pictures/{number:int}.svg", _show)]
