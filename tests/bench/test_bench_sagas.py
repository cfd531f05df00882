"""The bench of sagas measures Holdfast and the limit, wakes those that sleep, and says what must be reached. No network."""

from __future__ import annotations

import json

import pytest

from bench import chapter, page, report, step
from bench.environments import LOCKS
from bench.musts import saga_musts
from bench.sagas.__main__ import SAGAS
from bench.sagas.figures import answers
from bench.sagas.systems import MEASURES
from bench.schema.model import Figure
from bench.servers import Servers

LITTLE = {"processes": 1, "guess": 200, "seconds": 1, "sleepers": 20, "dawn": 2.0}


@pytest.fixture
def servers(databases):
    """The test run's own PostgreSQL."""
    with Servers() as found:
        found._postgres = databases.server
        yield found


def measured(servers, name, store, measure):
    [system] = [each for each in MEASURES[measure] if each.key == (name, store)]
    return system, step.measure(servers, system, measure, LITTLE)


@pytest.mark.parametrize(
    ("name", "store", "measure"),
    [
        ("holdfast", "postgres", "sagas"),
        ("holdfast", "sqlite", "sagas_plain"),
        ("holdfast", "postgres", "sagas_started"),
        ("limit", "postgres", "sagas"),
        ("limit", "sqlite", "sagas_plain"),
    ],
)
def test_sagas_give_figures(servers, name, store, measure):
    [figure] = answers().add(measure=measure, **_named(measured(servers, name, store, measure)))
    assert (figure.system, figure.store, figure.measure, figure.unit) == (name, store, measure, "sagas/s")
    assert figure.rate > 0


@pytest.mark.parametrize("store", ["sqlite", "postgres"])
def test_sagas_that_sleep_are_weighed_and_woken(servers, store):
    system, answer = measured(servers, "holdfast", store, "sleeping")
    assert answer["asleep"] >= answer["before"] > 10  # MB: a process of Python
    assert answer["woken"] > 0  # they slept until then, and all of them are over now
    found = answers().add(system, "sleeping", answer)
    assert {figure.measure: figure.unit for figure in found} == {
        "sleeping_each": "KB", "sleeping_begin": "sagas/s", "sleeping_memory": "MB", "sleeping_wake": "s",
    }  # fmt: skip
    assert report.MEASURES.keys() >= {figure.measure for figure in found}


def _named(found):
    return dict(zip(("system", "answer"), found, strict=True))


def some_figures(ours, theirs, gained):
    return [
        Figure("holdfast", "postgres", "sagas", ours, "sagas/s"),
        Figure("dbos", "postgres", "sagas", theirs, "sagas/s", {"package": "dbos", "version": "1.0"}),
        Figure("holdfast", "sqlite", "sleeping_memory", gained, "MB"),
    ]


@pytest.mark.parametrize(
    ("found", "holds"), [((600, 100, 20.0), [True, True]), ((90, 100, 60.0), [False, False])]
)
def test_what_sagas_must_reach_is_judged(found, holds):
    judged = [must.holds for must in saga_musts(some_figures(*found))]
    assert [each for each in judged if each is not None] == holds
    assert judged.count(None) > 0


def test_the_page_has_a_chapter_of_sagas(tmp_path):
    before = page.render(tmp_path, tmp_path)
    found = some_figures(500, 100, 1.0)
    (tmp_path / "sagas.json").write_text(json.dumps([figure.__dict__ for figure in found]))
    after = page.render(tmp_path, tmp_path)
    assert "| postgres | dbos | 100 sagas/s | 5.00 times |" in after
    assert "dbos 1.0" in after
    for line in before.splitlines():
        assert line in after


def test_a_peer_that_cannot_be_installed_is_left_out(monkeypatch, tmp_path):
    def measured_(_servers, system, _measure, options, limit):
        assert limit > 0
        assert options["sleepers"] >= 0
        if system.environment is not None:
            raise step.Failed("cannot be installed")
        return {"rate": 10.0, "jobs": 100, "seconds": 1.0}

    monkeypatch.setattr(step, "measure", measured_)
    monkeypatch.setattr(chapter, "draw", lambda *_: None)
    found = chapter.measure(SAGAS, chapter.Console(quiet=True), tmp_path, ["sagas"], tiny=True)
    assert {(figure.system, figure.store) for figure in found} == {
        ("holdfast", "postgres"), ("holdfast", "sqlite"), ("limit", "postgres"), ("limit", "sqlite"),
    }  # fmt: skip


def test_every_system_has_a_program_and_a_lock():
    for system in [each for found in MEASURES.values() for each in found]:
        assert (step.ROOT / (system.module.replace(".", "/") + ".py")).exists()
        assert system.environment is None or (LOCKS / f"{system.environment}.txt").exists()
