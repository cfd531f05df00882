"""What it does with one line: clamd's commands with a zero byte at their ends, of which a program needs three."""

from __future__ import annotations

import asyncio
import hashlib
import struct

from simulators.clamd.settings import Settings
from simulators.common.faults import Faults
from simulators.common.ledger import Ledger

# At `scan`: it hangs up, says that it cannot, or never answers.
KINDS = frozenset({"refused", "error", "silent"})
SILENCE = 3600.0
# The test file of the antivirus makers, in two parts so that no scanner takes this source for it.
_TEST_FILE = b"X5O!P%@AP[4\\PZX54(P^)7CC)7}$EICAR" + b"-STANDARD-ANTIVIRUS-TEST-FILE!$H+H*"
_SIGNATURE = "Eicar-Test-Signature"


class TooLarge(Exception):
    """More than its limit."""


async def answer(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    faults: Faults,
    ledger: Ledger,
    settings: Settings,
) -> None:
    """One command, as clamd has one for each connection."""
    command = (await reader.readuntil(b"\0")).rstrip(b"\0").decode("ascii", "replace")
    match command:
        case "zPING":
            writer.write(b"PONG\0")
        case "zVERSION":
            writer.write(b"ClamAV 1.4.3/simulated\0")
        case "zINSTREAM":
            with ledger.call("scan"):
                writer.write(await _scanned(reader, writer, faults, ledger, settings))
        case _:
            writer.write(b"UNKNOWN COMMAND\0")
    await writer.drain()


async def _scanned(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    faults: Faults,
    ledger: Ledger,
    settings: Settings,
) -> bytes:
    try:
        content = await _read(reader, settings.most)
    except TooLarge:
        return b"INSTREAM size limit exceeded. ERROR\0"
    await asyncio.sleep(settings.answers_in)
    fault = faults.next("scan")
    match None if fault is None else fault.kind:
        case "refused":
            writer.transport.abort()
            return b""
        case "error":
            return b"INSTREAM: cannot allocate memory. ERROR\0"
        case "silent":
            await asyncio.sleep(SILENCE)
    found = _SIGNATURE if _TEST_FILE in content else ""
    ledger.add("scanned", size=len(content), sha256=hashlib.sha256(content).hexdigest(), found=found)
    return f"stream: {found} FOUND\0".encode() if found else b"stream: OK\0"


async def _read(reader: asyncio.StreamReader, most: int) -> bytes:
    """Pieces with their lengths before them; an empty one is the end."""
    whole = bytearray()
    while True:
        (length,) = struct.unpack("!I", await reader.readexactly(4))
        if length == 0:
            return bytes(whole)
        if len(whole) + length > most:
            raise TooLarge
        whole += await reader.readexactly(length)
