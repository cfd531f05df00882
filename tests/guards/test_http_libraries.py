"""httpx and httpx2: the same tests with either, both in one process, and neither."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import httpx
import httpx2
import pytest
from http_kit import make_guard
from http_server import answer

from holdfast.guards import Breaker, BreakerOpen, Fault, classify
from holdfast.guards.faults import is_timeout
from holdfast.guards.http import GuardedTransport, SyncGuardedTransport

BOTH = pytest.mark.parametrize("library", [httpx, httpx2])


def test_all_of_it_with_httpx():
    """The other files take httpx2."""
    if "HTTP_LIBRARY" in os.environ:
        pytest.skip("this is it")
    files = [
        str(each)
        for each in sorted(Path(__file__).parent.glob("test_http_*.py"))
        if each.name != Path(__file__).name
    ]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:xdist", "-p", "no:cacheprovider", "-x", *files],
        env={**os.environ, "HTTP_LIBRARY": "httpx"}, capture_output=True, text=True, check=False, timeout=250,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-3000:]


@BOTH
async def test_the_clients_of_both_in_one_process(server, library):
    server.will(answer(500), answer(), answer(500))
    guard = make_guard(breaker=Breaker(failures=2, cooldown=300))
    async with library.AsyncClient(transport=GuardedTransport(guard)) as client:
        found = await client.get(server.url)
        assert (type(found), found.text) == (library.Response, "well")
        await client.post(server.url)
        await client.post(server.url)
        with pytest.raises(library.TransportError) as raised:
            await client.get(server.url)
    assert isinstance(raised.value, BreakerOpen)
    assert type(raised.value.request) is library.Request
    assert guard.bulkhead.in_flight == 0


@BOTH
def test_the_sync_clients_of_both_in_one_process(server, library):
    server.will(answer(500), answer())
    with library.Client(transport=SyncGuardedTransport(make_guard())) as client:
        assert client.get(server.url).text == "well"


@pytest.mark.parametrize(
    ("missing", "said"),
    [(["httpx"], ""), (["httpx2"], ""), (["httpx", "httpx2"], "install holdfast[httpx2]")],
)
def test_what_is_not_installed(missing, said):
    program = f"import sys; sys.modules.update(dict.fromkeys({missing})); import holdfast.guards; import holdfast.guards.http"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode == 0) is (said == "")
    assert said in done.stderr


def test_nobody_pays_for_what_he_does_not_use():
    program = (
        "import sys; import holdfast, holdfast.guards; print(any('httpx' in name for name in sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


# --- their errors, as any guard sees them ---


@BOTH
@pytest.mark.parametrize(
    ("name", "fault"),
    [
        ("ConnectError", Fault.TRANSIENT), ("ConnectTimeout", Fault.TRANSIENT), ("PoolTimeout", Fault.TRANSIENT),
        ("ReadTimeout", Fault.UNKNOWN), ("WriteTimeout", Fault.UNKNOWN), ("ReadError", Fault.UNKNOWN),
        ("WriteError", Fault.UNKNOWN), ("RemoteProtocolError", Fault.UNKNOWN), ("ProxyError", Fault.UNKNOWN),
        ("LocalProtocolError", Fault.PERMANENT), ("UnsupportedProtocol", Fault.PERMANENT),
    ],
)  # fmt: skip
def test_what_an_error_tells(library, name, fault):
    class Own(getattr(library, name)):
        """Somebody's."""

    assert classify(getattr(library, name)("x")) is fault
    assert classify(Own("x")) is fault


@BOTH
def test_which_of_them_are_timeouts(library):
    assert is_timeout(library.ReadTimeout("x"))
    assert is_timeout(TimeoutError())
    assert not is_timeout(library.ReadError("x"))
    assert not is_timeout(ValueError("Timeout"))
