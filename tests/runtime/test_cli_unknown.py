"""`holdfast unknown` on both stores: what is shown of an effect that nobody knows the end of, and what a person decides."""

import json

import pytest
from cli_kit import (
    SECRET_ARGS,
    UPLOADED,
    put,
    put_dead,
    put_unknown,
    run_process,
    write_program,
)

from holdfast.jobs.handled import kept as kept_failure
from holdfast.kernel.ids import new_id
from holdfast.store.records import Finish
from holdfast.store.steps import Progress, Step

PUBLISHER = '''"""Publishes, and gets no answer the first time."""

from pathlib import Path

from holdfast import Holdfast, Job

hf = Holdfast()


def post(title: str) -> dict[str, int]:
    with Path("posts").open("a") as posts:
        posts.write(title)
    if len(Path("posts").read_text()) == 1:
        raise TimeoutError("no answer")
    return {"id": 2}


@hf.task(name="publish")
async def publish(job: Job, title: str) -> int:
    await job.step("upload", lambda: "uploaded")
    found = await job.effect("publish", post, title, policy="at_most_once")
    return found["id"]
'''


async def audit(store, subject):
    return [(entry.actor, entry.action) for entry in await store.audit.find(subject=subject)]


async def now_is(store, job_id):
    """Its state, and how far each of its steps is."""
    record = await store.jobs.get(job_id)
    steps = await store.steps.load(job_id, record.generation)
    return record.state, {each.name: (each.progress, each.result) for each in steps}


# --- looking ---


def test_unknown_jobs_are_listed_with_the_effect_and_since_when(shop, on_store):
    on_store(put_dead)
    one = on_store(put_unknown, "publish")
    two = on_store(put_unknown, "publish", "mail", task="other", queue="other")
    assert shop("unknown", "list") == 0
    title, second, first = shop.out.splitlines()
    assert title.split() == ["ID", "TASK", "QUEUE", "EFFECT", "SINCE", "WHY"]
    assert second.startswith(two)
    assert "publish, mail" in second
    assert first.startswith(one)
    assert " ago)" in first
    assert "Nobody knows whether effect 'publish' was done" in first


def test_the_listing_for_programs_and_its_filters(shop, on_store):
    one = on_store(put_unknown, "publish")
    two = on_store(put_unknown, "mail", task="other", queue="other")
    for options, wanted in [
        ((), [two, one]),
        (("--queue", "mail"), [one]),
        (("--task", "other"), [two]),
        (("--limit", "1"), [two]),
        (("--limit", "1", "--before", two), [one]),
    ]:
        assert [job["id"] for job in shop.json("unknown", "list", *options)["jobs"]] == wanted, options
    [job] = shop.json("unknown", "list", "--queue", "mail")["jobs"]
    [effect] = job["unknown"]
    assert effect["effect"] == "publish"
    assert isinstance(effect["since"], float)
    assert effect["begun"] <= effect["since"]
    assert "result" not in job
    assert shop("unknown", "list", "--limit", "1") == 0
    assert f"only 1 are shown; the next ones: --before {two}" in shop.err


def test_an_empty_listing_is_no_failure(shop):
    assert shop("unknown", "list") == 0
    assert shop.out == "No jobs.\n"
    assert shop.json("unknown", "list") == {"jobs": []}


def test_show_has_the_steps_the_mark_and_what_to_type(shop, on_store):
    job = on_store(put_unknown, "publish")
    assert shop("unknown", "show", job.upper()) == 0
    lines = shop.out.splitlines()
    [titles] = [line for line in lines if "PROGRESS" in line]
    assert titles.split() == ["STEP", "KIND", "PROGRESS", "BEGUN", "AT", "TOKEN", "RESULT"]
    [upload] = [line for line in lines if "upload" in line]
    assert not upload.startswith(">")
    assert '{"file":17}' in upload
    [marked] = [line for line in lines if line.startswith(">")]
    assert marked.split()[1:4] == ["publish", "at_most_once", "unknown"]
    assert f"  holdfast unknown resolve {job} --done --result JSON" in lines
    assert f"  holdfast unknown resolve {job} --not-done" in lines


def test_what_to_type_when_several_are_unknown_and_when_none_is(shop, on_store):
    several = on_store(put_unknown, "publish", "mail to ada")
    assert shop("unknown", "show", several) == 0
    assert f"resolve {several} --effect 'mail to ada' --not-done" in shop.out
    none = on_store(put_unknown)
    assert shop("unknown", "show", none) == 0
    assert f"holdfast jobs cancel {none}" in shop.out
    assert "--done" not in shop.out


