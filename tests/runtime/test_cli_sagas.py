"""`holdfast sagas` on both stores: what is shown of a saga, and what a person decides about it."""

import pytest
from cli_kit import run_process, write_program

from holdfast.kernel.ids import new_id
from holdfast.kernel.outcomes import Dead
from holdfast.store.records import Finish, NewJob
from holdfast.store.saga_records import Move, NewSaga, Rest, SagaState
from holdfast.store.steps import Kind, Progress, Step

SHIPPER = '''"""Ships orders, and takes back what it has done."""

from pathlib import Path

from holdfast import Backoff, Holdfast, Undo

hf = Holdfast()


def say(word: str) -> str:
    with Path("said").open("a") as said:
        said.write(f"{word}\\n")
    if Path(f"fail-{word}").exists():
        raise ConnectionError(word)
    return word


@hf.saga("order.ship", undo_retry=Backoff(attempts=1))
async def ship(saga, order: int) -> str:
    await saga.step("charge", say, "charge", undo=Undo(say, "refund"))
    how = await saga.signal("how")
    return await saga.step("ship", say, how)
'''


async def put_saga(store, saga_id, *, args='{"order":17}'):
    job = NewJob(id=new_id(), task="saga:order.ship", args=args, queue="orders")
    await store.sagas.start([NewSaga(id=saga_id, name="order.ship", job=job)])
    [claim] = await store.claims.claim({"orders": 1}, lease=30, worker="w1")
    return claim


async def put_stuck(store, saga_id="order:17", **options):
    claim = await put_saga(store, saga_id, **options)
    plan = '{"undo":"shop:refund","args":"[17]"}'
    effect = {"kind": Kind.AT_LEAST_ONCE, "plan": plan}
    await store.sagas.write(claim, step=Step(name="charge", number=0, result='"geheim"', **effect))
    failed = Step(name="ship", number=1, progress=Progress.FAILED, tries=1, error="OutOfStock")
    move = Move(state=SagaState.COMPENSATING, undoing=True, error="OutOfStock")
    await store.sagas.write(claim, step=failed, move=move)
    undo = Step(name="undo/charge", number=2, progress=Progress.FAILED, tries=6, error="no bank")
    stuck = Move(state=SagaState.NEEDS_OPERATOR, undoing=True, error="'undo/charge' failed")
    await store.sagas.write(claim, step=undo, move=stuck, rest=Rest())
    return claim.job_id


async def state_of(store, saga_id):
    return (await store.sagas.get(saga_id)).state


def test_sagas_are_listed(shop, on_store):
    job_id = on_store(put_stuck)
    on_store(put_saga, "order:18")
    assert shop("sagas", "list") == 0
    first, second, third = shop.out.splitlines()
    assert first.split() == ["ID", "SAGA", "STATE", "STARTED", "SINCE", "WHY"]
    assert second.startswith("order:18  order.ship  running")
    assert third.startswith("order:17  order.ship  needs_operator")
    assert [each["id"] for each in shop.json("sagas", "list", "--state", "running")["sagas"]] == ["order:18"]
    assert [each["id"] for each in shop.json("sagas", "list", "--job", job_id)["sagas"]] == ["order:17"]
    assert shop("sagas", "list", "--limit", "1") == 0
    assert "--before order:18" in shop.err
    assert [each["id"] for each in shop.json("sagas", "list", "--before", "order:18")["sagas"]] == [
        "order:17"
    ]
    assert shop("sagas", "list", "--name", "other") == 0
    assert shop.out == "No sagas.\n"


def test_a_stuck_saga_shows_all_that_a_person_needs(shop, on_store):
    on_store(put_stuck)
    assert shop("sagas", "show", "order:17") == 0
    for word in (
        "needs_operator, on the way back",
        "OutOfStock",
        "no bank (tried 6 times)",
        "holdfast sagas retry order:17",
        "holdfast sagas settle order:17 undo/charge --done --result JSON",
    ):
        assert word in shop.out
    assert "sagas cancel" not in shop.out
    assert shop("sagas", "show", "order:0") == 1
    assert "There is no saga order:0" in shop.err


def test_secrets_are_hidden(shop, on_store):
    on_store(put_stuck, args='{"order":17,"password":"geheim","$secret":["password"]}')
    for command in (["show"], ["history"], ["history", "--json"]):
        assert shop("sagas", command[0], "order:17", *command[1:]) == 0
        assert "geheim" not in shop.out
        assert "charge" in shop.out


def test_the_history_is_one_story_and_one_document(shop, on_store):
    on_store(put_stuck)
    assert shop("sagas", "history", "order:17") == 0
    told = [line.split("  ")[1:] for line in shop.out.splitlines()[1:]]
    assert "started" in str(told[0])
    assert "needs_operator" in str(told[-1])
    found = shop.json("sagas", "history", "order:17")
    assert found["saga"]["state"] == "needs_operator"
    assert [each["name"] for each in found["steps"]] == ["charge", "ship", "undo/charge"]
    assert found["steps"][0]["plan"] == {"undo": "shop:refund", "args": "[17]"}
    assert found["timeline"][0]["what"] == "started"


