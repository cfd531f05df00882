"""One process: the API by uvicorn, or a worker. A first signal lets it end in order, a second one at once."""

from __future__ import annotations

import ctypes
import logging
import os
import signal
import sys
from types import FrameType

import uvicorn

from admissions.core import MAIL, PAY, VERIFY, settings
from holdfast.observe import ConsoleFormatter, JobFields, JsonFormatter

GRACE = 30  # seconds that requests and jobs have to end
SECOND_SIGNAL = 130  # exit code
_PR_SET_PDEATHSIG = 1


class Server(uvicorn.Server):
    """It leaves at once when it is asked a second time, by whatever signal. Asked once, it ends with 0, and not by the signal."""

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:  # noqa: ARG002  uvicorn gives them
        if self.should_exit:
            os._exit(SECOND_SIGNAL)
        self.should_exit = True


def serve(parent: int | None = None) -> int:
    _end_with(parent)
    _log()
    from admissions.web.app import app  # noqa: PLC0415  after logging is set up

    config = uvicorn.Config(
        app,
        host=settings.host,
        port=settings.port,
        proxy_headers=False,  # the app believes those that ADMISSIONS_PROXIES names
        server_header=False,
        timeout_graceful_shutdown=GRACE - 5,  # the rest is for closing the database
        log_config=None,
        access_log=False,
        lifespan="on",
    )
    server = Server(config)
    server.run()
    return 0 if server.started else 1


def work(processes: int, parent: int | None = None) -> int:
    """This process becomes `holdfast worker`, so that signals, probes and exit codes are its own."""
    _end_with(parent)
    os.execv(sys.executable, [sys.executable, *worker_command(processes)])  # noqa: S606  our own words


def worker_command(processes: int) -> list[str]:
    slots = {
        VERIFY: settings.verify_at_once,
        PAY: settings.pay_at_once + 2,
        MAIL: settings.mail_at_once,
        "default": 4,
    }
    command = ["-m", "holdfast", "worker", "admissions.program:hf"]
    command += ["--queues", ",".join(f"{name}:{number}" for name, number in slots.items())]
    command += ["--shutdown-timeout", str(GRACE)]
    if settings.health_enabled:
        command += ["--probe", f"{settings.health_host}:{settings.health_port}"]
    if processes > 1:
        command += ["--processes", str(processes)]
    return command


def _end_with(parent: int | None) -> None:
    """When who started us is gone, nobody would end us any more."""
    if parent is None or not sys.platform.startswith("linux"):
        return
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != parent:  # it was gone before
        sys.exit(1)


def _log() -> None:
    """As a worker does: lines for people, or JSON when HOLDFAST_LOG_FORMAT says so."""
    is_json = os.environ.get("HOLDFAST_LOG_FORMAT") == "json"
    handler = logging.StreamHandler()
    handler.setFormatter(JsonFormatter() if is_json else ConsoleFormatter())
    handler.addFilter(JobFields())
    level = os.environ.get("HOLDFAST_LOG_LEVEL", "info").upper()
    logging.basicConfig(
        level=level if level in ("DEBUG", "INFO", "WARNING", "ERROR") else "INFO", handlers=[handler]
    )
