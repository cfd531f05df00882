"""Programs that fork: every enqueue that was acknowledged, in whichever process, is in the database; and none hangs."""

import pytest
from forked_programs import numbers_of, run

SCENARIOS = [
    "bare",
    "child_outlives_the_parent",
    "grandchildren",
    "processes",
    "pool",
    "executor",
    "busy_threads",
    "within_async",
    "async_child",
    "what_was_asked_before",
]
REFUSALS = ["async_verbs", "inside_a_transaction", "inside_a_session", "inside_a_step", "a_handle"]


@pytest.mark.parametrize("scenario", SCENARIOS)
async def test_what_was_acknowledged_is_stored(url, scenario):
    acknowledged = {int(line.split()[1]) for line in await run(scenario, url)}
    assert acknowledged
    assert acknowledged <= {*await numbers_of(url)}


@pytest.mark.parametrize("scenario", REFUSALS)
async def test_what_a_child_cannot_do_is_refused_at_once(url, scenario):
    lines = await run(scenario, url)
    assert lines[-1] == "as expected"


async def test_the_parent_keeps_its_connections(postgres_url):
    assert (await run("connections", postgres_url))[-1] == "the same"


async def test_a_child_keeps_no_connection_of_a_parent_that_is_gone(postgres_url):
    assert (await run("orphan", postgres_url))[-1] == "free"
