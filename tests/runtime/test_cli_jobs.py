"""`holdfast jobs`, `dead` and `queues` on both stores: what they print, what they change, and who did it."""

import pytest
from cli_kit import SECRET_ARGS, audit, put, put_dead, put_done, put_running

from holdfast.kernel.ids import new_id
from holdfast.runtime.cli import replays


async def state(store, job_id):
    return (await store.jobs.get(job_id)).state


# --- looking ---


def test_jobs_are_listed_with_why_they_wait(shop, on_store):
    [later] = on_store(put, delay=600)
    [dead] = on_store(put_dead)
    assert shop("jobs", "list") == 0
    lines = shop.out.splitlines()
    assert lines[0].split() == ["ID", "TASK", "QUEUE", "STATE", "ENQUEUED", "ATTEMPT", "WHY"]
    assert "held: time, in 10 min" in next(line for line in lines if later in line)
    assert "ValueError: no such user" in next(line for line in lines if dead in line)
    assert " ago)" in shop.out


def test_filters_choose(shop, on_store):
    [mail] = on_store(put)
    [later] = on_store(put, task="other", queue="other", delay=600, tenant="acme")
    for options, wanted in [
        ((), {mail, later}),
        (("--queue", "mail"), {mail}),
        (("--task", "other"), {later}),
        (("--held", "time"), {later}),
        (("--tenant", "acme"), {later}),
        (("--state", "dead"), set()),
    ]:
        assert {job["id"] for job in shop.json("jobs", "list", *options)["jobs"]} == wanted, options


def test_a_long_list_is_read_page_by_page(shop, on_store):
    one, two, three = on_store(put_dead, 3)
    for command in ("jobs", "dead"):
        assert [job["id"] for job in shop.json(command, "list", "--limit", "2")["jobs"]] == [three, two]
        assert shop(command, "list", "--limit", "2") == 0
        assert f"only 2 are shown; the next ones: --before {two}" in shop.err
        assert [job["id"] for job in shop.json(command, "list", "--limit", "2", "--before", two)["jobs"]] == [
            one
        ]


def test_an_empty_listing_is_no_failure(shop):
    assert shop("jobs", "list") == 0
    assert shop.out == "No jobs.\n"
    assert shop.json("dead", "list") == {"jobs": []}


def test_secrets_are_hidden_everywhere(shop, on_store):
    [dead] = on_store(put_dead, args=SECRET_ARGS)
    shop("dead", "replay", dead, "--args", '{"user_id": 8, "password": "neu"}')
    for command in (["jobs", "list"], ["jobs", "show", dead]):
        for form in ([], ["--json"]):
            assert shop(*command, *form) == 0
            assert "geheim" not in shop.out
            assert "neu" not in shop.out
    assert shop.json("jobs", "show", dead)["job"]["args"] == {"user_id": 8, "password": "***"}


def test_show_tells_all_that_is_known(shop, on_store):
    [dead] = on_store(put_dead, unique="user:7", priority=3)
    assert shop("jobs", "show", dead.upper()) == 0
    told = {line.split()[0]: line for line in shop.out.splitlines()}
    assert told["unique"].endswith("user:7")
    assert "ValueError: no such user" in shop.out
    whole = shop.json("dead", "show", dead)
    assert whole["job"]["errors"][0]["error"] == "ValueError: no such user"
    assert isinstance(whole["job"]["enqueued_at"], float)
    done = on_store(put_done)
    assert shop.json("jobs", "show", done)["job"]["result"] == "sent"


def test_an_error_cannot_command_the_terminal(shop, on_store):
    [dead] = on_store(put_dead, error="a\x1b[31mred\nline two")
    for command in (["jobs", "list"], ["dead", "show", dead]):
        assert shop(*command) == 0
        assert "\x1b" not in shop.out
        assert "line two" in shop.out


def test_what_is_not_there_is_one(shop, on_store):
    missing = new_id()
    for command in (
        "jobs show",
        "dead show",
        "jobs cancel",
        "jobs retry",
        "dead replay",
        "dead discard --reason r",
    ):
        first, second, *rest = command.split()
        assert shop(first, second, missing, *rest) == 1, command
        assert missing in shop.err
        assert shop.out == ""
    done = on_store(put_done)
    assert shop("dead", "show", done) == 1
    assert "succeeded, not dead" in shop.err


