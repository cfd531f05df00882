"""Tasks that run in processes of their own, in a module that those can import."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import msgspec

from holdfast import Backoff, Cancel, Holdfast, Reject, Retry, Secret, Snooze
from holdfast.guards import Breaker, Bulkhead, Limiter, time_left
from holdfast.kernel.context import context

hf = Holdfast(os.environ.get("OWN_PROCESS_URL", "sqlite:///unused.db"))
ONCE = Backoff(attempts=1)


@hf.task(process=True, retry=ONCE)
def where(n: int) -> dict[str, int]:
    print("this must not disturb the answer")  # noqa: T201
    return {"pid": os.getpid(), "n": n}


@hf.task(process=True, retry=ONCE)
async def gently(n: int) -> int:
    return n + 1


@hf.task(process=True, retry=ONCE)
def tell_story() -> dict[str, object]:
    """Its context, and a job that follows from it."""
    follower = gently.enqueue_sync(1)
    return {"context": msgspec.to_builtins(context()), "follower": follower.id}


@hf.task(process=True, retry=ONCE)
async def tell_story_gently() -> dict[str, object]:
    return {"context": msgspec.to_builtins(context())}


class Base(BaseException): ...


@hf.task(process=True, retry=ONCE)
def crash(how: str, password: Secret[str] = "") -> None:
    match how:
        case "segfault":
            ctypes.string_at(0)
        case "exit":
            os._exit(9)
        case "raise":
            raise ValueError(f"bad {password}")
        case "sysexit":
            raise SystemExit(4)
        case "base":
            raise Base(password)


@hf.task(process=True, timeout=1.0, retry=ONCE)
def hang() -> None:
    while True:
        time.sleep(10)


@hf.task(process=True, retry=Backoff(attempts=2, first=0, never=(KeyError,)))
def control(how: str) -> None:
    raise {
        "retry": Retry(0.01),
        "snooze": Snooze(60),
        "cancel": Cancel("gone"),
        "reject": Reject("no"),
        "never": KeyError("k"),
    }[how]


@hf.task(process=True, timeout=8.0, retry=ONCE)
def have_children(folder: str) -> None:
    """It waits for one that it has started; both must end with it."""
    child = subprocess.Popen(["sleep", "1000"])
    (Path(folder) / "pid").write_text(str(child.pid))
    child.wait()


@hf.task(process=True, retry=ONCE)
def stay(folder: str) -> None:
    """It does not hear that it should leave, and waits for one that does not either."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    child = subprocess.Popen(["sleep", "1000"])
    (Path(folder) / "pids.new").write_text(f"{os.getpid()} {child.pid}")
    (Path(folder) / "pids.new").rename(Path(folder) / "pids")
    child.wait()


@hf.task(process=True, retry=ONCE)
def leave_a_fork() -> int:
    pid = os.fork()
    if pid == 0:
        time.sleep(1000)
        os._exit(0)
    return pid


@hf.task(process=True, retry=Backoff(attempts=3, first=0))
def unfit(how: str) -> int:
    return "x" * 3_000_000 if how == "big" else "text"  # type: ignore[return-value]


api = hf.guard(
    "api",
    limiter=Limiter(rate=0.01, burst=20),
    breaker=Breaker(
        failures=2,
        cooldown=0.3,
        permits=1,
        classify=lambda error: "transient" if "down" in str(error) else "permanent",
    ),
    bulkhead=Bulkhead(2),
)
other = hf.guard("other", limiter=Limiter(rate=1000), breaker=Breaker(failures=1))


async def _answer(text: str) -> str:
    if text == "fine":
        return text
    raise ConnectionError(text)


@hf.task(process=True, guard=api, retry=Backoff(attempts=2, first=0.01, ceiling=0.01))
async def ask(text: str) -> str:
    return await api.call(_answer, text)


@hf.task(process=True, guard=api, retry=ONCE)
def ask_twice() -> list[str]:
    return [api.call_sync(lambda: "one"), api.call_sync(lambda: "two")]


@hf.task(process=True, guard=other, retry=ONCE)
async def ask_later() -> None:
    async def answer() -> None:
        error = ConnectionError("later")
        error.status_code, error.retry_after = 429, 30  # type: ignore[attr-defined]
        raise error

    await other.call(answer)


@hf.task(process=True, retry=ONCE)
async def ask_together(how: str) -> None:
    """Several at once; TaskGroup raises a group of what they raise."""

    async def one(number: int) -> None:
        if how == "snooze":
            raise Snooze(60)
        if how == "mixed" and number == 0:
            raise ValueError("a mistake")
        await api.call(_answer, "fine")

    async with asyncio.TaskGroup() as group:
        for number in range(1 if how == "snooze" else 3):
            group.create_task(one(number))


@hf.task(process=True, guard=other, retry=ONCE)
async def hear_of_the_end() -> None:
    """The answer says that it was the last that the other side gives."""

    class Missing(Exception):
        status_code = 404
        headers = {"RateLimit": '"default";r=0;t=30'}  # noqa: RUF012

    async def answer() -> None:
        raise Missing

    with contextlib.suppress(Missing):
        await other.call(answer)


@hf.task(process=True, retry=ONCE)
async def how_long() -> float | None:
    return time_left()


@hf.task(process=True, retry=ONCE)
async def die_inside(folder: str) -> None:
    async with api:
        (Path(folder) / "inside").touch()
        os.kill(os.getpid(), signal.SIGKILL)


@hf.task(process=True, retry=ONCE)
def read_a_line() -> str:
    return sys.stdin.read()


def plain(n: int) -> int:
    return n * 2


renamed = hf.task(process=True, retry=ONCE)(plain)
