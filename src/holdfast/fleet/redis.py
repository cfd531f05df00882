"""What a fleet's breakers and limiters share, on a Redis: `store.ports.SharedGuards`, one round trip for each verb.

For whoever asks more often than about once a second, or does not want to trouble the database. What people decide (hold,
reset) stays there, and `look` and `reset` let them see and do the same here. Redis may lose everything at any time: then no bucket grants more than its rate has earned since.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import msgspec

from holdfast.fleet.redis_scripts import scripts
from holdfast.fleet.redis_server import Server
from holdfast.kernel.errors import StoreError
from holdfast.kernel.names import check_name
from holdfast.store import quota
from holdfast.store.breakers import (
    KEYS_SHOWN,
    NODES_SHOWN,
    BreakerReport,
    BreakerState,
    FleetBreaker,
    GuardRecord,
    NodeBreaker,
    Probe,
)
from holdfast.store.edge import checked_shared
from holdfast.store.quota import DAY, Bucket, Grant, Pace, Return, Want
from holdfast.transport.redis_url import parse

Told = tuple[int, float | bool, float, list[tuple[str, float, str]]]  # as `lua/report.lua` says


Looked = tuple[
    int,
    float | bool,
    float,
    list[tuple[str, float, str]],
    int,
    list[tuple[str, float | bool, int, float, int]],
]


class Word(msgspec.Struct, frozen=True):
    """What a node says of a breaker, as it is kept."""

    state: BreakerState
    generation: int
    open_for: float
    calls: int
    failures: int
    slow: int
    paused: float = 0.0


@checked_shared
class RedisGuards:
    """`RedisGuards("redis://localhost:6379/0")`: Redis 6 or newer, or Valkey; one server, no cluster."""

    def __init__(self, url: str, *, prefix: str = "holdfast:") -> None:
        self._target = parse(url)
        self._prefix = check_name("prefix", prefix)
        self._server = Server(self._target)
        self._scripts = scripts()

    def __repr__(self) -> str:
        return f"RedisGuards({self._target.shown!r})"

    async def open(self) -> None:
        """Raises when Redis does not answer; the verbs may be used all the same, and work when it does."""
        await self._server.open()

    async def close(self) -> None:
        await self._server.close()

    async def take(self, wants: Sequence[Want]) -> list[Grant]:
        if not wants:
            return []
        keys = [self._key("memory"), *(self._bucket(want.name, want.key) for want in wants)]
        asked = [(want.least, want.most, want.rate, want.burst, want.lenient) for want in wants]
        answers = await self._ask("take", keys, asked, list[tuple[float, Bucket]])
        return [quota.grant_of(want, left, units) for want, (units, left) in zip(wants, answers, strict=True)]

    async def ahead(self, name: str, keys: Sequence[str], *, seconds: float) -> list[float]:
        if not keys:
            return []
        asked = [self._key("memory"), *(self._bucket(name, key) for key in keys)]
        buckets = await self._run("ahead", asked, [], list[Bucket | bool])
        return [
            quota.ahead(each, seconds, each.at) if isinstance(each, Bucket) else math.inf for each in buckets
        ]

    async def give_back(self, returns: Sequence[Return]) -> None:
        if not returns:
            return
        merged = quota.merged(returns)
        keys = [self._key("memory"), *(self._bucket(item.grant.name, item.grant.key) for item in merged)]
        await self._ask(
            "give_back", keys, [(item.units, item.grant.at, item.grant.mark) for item in merged], bool
        )

    async def slow(
        self,
        name: str,
        key: str,
        *,
        rate: float | None,
        pause: float = 0.0,
        version: int = 0,
        in_row: int = 0,
    ) -> Pace:
        asked = rate or False, min(pause, DAY), version, key, in_row
        keys = [self._key("memory"), self._bucket(name, key), self._key("slowed", name)]
        bucket = await self._ask("slow", keys, asked, Bucket)
        return quota.pace_of(name, key, bucket)

    async def calm(self, name: str, key: str, *, in_row: int) -> Pace:
        keys = [self._key("memory"), self._bucket(name, key)]
        bucket = await self._ask("calm", keys, in_row, Bucket | bool)
        return quota.pace_of(name, key, bucket if isinstance(bucket, Bucket) else None)

    async def pace(self, name: str, key: str) -> Pace:
        """What the other side has left us of one key."""
        return await self.calm(name, key, in_row=0)  # of none it changes nothing

    async def sped(self, name: str, key: str, *, rate: float | None, version: int) -> Pace:
        keys = [self._key("memory"), self._bucket(name, key)]
        bucket = await self._ask("sped", keys, (rate or False, version), Bucket | bool)
        return quota.pace_of(name, key, bucket if isinstance(bucket, Bucket) else None)

    async def report(self, node: str, reports: Sequence[BreakerReport], *, ttl: float) -> list[FleetBreaker]:
        if not reports:
            return []
        keys = [
            key
            for item in reports
            for key in (self._key("nodes", item.guard), self._key("fleet", item.guard))
        ]
        words = (msgspec.json.encode(_word(item)) for item in reports)
        answers = await self._run("report", keys, [node, repr(float(ttl)), *words], list[Told])
        return [_told(item.guard, *answer) for item, answer in zip(reports, answers, strict=True)]

    async def open_fleet(self, name: str, *, generation: int, open_for: float) -> bool:
        return await self._is_done("turn", [self._key("fleet", name)], (generation, open_for))

    async def close_fleet(self, name: str, *, generation: int) -> bool:
        return await self._is_done("turn", [self._key("fleet", name)], (generation, False))

    async def probe(self, name: str, node: str, *, permits: int, lease: float) -> Probe | None:
        keys = [self._key("probes", name), self._key("fleet", name)]
        answer = await self._ask("probe", keys, (permits, lease), tuple[int, float] | bool)
        return Probe(name, node, *answer) if isinstance(answer, tuple) else None

    async def probed(self, probe: Probe) -> bool:
        return await self._is_done("probed", [self._key("probes", probe.guard)], probe.token)

    # --- for people; not in the port: what they decide is in a database ---

    async def look(self, name: str, *, now: float) -> GuardRecord:
        """What is known of a guard. Its times are those of whoever asks, where it is `now`."""
        args: list[bytes | str] = [self._bucket(name, "")]
        return _looked(name, await self._run("look", self._of_guard(name), args, Looked), now)

    async def reset(self, name: str) -> bool:
        """Begin anew: closed, no permits out, no rate lowered, no pause. False: nobody knows it here."""
        return bool(await self._run("reset", self._of_guard(name), [self._bucket(name, "")], bool))

    def _of_guard(self, name: str) -> list[str]:
        kinds = ("nodes", "fleet", "probes", "slowed")
        return [self._key("memory"), *(self._key(kind, name) for kind in kinds)]

    def _bucket(self, name: str, key: str) -> str:
        """With the length of the name, or `a` and `b:c` would be `a:b` and `c`."""
        return self._key("bucket", f"{len(name)}:{name}:{key}")

    def _key(self, *parts: str) -> str:
        return self._prefix + ":".join(parts)

    async def _is_done(self, script: str, keys: list[str], asked: Any) -> bool:
        return bool(await self._ask(script, keys, asked, bool))

    async def _ask(self, script: str, keys: list[str], asked: Any, kind: Any) -> Any:
        return await self._run(script, keys, [msgspec.msgpack.encode(asked)], kind)

    async def _run(self, script: str, keys: list[str], args: list[bytes | str], kind: Any) -> Any:
        answer = await self._server.run(self._scripts[script], keys, args)
        try:
            return msgspec.msgpack.decode(answer, type=kind)
        except msgspec.DecodeError as error:
            raise StoreError(f"{self!r} holds what this version of Holdfast cannot read: {error}.") from error


def _word(item: BreakerReport) -> Word:
    return Word(item.state, item.generation, item.open_for, item.calls, item.failures, item.slow, item.paused)


def _told(
    guard: str, generation: int, opened_until: float | bool, now: float, others: list[tuple[str, float, str]]
) -> FleetBreaker:
    until = None if opened_until is False else float(opened_until)
    return FleetBreaker(
        guard=guard,
        generation=generation,
        opened_until=until,
        open_for=0.0 if until is None else until - now,
        others=tuple(_node(*other) for other in sorted(others)),
    )


def _looked(name: str, answer: Looked, now: float) -> GuardRecord:
    generation, opened_until, then, words, probes, paces = answer
    told = [
        Pace(name, key, rate or None, version, paused, in_row) for key, rate, version, paused, in_row in paces
    ]
    slowed = sorted((pace for pace in told if pace.rate is not None), key=lambda pace: (pace.rate, pace.key))
    paused = sorted((pace for pace in told if pace.paused > 0), key=lambda pace: (-pace.paused, pace.key))
    nodes = [_node(*word) for word in sorted(words)]
    return GuardRecord(
        name=name,
        generation=generation,
        opened_until=None if opened_until is False else now + opened_until - then,
        nodes=tuple(nodes[:NODES_SHOWN]),
        nodes_number=len(nodes),
        probes=probes,
        slowed=len(slowed),
        slowest=tuple(slowed[:KEYS_SHOWN]),
        paused=len(paused),
        longest=tuple(paused[:KEYS_SHOWN]),
    )


def _node(name: str, at: float, text: str) -> NodeBreaker:
    word = msgspec.json.decode(text, type=Word)
    numbers = word.generation, word.open_for, word.calls, word.failures, word.slow
    return NodeBreaker(name, word.state, *numbers, at, word.paused)
