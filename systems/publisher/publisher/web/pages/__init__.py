"""The pages of the publisher, for people: `page_routes` stand in the app, `pages` around it."""

from __future__ import annotations

from starlette.routing import BaseRoute

from publisher.web.pages import (
    automations,
    browse,
    bulk,
    calendar,
    files,
    galleries,
    keys,
    listing,
    pictures,
    post,
    post_actions,
    review,
    sales,
    settings,
    shelf,
    today,
    undo,
    upload,
    welcome,
)
from publisher.web.pages.frame import pages

_MODULES = (
    today, welcome, calendar, listing, review, bulk, post, post_actions, upload, automations, sales, shelf, galleries, browse, files, keys, settings, undo, pictures,
)  # fmt: skip
page_routes: list[BaseRoute] = [route for module in _MODULES for route in module.routes]

__all__ = ["page_routes", "pages"]
