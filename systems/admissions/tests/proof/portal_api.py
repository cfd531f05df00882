"""An API process of the proof: the portal's own app and server, without the limits that one address has."""

from __future__ import annotations

import sys

import uvicorn
from admissions.running import Server
from admissions.web.app import make_app

if __name__ == "__main__":
    config = uvicorn.Config(
        make_app(limited=False),
        host="127.0.0.1",
        port=int(sys.argv[1]),
        log_level="error",
        timeout_graceful_shutdown=10,
    )
    server = Server(config)
    server.run()
    sys.exit(0 if server.started else 1)
