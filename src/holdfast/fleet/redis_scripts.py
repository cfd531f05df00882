"""The Lua scripts of `fleet.redis`, `redis_cache` and `redis_visits`: each verb is one, put together from the files in `lua/`."""

from __future__ import annotations

from hashlib import sha1
from importlib.resources import files

import msgspec

_QUOTA = ("memory", "buckets")
_PARTS = {
    "take": _QUOTA,
    "ahead": _QUOTA,
    "give_back": _QUOTA,
    "slow": _QUOTA,
    "calm": _QUOTA,
    "sped": _QUOTA,
    "report": ("fleets",),
    "turn": ("fleets",),
    "probe": ("fleets", "probes"),
    "probed": ("probes",),
    **{f"cache_{verb}": ("caches",) for verb in ("get", "begin", "renew", "put", "abandon", "forget")},
    **{f"visit_{verb}": ("visits",) for verb in ("begin", "get", "touch", "write", "end", "end_of", "find")},
    "look": (*_QUOTA, "fleets", "slowed"),
    "reset": (*_QUOTA, "fleets", "slowed"),
}


class Script(msgspec.Struct, frozen=True):
    text: str
    digest: str  # the server knows it by this once it has seen the text


def _read(name: str) -> str:
    return files(__package__).joinpath("lua", f"{name}.lua").read_text(encoding="utf-8")


def scripts(clock: str | None = None) -> dict[str, Script]:
    """Each by its name. `clock` is Lua in place of the server's own clock, for tests: it sets `now`."""
    return {name: _script(clock or _read("clock"), (*parts, name)) for name, parts in _PARTS.items()}


def _script(clock: str, parts: tuple[str, ...]) -> Script:
    text = "\n".join([clock, _read("values"), *map(_read, parts)])
    return Script(text, sha1(text.encode(), usedforsecurity=False).hexdigest())
