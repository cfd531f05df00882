"""A small world that remembers what was done to it, and functions for steps and undos that can be found by name."""

from __future__ import annotations

from holdfast import Backoff
from holdfast.testing import drain

QUICK = Backoff(attempts=2, first=0.001, ceiling=0.001)
done: list[str] = []
fails: dict[str, list[Exception]] = {}  # by what is done: the errors of its next calls


def forget():
    done.clear()
    fails.clear()


def fail(what, *errors):
    fails[what] = list(errors)


def _do(what):
    done.append(what)
    if fails.get(what):
        raise fails[what].pop(0)


async def do(what: str) -> str:
    _do(what)
    return f"{what}!"


async def undo(what: str) -> None:
    _do(f"undo {what}")


def undo_plainly(what: str) -> None:
    _do(f"undo {what}")


async def take_back(result: str | None) -> None:
    _do(f"take back {result}")


class Clusterer:
    async def create(self, name: str) -> str:
        _do(f"create {name}")
        return name

    async def delete(self, name: str) -> None:
        _do(f"delete {name}")


clusterer = Clusterer()


async def settled(hf, run, *, rounds=20):
    """Run its jobs until it is over or stuck; its record."""
    for _ in range(rounds):
        await drain(hf)
        record = await run.record()
        if record.finished_at is not None or record.state in ("needs_operator", "parked", "waiting"):
            return record
    return record