# --- cancelling ---


def test_cancel_says_what_became_of_it_and_leaves_an_audit_row(shop, on_store):
    running = on_store(put_running)
    [queued] = on_store(put)
    assert shop("jobs", "cancel", queued, running, "--reason", "not needed") == 0
    assert shop.out == f"{queued} is cancelled.\n{running} runs, and is asked to stop.\n"
    assert on_store(state, queued) == "cancelled"
    assert shop.json("jobs", "show", queued)["job"]["reason"] == "not needed"
    assert on_store(audit, queued) == [("ada@shop", "job.cancel")]
    assert shop("jobs", "show", queued) == 0
    assert "job.cancel" in shop.out
    assert shop("jobs", "cancel", queued) == 1
    assert "cancelled already" in shop.err
    assert len(on_store(audit, queued)) == 1


def test_cancel_may_leave_running_jobs_alone(shop, on_store):
    running = on_store(put_running)
    [queued] = on_store(put)
    assert shop("jobs", "cancel", running, queued, "--not-running") == 1
    assert shop.out == f"{queued} is cancelled.\n"
    assert f"Job {running} runs; it was left alone." in shop.err
    assert on_store(audit, running) == []


# --- moving ---


def test_move_says_what_became_of_it_and_leaves_an_audit_row(shop, on_store):
    running = on_store(put_running)
    [queued] = on_store(put, delay=600)
    assert shop("jobs", "move", queued, "--at", "now", "--priority", "5") == 0
    assert shop.out == f"{queued} is due now and of priority 5.\n"
    assert on_store(audit, queued) == [("ada@shop", "job.move")]
    assert shop.json("jobs", "show", queued)["job"]["priority"] == 5
    assert shop("jobs", "move", queued, "--at", "7d") == 0
    assert f"{queued} is due in 7 d." in shop.out
    assert shop("jobs", "move", running, "--at", "now") == 1
    assert f"Job {running} is running, not queued; it was left alone." in shop.err
    assert shop("jobs", "move", new_id(), "--at", "now") == 1
    assert "There is no job" in shop.err
    assert shop("jobs", "move", queued) == 2
    assert "--at WHEN, --priority N, or both" in shop.err
    assert shop("jobs", "move", queued, "--at", "soon") == 2
    assert "90s, 30min, 2h or 7d" in shop.err


# --- dead jobs ---


def test_replay_one_several_and_what_is_not_dead(shop, on_store):
    one, two, three = on_store(put_dead, 3)
    assert shop("dead", "replay", one, "--actor", "bob") == 0
    assert shop.out == f"{one} is queued again.\n"
    assert on_store(audit, one) == [("bob", "dead.replay")]
    assert shop("jobs", "retry", two, three) == 0
    assert on_store(state, three) == "queued"
    assert shop("jobs", "retry", one) == 1
    assert "it is queued. Only dead jobs" in shop.err


def test_a_job_whose_unique_key_is_taken_stays_dead(shop, on_store):
    [dead] = on_store(put_dead, unique="k")
    on_store(put, unique="k")
    assert shop("dead", "replay", dead) == 1
    assert "stays dead" in shop.err
    assert shop.json("dead", "replay", dead)["jobs"] == [{"id": dead, "outcome": "unique_taken"}]


def test_replay_all_with_filters_the_oldest_first(shop, on_store, monkeypatch):
    monkeypatch.setattr(replays, "PAGE", 2)
    mail = on_store(put_dead, 3)
    [other] = on_store(put_dead, task="other", queue="other")
    assert shop("dead", "replay", "--all", "--queue", "mail", "--rate", "1000") == 0
    assert shop.out == "Queued again: 3 of 3.\n"
    assert on_store(state, other) == "dead"
    assert [job["id"] for job in shop.json("dead", "replay", "--all", "--task", "other")["jobs"]] == [other]

    async def claimed(store):
        claims = await store.claims.claim({"mail": 3}, lease=30, worker="w")
        return [claim.job_id for claim in claims]

    assert on_store(claimed) == mail
    assert shop("dead", "replay", "--all") == 1
    assert "nothing is replayed" in shop.err


