"""The check of notes finds what is noted and not listed, listed and not noted, or noted with other fields."""

from __future__ import annotations

from logging import INFO

import pytest

from holdfast.kernel.notes import Entry
from tools.check_notes import check, main
from tools.sources import parse

IMPORT = "from holdfast.kernel.telemetry import note\n"


def problems(text, **changes):
    entry = {
        "name": "job.lost", "fields": ("job", "task"), "optional": (), "level": INFO,
        "sentence": "job {job} of {task} was lost", "logger": "holdfast.jobs", **changes,
    }  # fmt: skip
    sources = [parse("src/holdfast/x.py", IMPORT + text)]
    return [problem.message for problem in check(sources, {"job.lost": Entry(**entry)})]


def test_what_fits_is_fine():
    assert problems("note('job.lost', job=1, task=2)") == []


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("note('job.lost', job=1)", "is noted with job; its entry has job, task"),
        ("note('job.lost', job=1, task=2, why=3)", "is noted with job, task, why"),
        ("note('job.lost', job=1, task=2); note('job.won')", "job.won does not stand"),
        ("note('job.lost', job=1, task=2); note(x, a=1)", "<x> does not stand"),
        ("note('job.lost', **fields)", "cannot be seen"),
        ("note('job.lost' if a else 'job.won', job=1, task=2)", "job.won does not stand"),
        ("other('job.lost')", "noted nowhere"),
    ],
)
def test_what_does_not_fit_is_found(text, told):
    assert told in problems(text)[0]


def test_another_name_for_it_is_seen():
    text = "from holdfast.kernel.telemetry import note as tell\ntell('job.lost', job=1)"
    assert "is noted with job" in problems(text)[0]


def test_an_optional_field_is_given_somewhere():
    assert problems("note('job.lost', job=1, task=2)", optional=("why",)) == [
        "job.lost is never noted with why"
    ]
    text = "note('job.lost', job=1, task=2); note('job.lost', job=1, task=2, why=3)"
    assert problems(text, optional=("why",)) == []


def test_a_sentence_speaks_of_its_fields():
    assert (
        "speaks of worker" in problems("note('job.lost', job=1, task=2)", sentence="{worker} lost {job}")[0]
    )


def test_the_list_is_whole(capsys):
    assert main() == 0, capsys.readouterr().out
