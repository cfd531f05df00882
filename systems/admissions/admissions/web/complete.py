"""At the start: every route is in the one table of who may what, and every one of the API asks it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from fastapi.routing import APIRoute
from starlette.routing import BaseRoute, Route

from admissions.web.allowed import ALLOWED, API
from admissions.web.api.base import check


def check_routes(routes: Iterable[BaseRoute]) -> None:
    """Raises RuntimeError, which stops the start."""
    found = dict(_named(routes))
    unknown = sorted(set(found) - set(ALLOWED))
    if unknown:
        raise RuntimeError(f"Nobody has said in web/allowed.py who may ask {', '.join(unknown)}.")
    missing = sorted(set(API) - set(found))
    if missing:
        raise RuntimeError(f"web/allowed.py names what is not there: {', '.join(missing)}.")
    open_ones = sorted(
        name for name, route in found.items() if isinstance(route, APIRoute) and not _asks(route)
    )
    if open_ones:
        raise RuntimeError(
            f"These routes do not ask who it is: {', '.join(open_ones)}. Give their router dependencies=[Depends(check)]."
        )


def _named(routes: Iterable[BaseRoute]) -> Iterator[tuple[str, BaseRoute]]:
    for route in routes:
        assert isinstance(route, Route | APIRoute), route
        for method in sorted(set(route.methods or ()) - {"HEAD"}):
            yield f"{method} {route.path}", route


def _asks(route: APIRoute) -> bool:
    return any(each.call is check for each in route.dependant.dependencies)
