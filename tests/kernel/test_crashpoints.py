"""Crash points do nothing until a test arms them, and are quiet again afterwards."""

from __future__ import annotations

import pytest

from holdfast.kernel.crashpoints import CRASHPOINTS, armed, crashpoint

FIRST, SECOND = list(CRASHPOINTS)[:2]


class Crash(Exception):
    pass


def crash(name: str) -> None:
    raise Crash(name)


def test_production_walks_past():
    for name in CRASHPOINTS:
        crashpoint(name)


def test_an_armed_place_acts_and_the_others_do_not():
    with armed(FIRST, crash):
        crashpoint(SECOND)
        with pytest.raises(Crash, match=FIRST):
            crashpoint(FIRST)
    crashpoint(FIRST)


def test_a_star_arms_every_place():
    seen: list[str] = []
    with armed("*", seen.append):
        for name in CRASHPOINTS:
            crashpoint(name)
    assert seen == list(CRASHPOINTS)


def test_a_name_goes_before_the_star():
    seen: list[str] = []
    with armed("*", seen.append), armed(FIRST, crash):
        crashpoint(SECOND)
        with pytest.raises(Crash):
            crashpoint(FIRST)
    assert seen == [SECOND]


def test_arming_inside_arming_gives_the_place_back():
    seen: list[str] = []
    with armed(FIRST, seen.append):
        with armed(FIRST, crash), pytest.raises(Crash):
            crashpoint(FIRST)
        crashpoint(FIRST)
    assert seen == [FIRST]


def test_a_crash_disarms():
    with pytest.raises(Crash), armed(FIRST, crash):
        crashpoint(FIRST)
    crashpoint(FIRST)


def test_an_unknown_name_is_refused_with_the_known_ones():
    with pytest.raises(ValueError, match=f"no crash point 'nowhere'.*{FIRST}"), armed("nowhere", crash):
        pass


def test_every_name_says_what_is_true_there():
    assert all(name.count(".") == 1 and text for name, text in CRASHPOINTS.items())
