"""A guard that is declared twice: with the same settings it is the same one, with others it is refused, with both places."""

import importlib
import sys

import pytest

from holdfast import Backoff, Holdfast
from holdfast.guards import Breaker, Budget, Bulkhead, Fault, Limiter
from holdfast.kernel.errors import UsageError

MODULE = """
from functools import partial
from holdfast.guards import Backoff, Breaker, Budget, Bulkhead, Fallback, Fault, Limiter
from program import hf


class Gone(Exception):
    pass


def classify(error):
    return Fault.TRANSIENT


def made(fault):
    return lambda error: fault


stripe = hf.guard(
    "stripe",
    timeout=5,
    retry=Backoff(attempts=3, never=(Gone,)),
    budget=Budget(retries=5),
    breaker=Breaker(failures=3, window=60, classify=made(Fault.UNKNOWN)),
    limiter=Limiter(rate=10, per="user:{user}"),
    bulkhead=Bulkhead(4),
    classify=classify,
    fallback=Fallback(partial(print, "nothing"), on={Fault.THROTTLED, Fault.TRANSIENT}),
    uncharged=[Fault.TRANSIENT],
)
"""


@pytest.fixture
def hf(tmp_path):
    return Holdfast(f"sqlite:///{tmp_path / 'x.db'}")


@pytest.fixture
def module(tmp_path, hf, monkeypatch):
    """Like one of a program, which imports its Holdfast."""
    (tmp_path / "outside_of_it.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(sys.modules, "program", type(sys)("program"))
    sys.modules["program"].hf = hf
    yield importlib.import_module("outside_of_it")
    del sys.modules["outside_of_it"]


def test_a_module_that_is_loaded_again_has_the_same_guard(module):
    before = module.stripe
    assert importlib.reload(module).stripe is before


def test_text_above_it_may_change(module, tmp_path):
    before = module.stripe
    (tmp_path / "outside_of_it.py").write_text("# A comment.\n" + MODULE)
    assert importlib.reload(module).stripe is before


@pytest.mark.parametrize(
    ("text", "other", "told"),
    [
        ("timeout=5", "timeout=6", r"timeout \(5 and 6\)"),
        ("made(Fault.UNKNOWN)", "made(Fault.TRANSIENT)", "breaker"),
        ("window=60", "window=30", "breaker.*window=60.*window=30"),
        ("rate=10", "rate=20", "limiter"),
        ("Bulkhead(4)", "Bulkhead(5)", "bulkhead"),
        ("classify=classify,", "classify=made,", r"classify \(classify and made\)"),
        ("attempts=3", "attempts=4", "retry"),
        ("uncharged=[Fault.TRANSIENT]", "uncharged=None", "uncharged"),
        ('"nothing"', '"something"', "fallback"),
    ],
)
def test_with_another_setting_it_is_refused(module, tmp_path, text, other, told):
    assert text in MODULE
    (tmp_path / "outside_of_it.py").write_text("\n" + MODULE.replace(text, other))
    with pytest.raises(UsageError, match=f"differ in {told}") as caught:
        importlib.reload(module)
    line = MODULE[: MODULE.index("stripe = ")].count("\n") + 1
    for number in (line, line + 1):
        assert f"{tmp_path}/outside_of_it.py:{number} " in f"{caught.value} ".replace(",", " ")


def test_both_places_are_named(hf):
    hf.guard("api", timeout=5)
    with pytest.raises(UsageError, match="Guard 'api' is declared twice") as caught:
        hf.guard("api", timeout=5, breaker=Breaker(failures=3))
    assert str(caught.value).count("test_guard_settings.py:") == 2
    assert "breaker (None and Breaker(failures=3" in str(caught.value)


def test_one_that_is_made_of_equal_parts_is_the_same(hf):
    def declared():
        return hf.guard(
            "api",
            limiter=Limiter(rate=1.0),
            bulkhead=Bulkhead(2),
            retry=Backoff(attempts=2),
            budget=Budget(ratio=0.5),
            breaker=Breaker(failing={Fault.UNKNOWN, Fault.TRANSIENT}),
        )

    assert declared() is declared()
