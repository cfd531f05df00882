"""What the tests of guarded HTTP share: a guard, a client on it, and a world in which nobody waits between attempts."""

from __future__ import annotations

import os
from contextlib import asynccontextmanager
from importlib import import_module

import pytest

from holdfast.guards import Backoff, Breaker, Bulkhead, Guard, Refused
from holdfast.guards.http import GuardedTransport
from holdfast.kernel.reality import Reality
from holdfast.kernel.world import inhabit

httpx = import_module(
    os.environ.get("HTTP_LIBRARY", "httpx2")
)  # test_http_libraries.py runs all with the other one


class Hurried(Reality):
    """Waits are written down instead of waited for; chance is always the middle."""

    def __init__(self, meanwhile=lambda: None):
        super().__init__()
        self.waits = []
        self._meanwhile = meanwhile

    async def sleep(self, seconds):
        self.waits.append(seconds)
        self._meanwhile()

    def pause(self, seconds, flag):
        self.waits.append(seconds)
        self._meanwhile()
        return False

    def random(self):
        return 0.5


def make_guard(**options):
    parts = {
        "timeout": 5,
        "deadline": 20,
        "retry": Backoff(attempts=3, first=0.01, ceiling=10),
        "breaker": Breaker(failures=100, cooldown=300, permits=1),
        "bulkhead": Bulkhead(5, waiting=50),
    }
    return Guard("api", **parts | options)


class Kit:
    """A guard, a client that goes through it, and the pool of connections below."""

    def __init__(self, guard, inner, client, waits):
        self.guard, self.client, self.waits, self._inner = guard, client, waits, inner

    def __getattr__(self, name):
        return getattr(self.client, name)

    @property
    def pool(self):
        return self._inner._pool.connections

    @property
    def busy(self):
        """Connections that somebody has not given back."""
        return [each for each in self.pool if not each.is_idle()]

    @property
    def is_clean(self):
        return self.has_permits and not self.busy

    @property
    def has_permits(self):
        return self.guard.bulkhead.in_flight == 0 and self.guard.bulkhead.line == 0


@asynccontextmanager
async def guarded(server, guard=None, *, meanwhile=None, storms=False, **options):
    """`meanwhile` is called with the kit in each wait between attempts.

    httpcore 1.0.9, below httpx, loses a connection whose request is cancelled in the moment that it is connected or closed, with
    or without a guard (its issue 1093): where many are cancelled, only permits can be counted there.
    """
    guard, inner = guard or make_guard(), httpx.AsyncHTTPTransport()
    world = Hurried(lambda: meanwhile(kit) if meanwhile else None)
    transport = GuardedTransport(guard, inner, **options)
    loses = storms and httpx.__name__ == "httpx"
    with inhabit(world):
        async with httpx.AsyncClient(transport=transport, base_url=server.url) as found:
            kit = Kit(guard, inner, found, world.waits)
            yield kit
            assert kit.has_permits if loses else kit.is_clean, f"{guard.bulkhead}, {kit.pool}"


async def refusal_of(kit, **options):
    with pytest.raises(httpx.TransportError) as raised:
        await kit.get("/", **options)
    assert isinstance(raised.value, Refused)
    assert raised.value.request.method == "GET"
    return raised.value
