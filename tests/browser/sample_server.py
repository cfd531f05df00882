"""The sample app as a server."""

from __future__ import annotations

import sys
from pathlib import Path

from tools.local_server import LocalServer

HERE = Path(__file__).parent
# What a browser says while the server is away, in tests that take it away.
AWAY = "Failed to load resource: net::ERR_CONNECTION_REFUSED"


class SampleServer(LocalServer):
    """The sample app in a process of its own; `start` again after `kill` has the same port."""

    name = "sample"

    def __init__(self, app="app", **environment):
        self.app, self.environment = app, environment
        super().__init__()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}"

    def command(self):
        told = [f"{name}={value}" for name, value in self.environment.items()]
        serve = [sys.executable, "-m", "uvicorn", f"sample.app:{self.app}", "--app-dir", str(HERE)]
        return ["env", *told, *serve, "--port", str(self.port), "--log-level", "warning"]
