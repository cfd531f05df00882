"""A Holdfast on each of the places where values are kept."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1] / "guards"))  # `virtual` is there

from holdfast import Holdfast
from holdfast.fleet.redis_cache import RedisCache
from holdfast.views.cache_place import Place

_prefixes = iter(range(10**9))


def on_redis(hf, url, prefix):
    """A Redis that other tests use, too."""
    hf.cache.redis = RedisCache(url, prefix=prefix)
    hf.cache._places["redis"] = Place("redis", hf.cache.redis)


@pytest.fixture(params=["memory", "sqlite", "postgres", "redis"])
def place(request, tmp_path):
    """What `hf.cached(on=…)` is told, and how to make a Holdfast for it."""
    kind = request.param
    url = request.getfixturevalue("postgres_url") if kind == "postgres" else f"sqlite:///{tmp_path / 'c.db'}"
    valkey = request.getfixturevalue("valkey") if kind == "redis" else None
    prefix = f"cached-{next(_prefixes)}-{id(request)}:"

    def make():
        hf = Holdfast(url)
        if valkey is not None:
            on_redis(hf, valkey.url, prefix)
        return hf

    return {"sqlite": "store", "postgres": "store"}.get(kind, kind), make


@pytest.fixture
def on(place):
    return place[0]


@pytest.fixture
async def hf(place):
    async with place[1]() as opened:
        yield opened


@pytest.fixture
async def other(place, on):
    """Another process, as far as a cache can tell; in memory there is none."""
    if on == "memory":
        pytest.skip("the memory of a process is its own")
    async with place[1]() as opened:
        yield opened
