"""The simulated clamd scans by clamd's protocol, finds the test file, and misbehaves when it is told to."""

from __future__ import annotations

import socket
import struct

import pytest

from simulators.clamd.app import Simulator

EICAR = b"X5O!P%@AP[4\\PZX54(P^)7CC)7}$EICAR" + b"-STANDARD-ANTIVIRUS-TEST-FILE!$H+H*"


@pytest.fixture
def clamd():
    with Simulator(seed=7) as simulator:
        yield simulator


def said(clamd, *parts):
    with socket.create_connection(("127.0.0.1", clamd.port), timeout=5) as line:
        for part in parts:
            line.sendall(part)
        found = b""
        while piece := line.recv(4096):
            found += piece
    return found


def scanned(clamd, *pieces):
    return said(
        clamd,
        b"zINSTREAM\0",
        *(struct.pack("!I", len(each)) + each for each in pieces),
        struct.pack("!I", 0),
    )


def test_it_answers_and_scans(clamd):
    assert said(clamd, b"zPING\0") == b"PONG\0"
    assert said(clamd, b"zVERSION\0").startswith(b"ClamAV")
    assert said(clamd, b"zRELOAD\0") == b"UNKNOWN COMMAND\0"
    assert scanned(clamd, b"%PDF", b" and more") == b"stream: OK\0"
    assert scanned(clamd, EICAR[:20], EICAR[20:]) == b"stream: Eicar-Test-Signature FOUND\0"
    assert [each["found"] for each in clamd.ledger.find("scanned")] == ["", "Eicar-Test-Signature"]


def test_a_file_that_is_too_large_is_not_read_on(clamd):
    clamd.settings.change({"most": 10})
    assert scanned(clamd, b"eleven byte") == b"INSTREAM size limit exceeded. ERROR\0"
    with pytest.raises(ValueError, match="no setting is called"):
        clamd.settings.change({"colour": "red"})


def test_it_fails_by_switch(clamd):
    clamd.faults.put("scan", "error", times=1)
    assert scanned(clamd, b"a").endswith(b"ERROR\0")
    clamd.faults.put("scan", "refused", times=1)
    assert scanned(clamd, b"a") == b""
    assert scanned(clamd, b"a") == b"stream: OK\0"
