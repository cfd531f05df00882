"""A real HTTP server on loopback, in a thread of its own, whose answers a test writes down beforehand, bad ones too."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from contextlib import contextmanager


class Asked:
    """One request as the server has seen it."""

    def __init__(self, connection, method, path, headers, body):
        self.connection, self.method, self.path = connection, method, path
        self.headers, self.body = headers, body


def answer(status=200, body=b"well", headers=()):
    """An answer as it should be."""

    async def write(writer):
        told = "".join(f"{name}: {value}\r\n" for name, value in headers)
        head = f"HTTP/1.1 {status} Word\r\nContent-Length: {len(body)}\r\n{told}\r\n"
        writer.write(head.encode() + body)
        await writer.drain()
        return True

    return write


async def hang(writer):
    """Takes the request, and never says a word."""
    await asyncio.sleep(60)


async def hang_up(writer):
    """Takes the request, and closes the connection."""
    return False


async def cut_body(writer):
    """Promises a hundred bytes, sends ten, and closes the connection."""
    writer.write(b"HTTP/1.1 200 Word\r\nContent-Length: 100\r\n\r\n0123456789")
    await writer.drain()
    return False


def slow_body(parts, gap, status=200):
    """A byte, a pause, a byte, a pause."""

    async def write(writer):
        writer.write(f"HTTP/1.1 {status} Word\r\nContent-Length: {parts}\r\n\r\n".encode())
        for _ in range(parts):
            writer.write(b"x")
            await writer.drain()
            await asyncio.sleep(gap)
        return True

    return write


class Server:
    """Gives the answers of `script` in turn, and then always the last one of them."""

    def __init__(self):
        self.script = deque([answer()])
        self.asked: list[Asked] = []
        self.connections = 0
        self.open = 0
        self.url = ""

    def will(self, *answers):
        self.script = deque(answers)

    async def serve(self, reader, writer):
        self.connections += 1
        self.open += 1
        try:
            while await self._one(reader, writer, self.connections):
                pass
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            self.open -= 1
            writer.close()

    async def _one(self, reader, writer, connection):
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        method, path, _ = head[0].split(" ")
        headers = {
            name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:-2])
        }
        self.asked.append(Asked(connection, method, path, headers, await self._body(reader, headers)))
        write = self.script[0] if len(self.script) == 1 else self.script.popleft()
        return await write(writer)

    async def _body(self, reader, headers):
        if headers.get("transfer-encoding") != "chunked":
            return await reader.readexactly(int(headers.get("content-length", 0)))
        body = b""
        while size := int(await reader.readline(), 16):
            body += await reader.readexactly(size)
            await reader.readline()
        await reader.readline()
        return body


@contextmanager
def running():
    """A server that others reach, whatever loop or thread they are in."""
    server, loop, ready = Server(), asyncio.new_event_loop(), threading.Event()

    async def main():
        listening = await asyncio.start_server(server.serve, "127.0.0.1", 0)
        server.url = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}"
        ready.set()
        await ending.wait()
        listening.close()
        others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    ending = asyncio.Event()
    thread = threading.Thread(target=loop.run_until_complete, args=(main(),))
    thread.start()
    ready.wait()
    try:
        yield server
    finally:
        loop.call_soon_threadsafe(ending.set)
        thread.join()
        loop.close()