def test_show_for_programs_has_whole_results(shop, on_store):
    long = Step(name="long", number=1, result=json.dumps("x" * 1000))
    job = on_store(put_unknown, "publish", steps=[UPLOADED, long])
    assert shop("unknown", "show", job) == 0
    assert "x" * 61 not in shop.out
    assert "xx…" in shop.out
    whole = shop.json("unknown", "show", job)
    assert whole["job"]["state"] == "unknown"
    upload, middle, publish = whole["steps"]
    assert middle["result"] == "x" * 1000
    assert upload["result"] == {"file": 17}
    assert (publish["name"], publish["kind"], publish["progress"]) == ("publish", "at_most_once", "unknown")
    assert set(upload) == {
        "name", "number", "kind", "progress", "branch", "token", "first_at", "begun_at", "at", "calls", "looks", "result"
    }  # fmt: skip


def test_a_step_that_gives_back_a_secret_is_masked(shop, on_store):
    steps = [Step(name="login", number=0, result='{"with":"geheim"}')]
    job = on_store(put_unknown, "publish", steps=steps, args=SECRET_ARGS)
    for form in ([], ["--json"]):
        assert shop("unknown", "show", job, *form) == 0
        assert "geheim" not in shop.out
        assert "***" in shop.out


def test_a_result_cannot_command_the_terminal(shop, on_store):
    job = on_store(put_unknown, "publish", steps=[Step(name="a", number=0, result='"\x1b[31mred"')])
    assert shop("unknown", "show", job) == 0
    assert "\x1b" not in shop.out


def test_what_is_not_there_or_not_unknown_is_one(shop, on_store):
    missing = new_id()
    [dead] = on_store(put_dead)
    for verb in (["show"], ["resolve", "--done"], ["resolve", "--not-done"]):
        assert shop("unknown", *verb, missing) == 1
        assert f"There is no job {missing}" in shop.err
        assert shop("unknown", *verb, dead) == 1
        assert "is dead, not unknown" in shop.err
        assert shop.out == ""
    assert on_store(now_is, dead)[0] == "dead"
    assert on_store(audit, dead) == []


# --- any job has its steps shown ---


def test_jobs_show_has_the_steps_of_this_generation(shop, on_store):
    async def put_stepped(store):
        [job_id] = await put(store)
        [claim] = await store.claims.claim({"mail": 1}, lease=30, worker="w1")
        failure = kept_failure(OSError("no route to host"), ())
        for step in (UPLOADED, Step(name="tell", number=1, progress=Progress.HANDLED, result=failure)):
            assert await store.steps.write(claim, step)
        return job_id, claim

    async def die_and_replay(store, claim):
        from holdfast.kernel.outcomes import Dead

        await store.claims.finish([Finish(claim, Dead("x"))])
        await store.dead.replay([claim.job_id], actor="ada", args="{}")

    job, claim = on_store(put_stepped)
    assert shop("jobs", "show", job) == 0
    assert "OSError: no route to host" in shop.out
    assert ">" not in shop.out
    assert [each["name"] for each in shop.json("jobs", "show", job)["steps"]] == ["upload", "tell"]
    on_store(die_and_replay, claim)
    assert shop("jobs", "show", job) == 0
    assert "STEP" not in shop.out
    assert shop.json("jobs", "show", job)["steps"] == []


# --- deciding ---


def test_it_was_done_and_this_is_its_result(shop, on_store):
    job = on_store(put_unknown, "publish")
    assert shop("unknown", "resolve", job, "--done", "--result", '{"id": 7}', "--actor", "bob") == 0
    assert shop.out == f"{job} is queued again: what was done is not done again.\n"
    state, steps = on_store(now_is, job)
    assert (state, steps["publish"]) == ("queued", ("resolved", '{"id":7}'))
    assert on_store(audit, job) == [("bob", "unknown.resolve")]
    assert shop("unknown", "resolve", job, "--done") == 1
    assert "is queued, not unknown" in shop.err


def test_it_was_not_done(shop, on_store):
    job = on_store(put_unknown, "publish")
    assert shop.json("unknown", "resolve", job, "--not-done") == {
        "id": job, "outcome": "queued", "unknown": [],
    }  # fmt: skip
    state, steps = on_store(now_is, job)
    assert (state, steps["publish"]) == ("queued", ("failed", None))
    assert on_store(audit, job) == [("ada@shop", "unknown.resolve")]


