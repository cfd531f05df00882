"""`holdfast workers`, and what `doctor` says of them."""

import asyncio

from cli_kit import put, put_dead, put_running

from holdfast import Holdfast
from holdfast.store.worker_records import NewWorker


def a_worker(name, **options):
    return NewWorker(**{"name": name, "host": "shop-1", "pid": 7, "version": "1.2.3", **options})


async def register(store, *workers, ttl=30):
    for worker in workers:
        await store.workers.register(worker, ttl=ttl)


async def die(store, name, rescued):
    await store.workers.charge({name: rescued})
    await store.workers.bury(name)


def test_nobody_is_alive(shop):
    assert shop("workers") == 0
    assert shop.out == "No worker is alive, and none died within a day.\n"
    assert shop.json("workers") == {"workers": []}


def test_workers_are_listed_with_what_they_run(shop, on_store):
    on_store(
        register, a_worker("w1", queues={"mail": 10, "default": 4}, tasks=("mail.send",)), a_worker("w2")
    )
    job = on_store(put_running)
    on_store(die, "w2", 3)
    assert shop("workers") == 0
    title, alive, dead = shop.out.splitlines()
    assert title.split() == ["NAME", "STATE", "HOST", "QUEUES", "RUNS", "UP", "SEEN", "VERSION"]
    assert alive.split()[:4] == ["w1", "running", "shop-1:7", "mail:10,default:4"]
    assert "1: mail.send for" in alive
    assert dead.startswith("w2    dead, ")
    assert "3 put back" in dead
    first, second = shop.json("workers", "list")["workers"]
    assert [each["id"] for each in first["running"]] == [job]
    assert (first["state"], second["state"], second["rescued"]) == ("running", "dead", 3)


def test_a_worker_is_shown_by_the_beginning_of_its_name(shop, on_store):
    on_store(register, a_worker("worker-1", tasks=("a", "b")), a_worker("worker-12"), a_worker("other"))
    job = on_store(put_running)
    assert shop("workers", "show", "worker-1") == 0
    assert "tasks         a\n              b\n" in shop.out
    assert job not in shop.out
    assert shop.json("workers", "show", "o")["worker"]["name"] == "other"
    assert shop("workers", "show", "w") == 1
    assert "worker-1, worker-12" in shop.err
    assert shop("workers", "show", "nobody") == 1
    assert "There is no worker 'nobody'" in shop.err


def test_an_embedded_worker_is_listed_while_it_runs(shop, kept):
    hf = Holdfast(kept)

    async def run():
        async with hf, hf.worker({"mail": 2}) as service:
            await asyncio.to_thread(shop, "workers")
            return service.name

    name = asyncio.run(run())
    assert name in shop.out
    assert "mail:2" in shop.out
    assert shop.json("workers") == {"workers": []}


def test_doctor_names_what_needs_a_person(shop, on_store):
    on_store(put, 3)
    on_store(put_dead, 2, task="report.build", queue="reports")
    assert shop("doctor") == 1
    assert "BAD   queues" in shop.out
    assert "mail (3)" in shop.out
    assert "holdfast dead list --task report.build" in shop.out
    on_store(register, a_worker("w1", queues={"mail": 1}, tasks=("mail.send",)))
    shop("doctor")
    assert "OK    queues" in shop.out
    assert "OK    unknown tasks" in shop.out