def test_a_person_decides(shop, on_store):
    on_store(put_stuck)
    assert shop("sagas", "settle", "order:17", "undo/charge") == 2
    assert shop("sagas", "settle", "order:17", "undo/charge", "--not-done", "--result", "1") == 2
    assert shop("sagas", "settle", "order:17", "undo/charge", "--done", "--result", "x") == 2
    assert shop("sagas", "settle", "order:17", "ship", "--done") == 1
    assert "To be decided: 'undo/charge'" in shop.err
    assert shop("sagas", "settle", "order:17", "undo/charge", "--done") == 0
    assert shop.out == "order:17 goes on: it is compensating.\n"
    assert shop("sagas", "retry", "order:17") == 1
    assert "goes on by itself" in shop.err
    assert shop("sagas", "cancel", "order:17") == 1
    assert "is being undone already" in shop.err
    assert shop("sagas", "retry", "order:0") == 1


def test_retry_undo_is_for_undos(shop, on_store):
    on_store(put_stuck)
    on_store(put_saga, "order:18")
    assert shop("sagas", "retry-undo", "order:18") == 1
    assert "is not being undone" in shop.err
    assert shop.json("sagas", "retry-undo", "order:17") == {
        "id": "order:17",
        "outcome": "accepted",
        "state": "compensating",
        "to_decide": [],
    }


def test_cancel_and_signal(shop, on_store):
    on_store(put_saga, "order:18")
    assert shop("sagas", "signal", "order:18", "how", "--value", "by plane") == 2
    assert shop("sagas", "signal", "order:18", "how", "--value", '"by plane"') == 0
    assert shop("sagas", "cancel", "order:18", "--reason", "too late") == 0
    assert shop.out == "order:18 will be undone.\n"
    found = shop.json("sagas", "history", "order:18")
    assert (found["signals"][0]["value"], found["saga"]["asked"]) == ("by plane", "too late")
    assert shop("sagas", "signal", "order:0", "how") == 1


def test_the_job_of_a_saga_is_left_to_the_saga(shop, on_store):
    async def die(store):
        claim = await put_saga(store, "order:19")
        await store.claims.finish([Finish(claim, Dead("no"))])
        return claim.job_id

    job_id = on_store(put_stuck)
    assert shop("jobs", "cancel", job_id) == 2
    assert "holdfast sagas cancel order:17" in shop.err
    dead = on_store(die)
    assert shop("dead", "replay", dead) == 1
    assert f"holdfast sagas list --job {dead}" in shop.err
    assert shop("dead", "replay", "--all") == 1
    assert "carry sagas" in shop.err
    assert shop("dead", "discard", dead, "--reason", "old") == 2
    assert "holdfast sagas show order:19" in shop.err


def test_a_story_tells_its_sagas(shop, on_store):
    job_id = on_store(put_stuck, args='{"order":17,"password":"geheim","$secret":["password"]}')
    for wanted in ("order:17", job_id):
        assert shop("trace", wanted) == 0
        told = [line.strip() for line in shop.out.splitlines()]
        assert told[2] == "saga order:17, needs_operator: 'undo/charge' failed"
        assert [line.rpartition(", ")[0] for line in told[3:]] == [
            "step charge: done",
            "step ship: failed: OutOfStock",
            "decided: to undo it: OutOfStock",
            "undo charge: failed: no bank (tried 6 times)",
        ]
        assert "geheim" not in shop.out
    [begin] = shop.json("trace", "order:17")["begins"]
    assert (begin["saga"]["id"], begin["saga"]["state"]) == ("order:17", "needs_operator")
    assert [each["name"] for each in begin["saga"]["steps"]] == ["charge", "ship", "undo/charge"]


@pytest.mark.parametrize("kept", ["sqlite"], indirect=True)
def test_a_saga_from_start_to_compensation_with_real_workers(kept, shop, tmp_path, on_store):
    """One process for each leg: what one has recorded, the next one goes on with."""
    write_program(tmp_path, SHIPPER)

    async def start(store):
        job = NewJob(id=new_id(), task="saga:order.ship", args='{"order":17}')
        await store.sagas.start([NewSaga(id="order:17", name="order.ship", job=job)])

    def work():
        run_process("worker", "shop:hf", "--burst", folder=tmp_path, environment={"HOLDFAST_URL": kept})

    on_store(start)
    work()
    assert on_store(state_of, "order:17") is SagaState.WAITING
    (tmp_path / "fail-sea").touch()
    (tmp_path / "fail-refund").touch()
    assert shop("sagas", "signal", "order:17", "how", "--value", '"sea"') == 0
    work()
    assert shop("sagas", "show", "order:17") == 0
    assert "needs_operator, on the way back" in shop.out
    (tmp_path / "fail-refund").unlink()
    assert shop("sagas", "retry-undo", "order:17") == 0
    work()
    assert shop.json("sagas", "history", "order:17")["saga"]["state"] == "undone"
    assert (tmp_path / "said").read_text().split() == ["charge", "sea", "refund", "refund"]
