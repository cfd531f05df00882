"""A receiver of webhooks on a loopback port, that can be away, refuse, or lose its answer; and words for what tests wait for."""

from __future__ import annotations

import asyncio
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from holdfast.observe import verify_alert
from tools.local_server import free_port

SECRET = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD"


class Receiver:
    """`taken` has (delivery, alert) of all that it accepted and could verify; `asked` counts every request."""

    def __init__(self):
        self.port = free_port()
        self.taken, self.headers, self.asked, self.wrong = [], [], 0, []
        self.status, self.extra, self.loses_answer = 204, {}, lambda: False
        self._server = None
        self.start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}/alerts?team=ops"

    def start(self):
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                outer.asked += 1
                body = self.rfile.read(int(self.headers["Content-Length"]))
                outer.headers.append((self.path, dict(self.headers.items())))
                if outer.status < 300:
                    try:
                        alert = verify_alert(body, dict(self.headers.items()), SECRET)
                    except Exception as error:
                        outer.wrong.append(error)
                    else:
                        outer.taken.append((self.headers["webhook-id"], alert))
                if outer.loses_answer():
                    self.connection.close()
                    return
                self.send_response(outer.status)
                for name, value in outer.extra.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_):
                pass

        ThreadingHTTPServer.allow_reuse_address = True
        self._server = ThreadingHTTPServer(("127.0.0.1", self.port), Handler)
        threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True
        ).start()

    def stop(self):
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._server = None

    def told(self):
        """Each message that was accepted, once."""
        return [(alert.kind, alert.cause, alert.state) for _, alert in dict(self.taken).items()]


async def until(found, what, limit=30):
    end = time.monotonic() + limit
    while not found():
        assert time.monotonic() < end, f"in vain: {what}"
        await asyncio.sleep(0.02)


async def hurry(hf):
    """A message that failed waits for up to two minutes: a test does not."""
    async with hf.transaction() as tx:
        if type(hf.store).__name__.startswith("Sqlite"):
            await tx.execute("UPDATE holdfast_queued SET run_at = 0 WHERE held = 'time'")
        else:
            await tx.execute("UPDATE holdfast.job SET run_at = '2000-01-01' WHERE held = 'time'")
