"""The bench measures Holdfast and the limit, says what must be reached, and survives a peer that fails. No network."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from bench import __main__ as bench
from bench import page, report, step
from bench.environments import LOCKS, PACKAGES
from bench.figures import Figures
from bench.guards import __main__ as guards
from bench.guards.figures import Answers
from bench.guards.systems import OURS as OUR_GUARD
from bench.guards.systems import PEERS as GUARD_PEERS
from bench.musts import guard_musts, musts
from bench.plan import FULL, QUICK, TINY, Choice, steps
from bench.profile.__main__ import profile
from bench.profile.parts import TOTAL
from bench.schema.model import Figure
from bench.servers import Servers
from bench.systems import HOLDFAST, LIMITS, PEERS, System

LITTLE = replace(TINY, enqueue=0.05, bulk=0.05, drain=0.1, samples=3, idle=0.0)


@pytest.fixture
def servers(databases):
    """The test run's own PostgreSQL."""
    with Servers() as found:
        found._postgres = databases.server
        yield found


@pytest.mark.parametrize(
    ("store", "measure"),
    [("sqlite", "enqueue_one"), ("sqlite", "drain"), ("postgres", "enqueue_bulk"), ("postgres", "drain")],
)
def test_the_limit_gives_figures(servers, store, measure):
    (system,) = [each for each in LIMITS if each.store == store]
    answer = step.measure(servers, system, measure, LITTLE.options(system, measure))
    figures = Figures().add(system, measure, answer)
    assert all(figure.rate > 0 for figure in figures)
    assert figures[0].measure == measure


@pytest.mark.parametrize(
    ("store", "measure"),
    [
        ("sqlite", "enqueue_one"), ("sqlite", "enqueue_bulk"), ("sqlite", "drain"),
        ("postgres", "enqueue_concurrent"), ("postgres", "drain"), ("postgres", "latency"),
    ],
)  # fmt: skip
def test_holdfast_gives_figures(servers, store, measure):
    (system,) = [each for each in HOLDFAST if each.store == store]
    options = LITTLE.options(replace(system, bulk=200), measure)
    figures = Figures().add(system, measure, step.measure(servers, system, measure, options))
    assert all(figure.rate > 0 for figure in figures)


def test_a_peer_that_fails_is_named_and_the_rest_goes_on(monkeypatch):
    def fail(_servers, system, measure, _options):
        if system.name == "huey":
            raise step.Failed("it has a bad day")
        return {"rate": 10.0, "jobs": 10, "seconds": 1.0, "p50": 1.0, "p99": 2.0, "memory": 30.0}

    monkeypatch.setattr(step, "measure", fail)
    run = bench.Run(bench.Console(quiet=True), LITTLE, minutes=1)
    figures, left_out = run.measure(list(steps(LITTLE, Choice(stores=frozenset({"sqlite"})))))
    assert left_out["sqlite huey drain"] == "it has a bad day"
    assert {"holdfast", "limit", "litequeue"} <= {figure.system for figure in figures}


def test_what_has_no_time_left_is_named():
    run = bench.Run(bench.Console(quiet=True), LITTLE, minutes=0)
    figures, left_out = run.measure(list(steps(LITTLE, Choice())))
    assert figures == []
    assert set(left_out.values()) == {"no time was left"}


def test_the_driver_tells_why_it_failed(servers):
    broken = System("broken", "sqlite", "bench.peers.no_such_program")
    with pytest.raises(step.Failed, match="no_such_program"):
        step.measure(servers, broken, "drain", LITTLE.options(broken, "drain"))


def test_every_system_is_measured_in_every_way_it_can():
    plan = list(steps(FULL, Choice()))
    assert {each.system.key for each in plan} >= {system.key for system in (*PEERS, *HOLDFAST, *LIMITS)}
    assert {each.measure for each in steps(QUICK, Choice())} == {*QUICK.measures}


def test_every_environment_is_locked_with_hashes_and_no_address():
    for name in {*PACKAGES, *(system.environment for system in PEERS)}:
        text = (LOCKS / f"{name}.txt").read_text()
        assert "--hash=sha256:" in text
        assert "://" not in text


def test_what_must_be_reached_is_judged():
    figures = [
        Figure("holdfast", "postgres", "drain", 26_000),
        Figure("limit", "postgres", "drain", 130_000),
        Figure("pgqueuer", "postgres", "drain", 20_000),
        Figure("huey", "redis", "drain", 9_000),
        Figure("holdfast", "postgres", "latency_p50", 2.0, "ms"),
        Figure("saq", "postgres", "latency_p50", 3.0, "ms"),
    ]
    found = {must.what: must.holds for must in musts(figures)}
    assert found["postgres: drain ≥ 1.3 times pgqueuer"] is True
    assert found["postgres: drain ≥ 0.25 of the limit"] is False
    assert found["postgres: drain ≥ 3 times the best peer on Redis"] is False
    assert found["postgres: latency p50 ahead of every peer"] is True
    assert found["sqlite: drain ≥ 0.2 of the limit"] is None


