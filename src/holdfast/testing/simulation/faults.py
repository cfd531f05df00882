"""Which faults a seed brings, when, where, and how badly."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from holdfast.kernel.crashpoints import CRASHPOINTS

# What only bodies with steps pass. The kind "store" has none: nothing there stands for `job.step` and `job.effect`.
BODY_POINTS = tuple(name for name in CRASHPOINTS if name.startswith(("step.", "effect.")))
# What every kind passes. Written out by beginning: a new part of the engine with points of its own must not change old seeds.
COMMON_POINTS = tuple(
    name for name in CRASHPOINTS if name.startswith(("store.", "transaction.", "claim.", "body."))
)
STEP_BACK = 4.0  # seconds by which the database's clock may go back


class Fault(msgspec.Struct, frozen=True, kw_only=True):
    number: int
    at: float
    node: int
    kind: str
    point: str = ""  # the crash point at which it strikes
    skip: int = 0  # how often that place is passed before
    times: int = 1
    seconds: float = 0.0

    def __str__(self) -> str:
        where = f" at {self.point} (after {self.skip} passes, {self.times} x)" if self.point else ""
        length = f" {self.seconds:+.2f} s" if self.seconds else ""
        return f"fault {self.number:2}: {self.at:6.2f} s  node {self.node}  {self.kind}{where}{length}"


def make_faults(rng: random.Random, nodes: int, until: float, *, scheduled: bool) -> tuple[Fault, ...]:
    kinds = rng.sample(list(_KINDS), rng.randint(2, 5))  # a few at a time: swarms find more than soups
    made = []
    for number in range(rng.choice((0, 2, 4, 6, 8))):
        at, node = round(rng.uniform(1, until), 3), rng.randrange(nodes)
        made.append(Fault(number=number, at=at, node=node, **_KINDS[rng.choice(kinds)](rng)))
    if scheduled and rng.random() < 0.3:
        how: dict[str, Any] = {
            "kind": "crash",
            "point": "schedule.before_tick",
            "skip": rng.randrange(3),
            "seconds": 2.0,
        }
        made.append(Fault(number=len(made), at=0.0, node=0, **how))
    return tuple(sorted(made, key=lambda fault: fault.at))


def around_enqueues(
    rng: random.Random, enqueues: Sequence[tuple[float, int]], first: int
) -> tuple[Fault, ...]:
    """Sometimes a plain enqueue (its time and node) gets no answer: it committed, or it did not."""
    if not enqueues or rng.random() < 0.7:
        return ()
    at, node = rng.choice(enqueues)
    how: dict[str, Any] = rng.choice(
        (
            {"kind": "lost reply", "point": "store.after_commit", "seconds": 3.0},  # and the store stays away
            {"kind": "lost reply", "point": "store.after_commit", "times": 6},
            {"kind": "lost request", "point": "store.before_commit", "times": 6},
            {"kind": "lost request", "point": "store.before_commit"},
        )
    )
    return (Fault(number=first, at=at - 1e-6, node=node, **how),)


def _lasting(kind: str, least: float, most: float) -> Callable[[random.Random], dict[str, Any]]:
    return lambda rng: {"kind": kind, "seconds": round(rng.uniform(least, most), 3)}


def _crash(rng: random.Random) -> dict[str, Any]:
    point = rng.choice(COMMON_POINTS)
    return {
        "kind": "crash",
        "point": point,
        "skip": _skip(rng, point),
        "seconds": round(rng.uniform(0.5, 9), 3),
    }


def _stall(rng: random.Random) -> dict[str, Any]:
    """Paused with a claim in hand, or an outcome, or the write lock: what resumes is a zombie."""
    point = rng.choice(("claim.taken", "body.done", "body.done", "body.done", "transaction.before_commit"))
    return {"kind": "stall", "point": point, "seconds": round(rng.uniform(9, 18), 3)}


def _lost_reply(rng: random.Random) -> dict[str, Any]:
    """The answer to one commit, or to several; sometimes the store then stays away for a while."""
    how = _at_commit(rng, "lost reply", rng.choice(("store.after_commit", "transaction.after_commit")))
    return how | {"seconds": rng.choice((0.0, 0.0, 1.0))}


def _lost_request(rng: random.Random) -> dict[str, Any]:
    point = rng.choice(("store.before_commit", "transaction.before_commit"))
    return _at_commit(rng, rng.choice(("refused", "lost request")), point)


def _at_commit(rng: random.Random, kind: str, point: str) -> dict[str, Any]:
    return {"kind": kind, "point": point, "skip": _skip(rng, point), "times": rng.choice((1, 1, 2, 4))}


def _skip(rng: random.Random, point: str) -> int:
    """Most commits of the store are those of idle polls: do not always strike the next one."""
    return rng.randrange(12) if point.startswith("store.") else 0


_KINDS: dict[str, Callable[[random.Random], dict[str, Any]]] = {
    "kill": _lasting("kill", 0.5, 12),  # until its restart
    "pause": _lasting("pause", 3, 16),  # mostly past the lease
    "stall": _stall,
    "clock": _lasting("clock", -3600, 3600),
    "host clock": _lasting("host clock", -STEP_BACK, 10),
    "crash": _crash,
    "lost reply": _lost_reply,
    "lost request": _lost_request,
    "full": _lasting("full", 0.5, 6),
    "slow": _lasting("slow", 1, 6),
}
