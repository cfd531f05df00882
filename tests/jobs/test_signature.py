"""Arguments: bound, stored, read back with their types, and refused with a useful message."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID, uuid4

import pytest
from pydantic import BaseModel

from holdfast import Job, Secret
from holdfast.jobs.signature import NewerArguments, Signature
from holdfast.kernel.errors import PayloadError, UsageError
from holdfast.kernel.masking import masked, secret_values


@dataclass
class Point:
    x: int
    y: int = 0


class Card(BaseModel):
    number: str
    month: int


def of(function):
    return Signature(function, Job)


def round_trip(function, *args, **kwargs):
    signature = of(function)
    return signature.decode(signature.encode(signature.bind(args, kwargs)))


def test_values_come_back_with_the_types_of_the_signature():
    def task(
        job: Job,
        a: int,
        point: Point,
        card: Card,
        when: datetime,
        ids: list[UUID],
        *,
        note: str | None = None,
    ): ...

    ids = [uuid4()]
    when = datetime.fromisoformat("2026-11-15T10:00:00+00:00")
    found = round_trip(task, 1, Point(2), Card(number="4", month=2), when, ids, note="n")
    assert found == {
        "a": 1, "point": Point(2), "card": Card(number="4", month=2), "when": when, "ids": ids, "note": "n",
    }  # fmt: skip


def test_defaults_stay_with_the_function():
    def task(a: int, b: int = 5): ...

    assert round_trip(task, 1) == {"a": 1}


def test_parameters_by_position_only():
    def task(a: int, b: int = 1, /, c: int = 2): ...

    signature = of(task)
    assert signature.arrange(signature.decode('{"a": 7, "c": 3}')) == ([7], {"c": 3})


@pytest.mark.parametrize(
    ("args", "kwargs", "words"),
    [
        ((), {}, "missing a required argument: 'a'"),
        ((1, 2, 3), {}, "too many positional arguments"),
        ((1,), {"z": 1}, "unexpected keyword argument 'z'"),
    ],
)
def test_a_wrong_call_is_told_as_python_tells_it(args, kwargs, words):
    def task(a: int, b: int = 5): ...

    with pytest.raises(UsageError, match=re.escape(words)):
        of(task).bind(args, kwargs)


def test_a_wrong_type_is_refused_at_enqueue():
    def task(a: int): ...

    with pytest.raises(PayloadError, match="Expected `int`, got `str`"):
        round_trip(task, "one")


def test_a_newer_argument_is_not_a_broken_one():
    def task(a: int): ...

    with pytest.raises(NewerArguments):
        of(task).decode('{"a": 1, "added_later": 2}')
    with pytest.raises(PayloadError):
        of(task).decode('{"b": 1')


@pytest.mark.parametrize("function", [lambda *args: None, lambda **kwargs: None])
def test_arguments_have_names(function):
    with pytest.raises(UsageError, match="arguments have names"):
        of(function)


def test_an_annotation_that_cannot_be_read_is_told():
    def task(a: Nowhere): ...  # noqa: F821

    with pytest.raises(UsageError, match="Import that name at the top"):
        of(task)


def test_secrets_are_masked_for_readers_without_the_code():
    def task(user: str, password: Secret[str], pins: Secret[list[int]] = []): ...  # noqa: B006

    signature = of(task)
    text = signature.encode(signature.bind(("ada", "hunter2", [17, 18]), {}))
    assert masked(text) == {"user": "ada", "password": "***", "pins": "***"}
    assert secret_values(text) == ["hunter2", "17", "18"]
    assert signature.decode(text) == {"user": "ada", "password": "hunter2", "pins": [17, 18]}


def test_the_first_parameter_may_be_the_job():
    def with_job(job: Job, a: int): ...
    def without(job: int): ...

    assert of(with_job).takes_job
    assert of(with_job).names == ["a"]
    assert not of(without).takes_job


@dataclass
class Login:
    user: str
    password: Secret[str]


def test_a_secret_inside_hides_the_whole():
    def task(login: Login, note: str): ...

    signature = of(task)
    text = signature.encode(signature.bind((Login("ada", "hunter2"), "n"), {}))
    assert masked(text) == {"login": "***", "note": "n"}


def test_a_task_without_secrets_reads_what_was_stored_when_it_had():
    def task(password: str): ...

    assert of(task).decode('{"password": "x", "$secret": ["password"]}') == {"password": "x"}


def test_an_error_about_a_secret_does_not_show_it():
    def task(password: Secret[str]): ...

    with pytest.raises(PayloadError, match="not shown") as raised:
        round_trip(task, "hunter2\ud800")
    assert "hunter2" not in str(raised.value)
