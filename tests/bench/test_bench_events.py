"""The bench of events measures Holdfast, the raw clients and the limit, and says what must be reached. No network."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from bench import chapter, page, report, step
from bench.environments import LOCKS
from bench.events.__main__ import EVENTS
from bench.events.figures import answers
from bench.events.systems import EMITTERS, MEASURES, OURS, PLAIN, RELAYS, WITH_ROWS
from bench.musts import event_musts
from bench.schema.model import Figure
from bench.servers import Servers

LITTLE = {"callers": 5, "processes": 1, "guess": 10, "seconds": 0.05, "samples": 3, "backlog": 1_000}


@pytest.fixture
def servers(databases, own_valkey):
    """The test run's own PostgreSQL, and a Valkey that needs no installation."""
    with Servers() as found:
        found._postgres = databases.server
        found._redis["redis-everysec"] = own_valkey.port
        yield found


def figures_of(servers, system, measure):
    return answers().add(system, measure, step.measure(servers, system, measure, LITTLE))


@pytest.mark.parametrize(
    ("system", "measure"),
    [(OURS[1], "events"), (OURS[3], "events"), (OURS[2], "event_latency"), (OURS[1], "emit_concurrent")],
    ids=["sqlite", "nats", "redis", "emit"],
)
def test_events_give_figures(servers, system, measure):
    found = figures_of(servers, system, measure)
    assert all(figure.rate > 0 for figure in found)
    assert report.MEASURES.keys() >= {figure.measure for figure in found}


@pytest.mark.parametrize("system", [WITH_ROWS[2], PLAIN[3]], ids=["redis", "nats"])
def test_the_raw_clients_give_figures(servers, system):
    here = replace(system, environment=None)  # the tests have these clients too
    [figure] = figures_of(servers, here, "events")
    assert figure.rate > 0
    assert figure.store in ("redis", "nats")


@pytest.mark.parametrize(("system", "measure"), [(EMITTERS[2], "emit_concurrent"), (EMITTERS[3], "emit_one")])
def test_the_limit_of_emit_gives_figures(servers, system, measure):
    [figure] = figures_of(servers, system, measure)
    assert (figure.system, figure.measure, figure.unit) == ("limit", measure, "events/s")
    assert figure.rate > 0


def test_the_relay_is_watched_while_it_publishes(servers):
    answer = step.measure(servers, RELAYS[0], "relay_memory", LITTLE)
    assert min(answer["peak"], answer["before"]) > 10  # MB: it may also give some back
    [figure] = answers().add(RELAYS[0], "relay_memory", answer)
    assert figure.unit == "MB"


def some_figures(ours, theirs, growth):
    return [
        Figure("holdfast", "redis", "events", ours, "events/s"),
        Figure(
            "faststream", "redis", "events", theirs, "events/s", {"package": "faststream", "version": "1.0"}
        ),
        Figure("holdfast", "redis", "relay_memory", growth, "MB"),
    ]


@pytest.mark.parametrize(
    ("found", "holds"), [((600, 1_000, 20.0), [True, True]), ((400, 1_000, 60.0), [False, False])]
)
def test_what_events_must_reach_is_judged(found, holds):
    judged = [must.holds for must in event_musts(some_figures(*found))]
    assert [each for each in judged if each is not None] == holds
    assert judged.count(None) > 0


def test_the_page_has_events_and_what_was_measured_before(tmp_path):
    (tmp_path / "peers.json").write_text(json.dumps([Figure("holdfast", "sqlite", "drain", 20_000).__dict__]))
    before = page.render(tmp_path, tmp_path)
    found = some_figures(500, 1_000, 1.0)
    (tmp_path / "events.json").write_text(json.dumps([figure.__dict__ for figure in found]))
    after = page.render(tmp_path, tmp_path)
    assert "| redis | faststream | 1,000 events/s | 0.50 times |" in after
    assert "faststream 1.0" in after
    for line in before.splitlines():
        assert line in after


def test_who_fails_is_left_out_and_parts_that_were_not_measured_stay(monkeypatch, tmp_path):
    def measured(_servers, system, _measure, _options, limit):
        assert limit > 0
        if system.name == "faststream":
            raise step.Failed("cannot be installed")
        return {"rate": 10.0, "events": 100}

    monkeypatch.setattr(step, "measure", measured)
    monkeypatch.setattr(chapter, "draw", lambda *_: None)
    console = chapter.Console(quiet=True)
    chapter.measure(EVENTS, console, tmp_path, ["events"], tiny=True)
    found = chapter.measure(EVENTS, console, tmp_path, ["events_plain"], tiny=True)
    assert {figure.measure for figure in found} == {"events", "events_plain"}
    assert {figure.system for figure in found} == {"holdfast", "limit"}
    assert {figure.store for figure in found} == {"postgres", "sqlite", "redis", "nats"}


def test_every_system_has_a_program_and_a_lock():
    for system in {
        (*each.key, each.module, each.environment) for found in MEASURES.values() for each in found
    }:
        *_, module, environment = system
        assert (step.ROOT / (module.replace(".", "/") + ".py")).exists()
        assert environment is None or (LOCKS / f"{environment}.txt").exists()
