"""Which program and database a command is about: `--app module:name`, else `--url`, else what the environment says."""

from __future__ import annotations

from argparse import Namespace

from holdfast.kernel.errors import UsageError
from holdfast.runtime.app import Holdfast
from holdfast.runtime.cli.environment import Given
from holdfast.runtime.loading import load_app


def find(options: Namespace) -> Holdfast:
    """What stands on the command line wins over the environment; there, a program wins over a URL."""
    app, url = options.app, options.url
    if app is not None and url is not None and not isinstance(url, Given):
        if not isinstance(app, Given):
            raise UsageError(f"Give --app or --url, not both: {app} has its own database.")
        app = None
    return Holdfast(url) if app is None else load_app(app)
