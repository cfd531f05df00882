"""Which program and database a command is about: `--app module:name`, else `--url`, else what the environment says."""

from __future__ import annotations

import re
import shlex
from argparse import Namespace

from holdfast.kernel.errors import UsageError
from holdfast.runtime.app import Holdfast
from holdfast.runtime.cli.environment import Given
from holdfast.runtime.config import command_url, locate, names_database
from holdfast.runtime.loading import load_app

NOT_NAMED = (
    "No database is named. Name it with --url, such as --url postgresql://user@host/shop or --url sqlite:///jobs.db; or name its "
    "program, such as --app shop.tasks:hf; or set HOLDFAST_URL or DATABASE_URL."
)
_MIGRATE = re.compile(r"holdfast migrate(?: --url [^\s`]+)?(?! --)")


def find(options: Namespace) -> Holdfast:
    app, url = _chosen(options)
    if app is not None:
        return load_app(app)
    if url is None and not names_database():
        raise UsageError(NOT_NAMED)
    return Holdfast(url)


def _chosen(options: Namespace) -> tuple[str | None, str | None]:
    """What stands on the command line wins over the environment; there, a program wins over a URL."""
    app, url = options.app, options.url
    if app is None or url is None or isinstance(url, Given):
        return app, url
    if not isinstance(app, Given):
        raise UsageError(f"Give --app or --url, not both: {app} has its own database.")
    return None, url


def command(options: Namespace, text: str) -> str:
    """An advice to migrate, as the whole command that does it here."""
    if "holdfast migrate" not in text:
        return text
    app, url = _chosen(options)
    where = f"--app {app}" if app is not None else f"--url {shlex.quote(command_url(locate(url)))}"
    return _MIGRATE.sub(lambda _: f"holdfast migrate {where}", text)
