"""Which libraries guard calls, and what each of them is measured in."""

from __future__ import annotations

from bench.systems import System

MEMORY = "memory"  # nothing is stored


def _peer(name: str, module: str, config: str, **settings: str) -> System:
    return System(
        name, MEMORY, f"bench.peers.{module}", environment="guards", package=name.split(" ", maxsplit=1)[0],
        config=config, settings=settings,
    )  # fmt: skip


OURS = System("holdfast", MEMORY, "bench.peers.guard_holdfast", config="one Guard")
_REST = "aiolimiter, asyncio.Semaphore, asyncio.timeout twice, try"
PEERS = [
    _peer("tenacity", "guard_tenacity", "3 attempts, random exponential waits"),
    _peer("stamina", "guard_stamina", "3 attempts"),
    _peer("pybreaker", "guard_pybreaker", "calling()"),
    _peer("purgatory", "guard_purgatory", "in memory"),
    _peer("aiolimiter", "guard_aiolimiter", "leaky bucket"),
    _peer("limits", "guard_limits", "fixed window in memory, its fastest"),
    _peer("hyx", "guard_hyx", "all of its parts"),
    *(
        _peer(
            f"{retry} + {breaker}",
            "guard_stack",
            f"{retry}, {breaker}, {_REST}",
            STACK=f"{retry} {breaker}",
        )
        for retry in ("tenacity", "stamina")
        for breaker in ("pybreaker", "purgatory")
    ),
]
