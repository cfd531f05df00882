"""The command line: many seeds, one seed again, and a planted bug."""

from __future__ import annotations

from holdfast.testing.simulation import hunt
from holdfast.testing.simulation.__main__ import main


def test_many_seeds(capsys):
    assert main(["--seeds", "5", "--jobs", "1"]) == 0
    out = capsys.readouterr().out
    assert "5 seeds, no invariant was broken" in out
    assert "of the kind 'store'" in out
    assert "of the kind 'worker'" in out
    assert "of the kind 'guards'" in out
    assert "process killed" in out


def test_one_kind_only(capsys):
    assert main(["--seeds", "2", "--kind", "worker", "--jobs", "1"]) == 0
    assert "of the kind 'store'" not in capsys.readouterr().out


def test_a_time_limit_ends_it_early(capsys):
    assert main(["--seeds", "500", "--jobs", "1", "--time-limit", "0"]) == 0
    assert "1 seeds" in capsys.readouterr().out


def test_one_seed_tells_its_story(capsys):
    assert main(["--seed", "5"]) == 0
    out = capsys.readouterr().out
    assert "booted" in out
    assert "no invariant was broken" in out


def test_a_failing_seed_exits_with_an_error_and_says_how_to_replay(capsys):
    assert main(["--seeds", "30", "--jobs", "1", "--mutant", "no turn"]) == 1
    out = capsys.readouterr().out
    assert "I12 in order" in out
    assert "Replay it:" in out


def test_seeds_that_found_planted_bugs_are_kept_beside_those_of_other_kinds(capsys, tmp_path, monkeypatch):
    few = {name: hunt.MUTANTS[name] for name in ("no turn", "one node opens it for all")}
    monkeypatch.setattr(hunt, "MUTANTS", few)
    kept = tmp_path / "seeds.json"
    kept.write_text('{"one node opens it for all": 10, "a bug of old": 3}')
    assert main(["--mutants", "--kind", "store", "--jobs", "1", "--write", str(kept)]) == 0
    assert "All planted bugs were found" in capsys.readouterr().out
    seeds = hunt.known(kept)
    assert seeds.keys() == few.keys()
    assert seeds["one node opens it for all"] == 10
