"""Asks a port for a probe, for containers that have no HTTP client."""

from __future__ import annotations

import asyncio

import msgspec

from holdfast.kernel.clock import patience

_MOST = 64 * 1024  # bytes of an answer


class _Answer(msgspec.Struct):
    """What is read of it, when it has the usual shape."""

    reasons: list[str] = []


async def asked(host: str, port: int, path: str, seconds: float) -> str | None:
    """Why it is not well; None: it is."""
    try:
        async with patience(seconds):
            return await _ask(host, port, path)
    except TimeoutError:
        return f"{host}:{port} did not answer within {seconds:g} s."
    except OSError as error:
        return f"Nothing answers at {host}:{port}: {error.strerror or error}."


async def _ask(host: str, port: int, path: str) -> str | None:
    reader, writer = await asyncio.open_connection(host, port)
    try:
        writer.write(f"GET /{path} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
        head, _, body = (await reader.read(_MOST)).partition(b"\r\n\r\n")
    finally:
        writer.close()
    words = head.split(b" ", 2)
    if len(words) < 2 or not words[1].isdigit():
        return f"What answers at {host}:{port} does not speak HTTP."
    status = int(words[1])
    if status == 200:
        return None
    if status == 404:
        return f"{host}:{port} has no /{path}. When the program has given its probes other paths, name one: --at {host}:{port}/PATH."
    try:
        return "; ".join(msgspec.json.decode(body, type=_Answer).reasons) or f"the answer is {status}"
    except msgspec.DecodeError:
        return f"the answer is {status}"
