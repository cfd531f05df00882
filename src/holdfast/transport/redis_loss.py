"""What a Redis may lose, said from its settings."""

from __future__ import annotations

from collections.abc import Mapping

UNKNOWN = "not known: this Redis does not show its settings; with its defaults, all since its last snapshot"
SEEN = (
    "appendonly",
    "appendfsync",
    "save",
    "maxmemory",
    "maxmemory-policy",
    "min-replicas-to-write",
    "min-replicas-max-lag",
    "proto-max-bulk-len",
)
_LARGEST = 512 * 1024 * 1024  # bytes of one value, unless the server says otherwise
_WINDOWS = {
    "always": "nothing that was acknowledged, while its disk is good (appendfsync always)",
    # It does not write while its last flush is under way, for up to two seconds: then its own death is enough.
    "everysec": "the last second or two when its machine dies, or when Redis does while its disk is slow (appendfsync everysec)",
    "no": "about half a minute when its machine dies, nothing when only Redis does (appendfsync no)",
}


def loss_of(settings: Mapping[str, str]) -> str:
    """In words. `settings` as CONFIG GET gives them; empty: they cannot be seen."""
    if not settings:
        return UNKNOWN
    found = (_window(settings), _failover(settings), _eviction(settings))
    return "; ".join(clause for clause in found if clause)


def largest_of(settings: Mapping[str, str]) -> int:
    """Bytes of the largest message."""
    return int(settings.get("proto-max-bulk-len", _LARGEST))


def _window(settings: Mapping[str, str]) -> str:
    if settings.get("appendonly") == "yes":
        return _WINDOWS[settings.get("appendfsync", "everysec")]
    if rules := settings.get("save"):
        return f"all since its last snapshot (save {rules}; set appendonly yes)"
    return "everything: it keeps nothing on a disk (set appendonly yes)"


def _failover(settings: Mapping[str, str]) -> str:
    if settings.get("min-replicas-to-write", "0") == "0":
        return "a fail-over to a replica loses what that had not got"
    return (
        f"a fail-over may lose the last {settings.get('min-replicas-max-lag', '10')} s (min-replicas-max-lag)"
    )


def _eviction(settings: Mapping[str, str]) -> str:
    """One that evicts keys drops the whole stream when its memory is full."""
    policy = settings.get("maxmemory-policy", "noeviction")
    if settings.get("maxmemory", "0") == "0" or not policy.startswith("allkeys"):
        return ""
    return f"everything when its memory is full (maxmemory-policy {policy}; set noeviction)"
