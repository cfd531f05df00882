"""Whose events are measured, and over which transports."""

from __future__ import annotations

from bench.systems import System

CALLERS = 50
_REDIS, _NATS = "redis-everysec", "nats"
TRANSPORT = {_REDIS: "redis", _NATS: "nats"}  # as figures call them
_TWO, _ONE = "2 processes, 100 slots", "1 process, 100 slots"
_ROWS = {"BENCH_ROWS": "1"}


def _ours(store: str, guess: int, config: str, broker: str = "") -> System:
    return System("holdfast", store, "bench.peers.event_holdfast", guess=guess, config=config, broker=broker)


def _theirs(name: str, module: str, broker: str, guess: int, package: str, *, rows: bool) -> System:
    return System(
        name, "postgres", f"bench.peers.{module}", environment="events", package=package, guess=guess,
        config=_TWO, broker=broker, settings=_ROWS if rows else {},
    )  # fmt: skip


OURS = [
    _ours("postgres", 800, _TWO),
    _ours("sqlite", 800, _ONE),
    _ours("postgres", 800, _TWO, _REDIS),
    _ours("postgres", 800, _TWO, _NATS),
]
WITH_ROWS = [
    _theirs("faststream", "event_faststream", _REDIS, 800, "faststream", rows=True),
    _theirs("faststream", "event_faststream", _NATS, 800, "faststream", rows=True),
    _theirs("limit", "event_raw", _REDIS, 1_500, "redis", rows=True),
    _theirs("limit", "event_raw", _NATS, 1_500, "nats-py", rows=True),
]
PLAIN = [
    _theirs("faststream", "event_faststream", _REDIS, 1_500, "faststream", rows=False),
    _theirs("faststream", "event_faststream", _NATS, 1_500, "faststream", rows=False),
    _theirs("limit", "event_raw", _REDIS, 4_000, "redis", rows=False),
    _theirs("limit", "event_raw", _NATS, 4_000, "nats-py", rows=False),
]
EMITTERS = [
    *OURS[:2],
    System("limit", "postgres", "bench.limits.emit", config="two inserts, asyncpg"),
    System("limit", "sqlite", "bench.limits.emit", config="two inserts, APSW, one writer"),
]
RELAYS = [
    System("holdfast", "postgres", "bench.events.memory", config="relay alone", broker=broker)
    for broker in ("", _REDIS, _NATS)
]
MEASURES: dict[str, list[System]] = {
    "events": [*OURS, *WITH_ROWS],
    "events_plain": PLAIN,
    "emit_one": EMITTERS,
    "emit_concurrent": EMITTERS,
    "event_latency": [*OURS, *WITH_ROWS[:2]],
    "relay_memory": RELAYS,
}
