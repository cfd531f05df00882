"""A small shop, as a user would write it: its tests turn the clock."""

from __future__ import annotations

from datetime import datetime

from holdfast import Backoff, Event, Found, Holdfast, Job, NotFound, Snooze, Tx
from holdfast.guards import Breaker, Limiter

hf = Holdfast("sqlite:///never-made.db")
bank = hf.guard(
    "bank",
    timeout=5,
    retry=Backoff(attempts=3, first=2, ceiling=8),
    breaker=Breaker(failures=6, cooldown=30),
    limiter=Limiter(rate=10, burst=4),
)


class Bank:
    """A stand-in for the other side: what it has booked, and how its next calls end."""

    def __init__(self) -> None:
        self.booked: dict[int, int] = {}
        self.calls = 0
        self.failures: list[Exception] = []

    async def charge(self, order: int, cents: int) -> str:
        self.calls += 1
        if self.failures:
            failure = self.failures.pop(0)
            if isinstance(failure, TimeoutError):  # it was done, and the answer is lost
                self.booked[order] = cents
            raise failure
        self.booked[order] = cents
        return f"receipt {order}"

    def balance(self) -> int:
        self.calls += 1
        return sum(self.booked.values())


class World:
    """What the tests look at, and set."""

    def __init__(self) -> None:
        self.bank = Bank()
        self.mails: list[str] = []
        self.labels = 0
        self.price = 100
        self.priced = 0
        self.shelf = ["lamp", "desk"]


world = World()


async def charge(order: int, cents: int) -> str:
    return await bank.call(world.bank.charge, order, cents)


async def find_charge(order: int, cents: int) -> Found[str] | type[NotFound]:
    return Found(f"receipt {order}") if order in world.bank.booked else NotFound


@hf.task(retry=Backoff(attempts=4, first=60, ceiling=600))
async def pay(job: Job, order: int, cents: int) -> str:
    receipt = await job.effect(
        "charge", charge, order, cents, policy="at_most_once", reconcile=find_charge, settle=60
    )
    await hf.emit("payment.settled", {"order": order, "cents": cents}, key=f"order:{order}")
    return receipt


@hf.task(timeout=20, retry=Backoff(attempts=2, first=30, ceiling=30))
def print_label(job: Job, order: int) -> int:
    return job.blocking.step("print", printed, retry=Backoff(attempts=3, first=5, ceiling=5))


def printed() -> int:
    world.labels += 1
    if world.labels < 3:
        raise ConnectionError("the printer is warming up")
    return world.labels


@hf.task
def audit() -> int:
    return sum(bank.call_sync(world.bank.balance) for _ in range(12))


@hf.task(expires=3600)
async def remind(order: int) -> None:
    world.mails.append(f"remind {order}")


@hf.task
async def call_back(job: Job) -> None:
    if not world.mails:
        raise Snooze(900)


@hf.on_dead("clock_shop.print_label")
async def tell(job: Job, tx: Tx) -> None:
    world.mails.append("a label is missing")


@hf.on("payment.settled", group="mail")
async def thank(event: Event) -> None:
    world.mails.append(f"thanks for {event.data['cents']}")


@hf.view("turnover", on="payment.settled", key=lambda event: "all")
def turnover(row: dict | None, event: Event) -> dict:
    return {"cents": (row or {"cents": 0})["cents"] + event.data["cents"]}


async def reserve(item: str) -> str:
    world.shelf.remove(item)
    return item


async def put_back(item: str | None) -> None:
    if item is not None:
        world.shelf.append(item)


@hf.saga("sell")
async def sell(saga, order: int, item: str) -> str:
    await saga.step("reserve", reserve, item, undo=put_back)
    paid = await saga.wait_for("payment.settled", key=f"order:{order}", timeout=86_400)
    if paid is None:
        raise TimeoutError("not paid within a day")
    await saga.sleep(3 * 3600)  # the packers come in the afternoon
    return await saga.step("ship", ship, order, retry=Backoff(attempts=3, first=1, ceiling=2))


async def ship(order: int) -> str:
    world.labels += 1
    if world.labels == 1:
        raise ConnectionError("no van is here")
    return f"parcel {order}"


@hf.cached(fresh=300, stale=3600, key="price:{item}")
async def price(item: str) -> int:
    world.priced += 1
    return world.price


@hf.cron("0 6 * * *", tz="Europe/Zurich", missed="all")
async def report(nominal: datetime) -> None:
    world.mails.append(f"report of {nominal:%d %B}")
