"""What an error means for the next call."""

from __future__ import annotations

import errno
import json
import socket
from types import SimpleNamespace

import pytest

from holdfast.guards import Fault, classify, retry_after_of
from holdfast.guards.faults import fault_of
from holdfast.kernel import errors


class HttpError(Exception):
    def __init__(self, status, headers=None):
        super().__init__(status)
        self.response = SimpleNamespace(status_code=status, headers=headers or {})


class Carries(Exception):
    def __init__(self, **fields):
        super().__init__()
        self.__dict__.update(fields)


@pytest.mark.parametrize(
    ("error", "fault"),
    [
        (ConnectionRefusedError(errno.ECONNREFUSED, "refused"), Fault.TRANSIENT),
        (OSError(errno.EHOSTUNREACH, "no route"), Fault.TRANSIENT),
        (socket.gaierror(-2, "Name or service not known"), Fault.TRANSIENT),
        (errors.StoreBusy("busy"), Fault.TRANSIENT),
        (errors.BulkheadFull("full"), Fault.TRANSIENT),
        (HttpError(425), Fault.TRANSIENT),
        (ConnectionResetError(errno.ECONNRESET, "reset"), Fault.UNKNOWN),
        (BrokenPipeError(), Fault.UNKNOWN),
        (TimeoutError(), Fault.UNKNOWN),
        (errors.TimedOut("no answer"), Fault.UNKNOWN),
        (errors.CommitUnknown("lost"), Fault.UNKNOWN),
        (HttpError(500), Fault.UNKNOWN),
        (HttpError(503), Fault.UNKNOWN),
        (HttpError(408), Fault.UNKNOWN),
        (RuntimeError("?"), Fault.UNKNOWN),
        (HttpError(429), Fault.THROTTLED),
        (HttpError(503, {"Retry-After": "5"}), Fault.THROTTLED),
        (Carries(status=429), Fault.THROTTLED),
        (HttpError(404), Fault.PERMANENT),
        (HttpError(401), Fault.PERMANENT),
        (TypeError(), Fault.PERMANENT),
        (KeyError(), Fault.PERMANENT),
        (ZeroDivisionError(), Fault.PERMANENT),
        (json.JSONDecodeError("bad", "", 0), Fault.PERMANENT),
        (FileNotFoundError(), Fault.PERMANENT),
        (errors.DeadlinePassed("over"), Fault.PERMANENT),
        (errors.UsageError("wrong"), Fault.PERMANENT),
    ],
)
def test_an_error_is_judged_by_its_type_or_its_status(error, fault):
    assert classify(error) is fault


@pytest.mark.parametrize("status", [200, 302, True, "429", 42, None])
def test_what_is_no_error_status_tells_nothing(status):
    assert classify(Carries(status_code=status)) is Fault.UNKNOWN


@pytest.mark.parametrize(
    ("error", "seconds"),
    [
        (Carries(retry_after=7), 7),
        (Carries(retry_after="7"), 7),
        (Carries(retry_after=-7), None),
        (Carries(retry_after=float("nan")), None),
        (Carries(retry_after=10**400), 300),
        (Carries(retry_after=True), None),
        (Carries(retry_after=object()), None),
        (HttpError(429, {"Retry-After": "12"}), 12),
        (HttpError(429, {"Retry-After": "garbage"}), None),
        (Carries(headers={"Retry-After": "3"}), 3),
        (Carries(headers=None), None),
        (errors.BreakerOpen("open", retry_after=4.5), 4.5),
        (ValueError(), None),
    ],
)
def test_how_long_the_other_side_asks_us_to_wait(error, seconds):
    assert retry_after_of(error) == seconds


@pytest.mark.parametrize("wrong", [lambda error: 1 / 0, lambda error: None, lambda error: "sometimes"])
def test_a_classifier_that_fails_breaks_nothing(wrong, notes):
    assert fault_of(ValueError(), wrong) is Fault.UNKNOWN
    assert [name for name, _ in notes] == ["classifier.failed"]


def test_a_classifier_may_say_it_as_text():
    assert fault_of(ValueError(), lambda error: "throttled") is Fault.THROTTLED
