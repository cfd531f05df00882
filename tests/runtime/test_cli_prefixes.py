"""Ids by their beginnings, and what became of the saga that a job carries."""

from __future__ import annotations

import pytest
from cli_kit import put, put_dead

from holdfast.kernel.outcomes import Done
from holdfast.store.records import Finish, NewJob
from holdfast.store.saga_records import Move, NewSaga, SagaState

ONE, TWO = "01a1de3c-4a80-7c45-bf6d-000000000001", "01a1de3c-4a81-7c45-bf6d-000000000002"


async def put_two(store):
    await store.jobs.enqueue([NewJob(id=each, task="mail.send", queue="mail") for each in (ONE, TWO)])


@pytest.mark.parametrize("given", ["01a1de3c-4a80", " 01A1DE3C-4A80-7 ", "01a1de3c-4a80-"])
def test_a_job_is_shown_by_the_beginning_of_its_id(shop, on_store, given):
    on_store(put_two)
    assert shop("jobs", "show", given) == 0
    assert ONE in shop.out


def test_several_that_begin_so_are_listed_and_nothing_is_done(shop, on_store):
    on_store(put_two)
    assert shop("jobs", "cancel", "01a1de3c") == 1
    assert f"Several ids begin with 01a1de3c: {ONE}, {TWO}." in shop.err
    assert shop("jobs", "cancel", "01a1de3c-4a80", "01a1de3c-4a81") == 0
    assert shop.out.count("is cancelled") == 2


def test_a_beginning_that_no_id_has_and_one_that_is_too_short(shop, on_store):
    on_store(put)
    assert shop("jobs", "show", "ffffffff") == 1
    assert "No job has an id that begins with ffffffff" in shop.err
    assert shop("jobs", "show", "fffffff") == 2


def test_dead_jobs_are_replayed_by_the_beginning_of_their_id(shop, on_store):
    [dead] = on_store(put_dead)
    assert shop("dead", "show", dead[:30]) == 0
    assert shop("dead", "replay", dead[:30]) == 0
    assert f"{dead} is queued again." in shop.out


async def put_undone_saga(store):
    carrier = NewJob(id=ONE, task="saga:order.ship", queue="orders")
    await store.sagas.start([NewSaga(id="order:17", name="order.ship", job=carrier)])
    [claim] = await store.claims.claim({"orders": 1}, lease=30, worker="w1")
    await store.sagas.write(claim, move=Move(state=SagaState.COMPENSATING, undoing=True, error="OutOfStock"))
    await store.sagas.write(claim, move=Move(state=SagaState.UNDONE, undoing=True, error="OutOfStock"))
    await store.claims.finish([Finish(claim, Done())])


def test_the_job_of_a_saga_says_what_became_of_the_saga(shop, on_store):
    on_store(put_undone_saga)
    assert shop("jobs", "list") == 0
    assert "succeeded (saga undone)" in shop.out
    assert shop("jobs", "show", ONE) == 0
    assert "state         succeeded (saga undone)" in shop.out
    assert [each["saga"] for each in shop.json("jobs", "list")["jobs"]] == ["undone"]
    assert shop.json("jobs", "show", ONE)["job"]["saga"] == "undone"