def test_the_page_has_the_figures_and_the_way_to_them(tmp_path):
    figures = [Figure("holdfast", "sqlite", "drain", 20_000), Figure("huey", "sqlite", "drain", 2_000)]
    (tmp_path / "peers.json").write_text(json.dumps([figure.__dict__ for figure in figures]))
    (tmp_path / page.LEFT_OUT).write_text("sqlite rq drain: cannot be installed\n")
    text = page.render(tmp_path, tmp_path)
    assert "| drain | sqlite | **holdfast** | 20,000 jobs/s |" in text
    assert "10 times" in text
    assert "cannot be installed" in text
    assert report.MEASURES.keys() >= {figure.measure for figure in figures}


def test_the_profile_adds_up(servers):
    parts, _ = profile(servers, "sqlite", 3_000)
    whole = parts.pop(TOTAL)
    assert sum(parts.values()) == pytest.approx(whole)


# --- guards ---


def test_a_guard_gives_figures(servers):
    answers = Answers()
    answers.add(OUR_GUARD, step.measure(servers, OUR_GUARD, "guards", {"calls": 20, "laps": 1}))
    found = {figure.measure: figure for figure in answers.figures({}, load=0.0)}
    assert found["guard_bare_p50"].system == "limit"
    for kind in ("retry", "breaker", "limiter", "all", "all_waiting"):
        assert 0 < found[f"guard_{kind}_p50"].rate <= found[f"guard_{kind}_p99"].rate
    assert {figure.unit for figure in found.values()} == {"µs"}
    assert report.MEASURES.keys() >= found.keys()


def test_a_guard_is_told_by_what_it_adds():
    answers = Answers()
    for p50 in (9.0, 11.0, 10.0):
        bare = {"p50": 1.0, "p99": 2.0}
        answers.add(OUR_GUARD, {"bare": bare, "bare_waiting": bare, "all": {"p50": p50, "p99": 31.0}})
    found = {figure.measure: figure.rate for figure in answers.figures({}, load=0.0)}
    assert (found["guard_all_p50"], found["guard_all_p99"], found["guard_bare_p99"]) == (9.0, 30.0, 2.0)


def guard_figures(ours, theirs):
    return [
        Figure("holdfast", "memory", "guard_all_p50", ours, "µs"),
        Figure("stamina + purgatory", "memory", "guard_all_p50", theirs, "µs", {"version": "1.0"}),
    ]


@pytest.mark.parametrize(
    ("ours", "theirs", "holds"), [(10, 30, [True, None, True]), (20, 19, [False, None, False])]
)
def test_what_guards_must_reach_is_judged(ours, theirs, holds):
    assert [must.holds for must in guard_musts(guard_figures(ours, theirs))] == holds


def test_the_page_has_the_guards_beside_what_was_measured_before(tmp_path):
    (tmp_path / "peers.json").write_text(json.dumps([Figure("holdfast", "sqlite", "drain", 20_000).__dict__]))
    before = page.render(tmp_path, tmp_path)
    (tmp_path / "guards.json").write_text(json.dumps([figure.__dict__ for figure in guard_figures(10, 30)]))
    after = page.render(tmp_path, tmp_path)
    assert "| everything, p50 | memory | **holdfast** | 10 µs |" in after
    assert "3.00 times" in after
    for line in before.splitlines():
        assert line in after


def test_a_peer_without_its_environment_is_named_and_the_rest_goes_on(monkeypatch, tmp_path):
    def fail(_servers, system, _measure, _options):
        if system is not OUR_GUARD:
            raise step.Failed("cannot be installed")
        some = {"p50": 1.0, "p99": 2.0}
        return dict.fromkeys(("bare", "bare_waiting", "all"), some)

    monkeypatch.setattr(step, "measure", fail)
    monkeypatch.setattr(guards, "_draw", lambda *_: None)
    found = guards.measure(bench.Console(quiet=True), tmp_path, tiny=True)
    assert {figure.system for figure in found} == {"holdfast", "limit"}
    assert json.loads((tmp_path / "guards.json").read_text())[0]["store"] == "memory"


def test_every_peer_of_guards_has_a_program():
    for system in GUARD_PEERS:
        place = step.ROOT / (system.module.replace(".", "/") + ".py")
        assert "measure = measurer(" in place.read_text()