def test_replay_with_other_arguments(shop, on_store):
    [dead] = on_store(put_dead, args=SECRET_ARGS)
    assert shop("dead", "replay", dead, "--args", '{"user_id": "seven"}') == 2  # the program knows the task
    assert shop("dead", "replay", dead, "--args", '{"user_id": 8, "password": "***"}') == 0
    job = shop.json("jobs", "show", dead)["job"]
    assert (job["state"], job["generation"], job["args"]["user_id"]) == ("queued", 1, 8)
    assert shop("dead", "replay", dead, "--args", '{"user_id": 9}') == 1
    assert "is queued, not dead" in shop.err


def test_the_other_arguments_may_come_from_a_variable(shop, on_store, monkeypatch):
    [dead] = on_store(put_dead)
    monkeypatch.setenv("HOLDFAST_DEAD_REPLAY_ARGS", '{"user_id": 8}')
    assert shop("dead", "replay", dead) == 0
    assert shop.json("jobs", "show", dead)["job"]["args"]["user_id"] == 8


def test_discard_needs_a_reason(shop, on_store):
    [dead] = on_store(put_dead)
    assert shop("dead", "discard", dead) == 2
    assert "--reason" in shop.err
    assert shop("dead", "discard", dead, "--reason", "customer gone") == 0
    assert on_store(state, dead) == "cancelled"
    assert on_store(audit, dead) == [("ada@shop", "dead.discard")]
    assert shop.json("dead", "discard", dead, "--reason", "again") == {"jobs": [{"id": dead, "done": False}]}


# --- queues ---


def test_queues_with_numbers_reasons_and_pauses(shop, on_store):
    on_store(put_dead, 2)
    on_store(put, 3)
    on_store(put, 2, delay=600)
    assert shop("queues", "pause", "mail") == 0
    assert "is paused" in shop.out
    [queue] = shop.json("queues")["queues"]
    assert {name: queue[name] for name in ("queue", "ready", "running", "held", "dead", "unknown")} == {
        "queue": "mail", "ready": 3, "running": 0, "held": {"time": 2}, "dead": 2, "unknown": 0,
    }  # fmt: skip
    assert queue["paused"]["by"] == "ada@shop"
    assert shop("queues", "list") == 0
    assert "by ada@shop," in shop.out
    assert "time 2" in shop.out
    assert shop("queues", "pause", "mail", "--actor", "bob") == 0
    assert "was paused before, by ada@shop" in shop.out
    assert shop.json("queues", "resume", "mail") == {"queue": "mail", "paused": None}
    assert shop("queues", "resume", "mail") == 0
    assert "was not paused" in shop.out
    assert on_store(audit, "queue:mail") == [("ada@shop", "queue.resumed"), ("ada@shop", "queue.paused")]


# --- tenants ---


def test_tenants_are_paused_with_words_and_resumed(shop, on_store):
    job_id = on_store(put, 1, tenant="acme")[0]
    assert shop("tenants") == 0
    assert "No tenant is paused." in shop.out
    assert shop("tenants", "pause", "acme", "--reason", "no money") == 0
    assert "acme is paused" in shop.out
    [tenant] = shop.json("tenants", "list")["tenants"]
    assert (tenant["tenant"], tenant["reason"], tenant["by"]) == ("acme", "no money", "ada@shop")
    assert shop("jobs", "show", job_id) == 0
    assert "tenant 'acme' is paused, by ada@shop: no money" in shop.out
    assert shop("tenants", "pause", "acme", "--reason", "holiday", "--actor", "bob") == 0
    assert "was paused before, by ada@shop: no money" in shop.out
    assert shop.json("tenants", "resume", "acme") == {"tenant": "acme", "paused": None}
    assert shop("tenants", "resume", "acme") == 0
    assert "was not paused" in shop.out
    assert on_store(audit, "tenant:acme") == [("ada@shop", "tenant.resumed"), ("ada@shop", "tenant.paused")]


@pytest.mark.parametrize("place", ["before", "between", "after"])
def test_options_of_all_commands_stand_anywhere(shop, place, monkeypatch):
    monkeypatch.delenv("HOLDFAST_ACTOR")
    words = {"before": 0, "between": 1, "after": 3}
    command = ["queues", "pause", "mail"]
    command[words[place] : words[place]] = ["--actor", "eve"]
    assert shop(*command) == 0
    assert shop.json("queues")["queues"][0]["paused"]["by"] == "eve"