def test_several_are_decided_one_by_one(shop, on_store):
    job = on_store(put_unknown, "publish", "mail")
    before = on_store(now_is, job)
    assert shop("unknown", "resolve", job, "--done") == 1
    assert "Say which with --effect: 'publish', 'mail'." in shop.err
    assert shop("unknown", "resolve", job, "--done", "--effect", "upload") == 1
    assert "has no unknown effect 'upload'. Unknown: 'publish', 'mail'." in shop.err
    assert on_store(now_is, job) == before
    assert on_store(audit, job) == []
    assert shop("unknown", "resolve", job, "--done", "--effect", "mail") == 0
    assert shop.out == f"{job} is still unknown. To be decided: 'publish'.\n"
    assert shop.json("unknown", "resolve", job, "--done", "--effect", "mail") == {
        "id": job, "outcome": "no_such_effect", "unknown": ["publish"],
    }  # fmt: skip
    assert shop("unknown", "resolve", job, "--not-done") == 0
    assert on_store(now_is, job)[0] == "queued"


def test_a_job_that_is_unknown_without_an_effect_can_only_be_run_again(shop, on_store):
    job = on_store(put_unknown)
    assert shop("unknown", "resolve", job, "--done") == 1
    assert "none of its effects is" in shop.err
    assert shop("unknown", "resolve", job, "--not-done") == 0
    assert on_store(now_is, job)[0] == "queued"


WRONG = {
    "": "--done or --not-done",
    "--done --not-done": "--done or --not-done",
    "--not-done --result 1": "give it with --done",
    "--done --result {": "--result: This is not JSON",
    "--done --result harbour": "A text has quotation marks",
    '--done --result {"a":1,"a":2}': "--result",
    "--done --result NaN": "--result",
    "--done --effect=": "effect must not be empty",
    "--done --result": "expected one argument",
}


@pytest.mark.parametrize("words", WRONG)
def test_wrong_use_changes_nothing(shop, on_store, words):
    job = on_store(put_unknown, "publish")
    before = on_store(now_is, job)
    assert shop("unknown", "resolve", job, *words.split()) == 2
    assert WRONG[words] in shop.err
    assert len(shop.err.splitlines()) == 1
    assert on_store(now_is, job) == before
    assert on_store(audit, job) == []


def test_a_result_that_is_too_large_is_refused(shop, on_store):
    job = on_store(put_unknown, "publish")
    assert shop("unknown", "resolve", job, "--done", "--result", f'"{"x" * 256 * 1024}"') == 2
    assert "--result" in shop.err
    assert on_store(now_is, job)[0] == "unknown"


def test_variables_take_the_place_of_options(shop, on_store, monkeypatch):
    job = on_store(put_unknown, "publish", "mail")
    monkeypatch.setenv("HOLDFAST_UNKNOWN_RESOLVE_EFFECT", "mail")
    monkeypatch.setenv("HOLDFAST_UNKNOWN_RESOLVE_DONE", "yes")
    monkeypatch.setenv("HOLDFAST_UNKNOWN_RESOLVE_RESULT", "[1]")
    assert shop("unknown", "resolve", job, "--not-done") == 2  # a decision is not guessed
    assert shop("unknown", "resolve", job) == 0
    assert on_store(now_is, job)[1]["mail"] == ("resolved", "[1]")


# --- as a person does it, with real processes ---


def test_from_a_call_without_an_answer_to_the_end(kept, on_store, tmp_path):
    write_program(tmp_path, PUBLISHER)
    [job] = on_store(put, task="publish", queue="default", args='{"title":"h"}')

    def run(*arguments):
        environment = {"HOLDFAST_URL": kept, "HOLDFAST_APP": "shop:hf"}
        return run_process(*arguments, folder=tmp_path, environment=environment)

    assert run("worker", "shop:hf", "--burst").returncode == 0
    [listed] = json.loads(run("unknown", "list", "--json").stdout)["jobs"]
    assert (listed["id"], listed["unknown"][0]["effect"]) == (job, "publish")
    told = run("unknown", "show", job).stdout
    assert "Nobody knows whether effect 'publish' was done: no answer." in told
    refused = run("unknown", "resolve", job, "--done", "--result", "seven")
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "Traceback" not in refused.stderr
    assert run("unknown", "resolve", job, "--done", "--result", '{"id": 7}').returncode == 0
    assert run("worker", "shop:hf", "--burst").returncode == 0
    whole = json.loads(run("jobs", "show", job, "--json").stdout)
    assert (whole["job"]["state"], whole["job"]["result"]) == ("succeeded", 7)
    assert [each["progress"] for each in whole["steps"]] == ["done", "resolved"]
    assert (tmp_path / "posts").read_text() == "h"
