"""Post an alert to a webhook: signed, with an end to its patience, and to wherever the settings say and nowhere else."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Mapping
from urllib.parse import urlsplit

import msgspec

from holdfast.guards.headers import parse_retry_after
from holdfast.jobs.control import Retry
from holdfast.kernel.clock import now, patience
from holdfast.kernel.errors import HoldfastError
from holdfast.kernel.loops import call_in_thread
from holdfast.observe.alerts.alert import Alert
from holdfast.observe.alerts.settings import AlertSettings, place_of
from holdfast.observe.alerts.signing import ID, SIGNATURE, TIMESTAMP, signed

_READ = 64 * 1024  # bytes of the head of an answer; its body is not read
_OK = range(200, 300)
_NOT_YET = range(100, 200)
_LATER = (429, 503)


class AlertNotTaken(HoldfastError):
    """The webhook did not take an alert. It is tried again."""


class _Answer(msgspec.Struct, frozen=True):
    status: int
    retry_after: str | None


async def post(settings: AlertSettings, alert: Alert, delivery: str) -> int:
    """The status that it answered with, from 200 to 299. Anything else is AlertNotTaken, a redirect too."""
    url, secret = settings.webhook or "", settings.secret or ""
    body, timestamp = msgspec.json.encode(alert), int(now())
    headers = {
        "Content-Type": "application/json",
        "User-Agent": "holdfast",
        ID: delivery,
        TIMESTAMP: str(timestamp),
        SIGNATURE: signed(secret, delivery, timestamp, body),
    }
    try:
        # Of the whole exchange, names and handshakes included: an answer may also come byte by byte.
        async with patience(settings.timeout):
            answer = await _exchanged(url, headers, body)
    except TimeoutError:
        raise AlertNotTaken(f"{place_of(url)} did not answer within {settings.timeout:g} s") from None
    except (OSError, EOFError, ValueError) as error:
        raise AlertNotTaken(f"{place_of(url)} did not answer: {error!r}") from None
    return _judged(answer, url)


async def _exchanged(url: str, headers: Mapping[str, str], body: bytes) -> _Answer:
    parts = urlsplit(url)
    context = await call_in_thread(ssl.create_default_context) if parts.scheme == "https" else None
    port = parts.port or (80 if context is None else 443)
    reader, writer = await asyncio.open_connection(parts.hostname, port, ssl=context, limit=_READ)
    try:
        target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        fields = {"Host": parts.netloc, **headers, "Content-Length": str(len(body)), "Connection": "close"}
        head = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
        writer.write(f"POST {target} HTTP/1.1\r\n{head}\r\n".encode("ascii") + body)
        await writer.drain()
        answer = await _head(reader)
        while answer.status in _NOT_YET:
            answer = await _head(reader)
        return answer
    finally:
        writer.close()


async def _head(reader: asyncio.StreamReader) -> _Answer:
    """Status and headers. ValueError: it is not HTTP, or there is no end to it."""
    lines, size = list[bytes](), 0
    while line := (await reader.readline()).rstrip(b"\r\n"):
        lines.append(line)
        size += len(line)
        if size > _READ:
            raise ValueError("the head of its answer is too long")
    if not lines:
        raise EOFError("it hung up")
    version, _, rest = lines[0].partition(b" ")
    code = rest[:3]
    if not (version.startswith(b"HTTP/1.") and len(code) == 3 and code.isdigit()):
        raise ValueError("it does not speak HTTP/1")
    rests = [value for name, _, value in (each.partition(b":") for each in lines[1:]) if name.lower() == b"retry-after"]  # fmt: skip
    return _Answer(int(code), rests[0].decode("latin-1").strip() if rests else None)


def _judged(answer: _Answer, url: str) -> int:
    if answer.status in _OK:
        return answer.status
    refusal = f"{place_of(url)} answered {answer.status}"
    if answer.status in _LATER and (rest := parse_retry_after(answer.retry_after)) is not None:
        raise Retry(after=rest, error=refusal)
    raise AlertNotTaken(refusal)
