"""Whose sagas are measured, and how."""

from __future__ import annotations

from dataclasses import replace

from bench.systems import System

_TWO, _ONE = "2 processes, 100 slots", "1 process, 100 slots"
_PLAIN, _SLEEP, _STARTED = {"BENCH_FORM": "plain"}, {"BENCH_FORM": "sleep"}, {"BENCH_STARTED": "1"}

OURS = [
    System("holdfast", "postgres", "bench.peers.saga_holdfast", guess=1_000, config=_TWO),
    System("holdfast", "sqlite", "bench.peers.saga_holdfast", guess=700, config=_ONE),
]
DBOS = System(
    "dbos", "postgres", "bench.peers.saga_dbos", environment="dbos", package="dbos", guess=100,
    config="2 processes, concurrency 100, poll 50 ms, 20 connections",
)  # fmt: skip
LIMITS = [
    System("limit", "postgres", "bench.limits.sagas", guess=8_000, config="100 at a time, 2 connections"),
    System("limit", "sqlite", "bench.limits.sagas", guess=8_000, config="100 at a time, 1 process"),
]


def _with(systems: list[System], settings: dict[str, str]) -> list[System]:
    return [replace(each, settings=settings) for each in systems]


MEASURES: dict[str, list[System]] = {
    "sagas": [*OURS, DBOS, *LIMITS],
    "sagas_plain": [*_with([*OURS, DBOS], _PLAIN), *LIMITS],
    "sagas_started": _with([OURS[0], DBOS], _STARTED),
    "sleeping": _with([*OURS, DBOS], _SLEEP),
}
# That sleep at once. In DBOS each is a coroutine of its process, and one of a thousand says what each of them costs.
MANY = {"holdfast": 100_000, "dbos": 2_000, "limit": 0}
FEW = {"holdfast": 300, "dbos": 100, "limit": 0}
