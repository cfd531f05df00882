"""The pages of the portal, for people: `page_routes` stand in the app, `pages` around it."""

from __future__ import annotations

from starlette.routing import BaseRoute

from admissions.web.pages import (
    account,
    administration,
    applications,
    case,
    counting,
    deciding,
    door,
    entering,
    files,
    finance,
    form,
    leaving,
    paying,
    queue,
    sending,
    standing,
    stopping,
)
from admissions.web.pages.frame import pages

_MODULES = (
    door, entering, account, applications, form, files, sending, standing, paying, leaving,
    queue, case, deciding, finance, stopping, counting, administration,
)  # fmt: skip
page_routes: list[BaseRoute] = [route for module in _MODULES for route in module.routes]

__all__ = ["page_routes", "pages"]
