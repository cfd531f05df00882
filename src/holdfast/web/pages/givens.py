"""What every template is given: addresses, the reader, the parts of the kit, and what the program gives to each page."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

from jinja2 import ChoiceLoader, Environment, FileSystemLoader, PackageLoader, PrefixLoader, StrictUndefined
from starlette.requests import Request

from holdfast.kernel.clock import now
from holdfast.kernel.errors import UsageError
from holdfast.kernel.show import show
from holdfast.web.asgi import path_of
from holdfast.web.pages import csrf, readers, regions, tables
from holdfast.web.pages.assets import Assets
from holdfast.web.pages.filters import add_filters, zone_of

ROOT = "holdfast.pages.root"  # in the scope: where this app is mounted, set by WithPages
_UI = "holdfast/ui.html"


def environment(templates: Path) -> Environment:
    """The templates of a program, beside those of the kit."""
    kit = PrefixLoader({"holdfast": PackageLoader("holdfast.web.pages", "templates/holdfast")})
    loader = ChoiceLoader([kit, FileSystemLoader(templates)])
    made = Environment(
        autoescape=True, loader=loader, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    add_filters(made)
    return made


class Givens:
    def __init__(
        self,
        env: Environment,
        assets: Assets,
        *,
        name: str,
        zone: str | Callable[[Request], str] | None,
        follow: float,
        more: Callable[[Request], Mapping[str, Any]] | None,
    ) -> None:
        if isinstance(zone, str):
            _checked_zone(zone)
        self._env, self._assets, self._name = env, assets, name
        self._zone, self._follow, self._more = zone, follow, more

    def of(
        self, request: Request, found: regions.Regions, version: object, told: readers.Told | None
    ) -> dict[str, Any]:
        """For one page. The parts, `ui`, know all the rest."""
        root, told_zone = root_of(request), readers.zone_name_of(request)
        query = dict(parse_qsl(request.url.query))
        zone = self._zone(request) if callable(self._zone) else self._zone or told_zone or "UTC"

        def version_now(names: tuple[str, ...] = ()) -> str:
            return found.version(names) if version is None else regions.version_of(request.scope, version)

        kit: dict[str, Any] = {
            "request": request,
            "name": self._name,
            "now": datetime.fromtimestamp(now(), UTC),
            "zone": _checked_zone(zone),
            "asks_zone": self._zone is None,
            "theme": readers.theme_of(request),
            "told": told,
            "follow": self._follow,
            "root": root,
            "path": path_of({"path": request.scope["path"], "root_path": root}),
            "url": lambda path: root + path,
            "asset": lambda name: root + self._assets.address(name),
            "csrf_field": lambda: csrf.field_of(request.scope),
            "region": found.region,
            "version": version_now,
            "query": query,
            "sort_link": lambda word: tables.sort_link(query, word),
            "sorted_by": lambda word: tables.sorted_by(query, word),
        }
        shared = {**kit, **(self._more(request) if self._more else {})}
        return {**shared, "ui": self._env.get_template(_UI).make_module(shared)}


def root_of(request: Request) -> str:
    found = request.scope.get(ROOT)
    if found is None:
        raise UsageError("The app has no WithPages around it: app = WithPages(app, pages).")
    return str(found)


def _checked_zone(name: str) -> str:
    try:
        zone_of(name)
    except (KeyError, ValueError, OSError):
        raise UsageError(f"zone={show(name)} is no time zone; name one as in Europe/Zurich.") from None
    return name
