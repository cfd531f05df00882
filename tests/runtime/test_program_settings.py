"""Settings of programs: types, ranges, unknown names, and secrets that are never shown."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from holdfast.settings import WrongSettings, read, setting, shown
from holdfast.vault import SecretValue


@dataclass(frozen=True)
class Shop:
    slots: int = setting("SHOP_SLOTS", 5, "Jobs at a time", low=1, high=100)
    factor: float = setting("SHOP_FACTOR", 0.9, "How much faster", low=0.1, high=1.0)
    is_on: bool = setting("SHOP_ON", True, "Whether it is on")
    mode: str = setting("SHOP_MODE", "quiet", "How it speaks", one_of=("quiet", "loud"))
    redis: str | None = setting("REDIS_URL", None, "A Redis")
    secret: SecretValue | None = setting("SHOP_SECRET", None, "A secret")


def test_defaults_stand_where_nothing_is_set():
    assert read(Shop, {}, prefixes=["SHOP_"]) == Shop()
    assert read(Shop, {"SHOP_SLOTS": " "}).slots == 5


def test_values_have_their_types():
    found = read(Shop, {"SHOP_SLOTS": "7", "SHOP_FACTOR": "0.5", "SHOP_ON": "off", "SHOP_MODE": "loud"})
    assert (found.slots, found.factor, found.is_on, found.mode) == (7, 0.5, False, "loud")


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("SHOP_SLOTS", "many", "'many' is no whole number; it is from 1 to 100."),
        ("SHOP_SLOTS", "0", "0 is too small; it is from 1 to 100."),
        ("SHOP_SLOTS", "-3", "-3 is too small"),
        ("SHOP_SLOTS", "101", "101 is too large"),
        ("SHOP_SLOTS", "2.5", "'2.5' is no whole number"),
        ("SHOP_FACTOR", "nan", "nan"),
        ("SHOP_FACTOR", "inf", "inf"),
        ("SHOP_ON", "maybe", "'maybe' is neither true nor false."),
        ("SHOP_MODE", "rude", "'rude' is none of quiet, loud."),
        ("SHOP_SLOT", "5", "there is no such setting; SHOP_SLOTS is the nearest."),
    ],
)
def test_a_wrong_value_is_told_by_name_value_and_range(name, value, says):
    with pytest.raises(WrongSettings) as told:
        read(Shop, {name: value}, prefixes=["SHOP_"])
    assert f"{name}: " in str(told.value)
    assert says in str(told.value)


def test_all_mistakes_are_told_at_once():
    with pytest.raises(WrongSettings) as told:
        read(Shop, {"SHOP_SLOTS": "0", "SHOP_ON": "x"})
    assert str(told.value).count("\n") == 2


def test_variables_of_others_are_left_alone():
    assert read(Shop, {"PATH": "/bin", "SHOP_OTHER": "1"}, prefixes=["SHOP_"], also=["SHOP_OTHER"]) == Shop()


def test_what_is_shown_has_no_secrets():
    environment = {"SHOP_SECRET": "hush-hush", "REDIS_URL": "redis://me:hidden@host:6379/0"}
    rows = {name: (value, how) for name, value, how in shown(read(Shop, environment), environment)}
    assert rows["SHOP_SECRET"] == ("***", "set")
    assert rows["REDIS_URL"] == ("redis://me:***@host:6379/0", "set")
    assert rows["SHOP_ON"] == ("true", "default")
    assert not any(word in str(rows) for word in ("hush", "hidden"))
