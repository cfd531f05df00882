"""The app behind a real server, on a loop of its own in a thread."""

from __future__ import annotations

import asyncio
import socket
import threading
import time

import uvicorn
from publisher.core import hf, settings
from publisher.outside.deviantart import DeviantArt
from publisher.tables import Base
from publisher.web.app import make_app

from holdfast.testing import fresh


class Served:
    """`with Served(database) as server:` answers at `server.url`, without limits for the number of requests."""

    def __init__(self, database):
        self._database, self._socket = database, socket.socket()
        self._socket.bind(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}"
        self.app = make_app(limited=False)
        config = uvicorn.Config(self.app, log_level="critical", lifespan="off", access_log=False)
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()), daemon=True)

    async def _serve(self):
        async with fresh(hf, self._database), DeviantArt.open(settings.deviantart_url, 5.0) as site:
            async with hf.sqlalchemy().begin() as connection:
                await connection.run_sync(Base.metadata.create_all)
            self.app.state.site = site
            await self._server.serve(sockets=[self._socket])

    def __enter__(self):
        self._thread.start()
        while not self._server.started:
            assert self._thread.is_alive(), "it did not start"
            time.sleep(0.01)
        return self

    def __exit__(self, *_):
        self._server.should_exit = True
        self._thread.join(20)
        assert not self._thread.is_alive()
