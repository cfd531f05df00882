"""An API process of the proof: the portal's own app, without the limits that one address has."""

from __future__ import annotations

import sys

import uvicorn
from admissions.web.app import make_app

if __name__ == "__main__":
    uvicorn.run(
        make_app(limited=False),
        host="127.0.0.1",
        port=int(sys.argv[1]),
        log_level="error",
        timeout_graceful_shutdown=10,
    )
