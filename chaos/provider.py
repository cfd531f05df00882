"""A service without idempotency keys: it accepts an item and then does not answer, is slow, refuses, or hangs up.

`POST /NAME` publishes, `GET /NAME` looks it up. What it has accepted stands in its journal, on the disk, before it answers.
It accepts the same name twice if it is asked twice: that is what must not happen.
"""

from __future__ import annotations

import asyncio
import os
import random
import signal

from chaos import settings
from chaos.journal import Journal
from holdfast.kernel.processes import die_with_parent

_MANNERS = {
    "answer": 60,
    "accept, then be silent": 12,
    "accept, then hang up": 6,
    "be slow": 8,
    "accept when nobody waits any more": 4,
    "refuse": 10,
}


class Provider:
    def __init__(self, journal: Journal) -> None:
        self._journal, self._chance = journal, random.Random(os.getpid())
        self._accepted: set[str] = set()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            request = (await reader.readuntil(b"\r\n\r\n")).decode()
            method, path = request.split(" ", 2)[:2]
            answer = self._look_up(path[1:]) if method == "GET" else await self._publish(path[1:])
            if answer is not None:
                writer.write(
                    f"HTTP/1.1 {answer} -\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".encode()
                )
                await writer.drain()
        except (OSError, asyncio.IncompleteReadError):
            return  # whoever asked was killed
        finally:
            writer.close()

    def _look_up(self, name: str) -> int:
        return 200 if name in self._accepted else 404

    async def _publish(self, name: str) -> int | None:
        manner = os.environ.get(settings.MANNER) or self._drawn()
        match manner:
            case "refuse":
                return 422
            case "accept, then be silent":
                self._accept(name, manner)
                await asyncio.sleep(settings.CALL_LIMIT * 2)
                return None
            case "accept, then hang up":
                self._accept(name, manner)
                return None
            case "accept when nobody waits any more":
                await asyncio.sleep(settings.LATEST)
            case "be slow":
                await asyncio.sleep(settings.CALL_LIMIT / 3)
        self._accept(name, manner)
        return 201

    def _drawn(self) -> str:
        [manner] = self._chance.choices(list(_MANNERS), list(_MANNERS.values()))
        return manner

    def _accept(self, name: str, manner: str) -> None:
        self._journal.write(name=name, manner=manner)
        self._accepted.add(name)


async def main() -> None:
    where = settings.folder()
    provider = Provider(Journal(settings.provider_journal(where)))
    server = await asyncio.start_server(provider.serve, "127.0.0.1", 0)
    # What it has accepted is on the disk; who still waits for an answer gets none.
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, os._exit, 0)
    file = settings.address_file(where)
    new = file.with_suffix(".new")
    new.write_text(str(server.sockets[0].getsockname()[1]))
    new.rename(file)
    await server.serve_forever()


if __name__ == "__main__":
    die_with_parent(int(os.environ[settings.PARENT]), signal.SIGKILL)
    asyncio.run(main())
