"""What may be a projection, and what it is told when it may not."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

import msgspec
import pytest

from holdfast import Secret
from holdfast.events.event import Event
from holdfast.kernel.errors import PayloadError, UsageError
from holdfast.kernel.ids import new_id
from holdfast.views.projection import Projection


class Order(msgspec.Struct):
    id: int
    total: int = 0


@dataclass
class Row:
    total: int
    seen: list[int]


def plain(row, event):
    return {**(row or {}), **event.data}


def typed(row: Row | None, event: Event[Order]) -> Row | None:
    before = row or Row(0, [])
    return Row(before.total + event.data.total, [*before.seen, event.data.id])


def an_event(data=None, *, key="order:1"):
    return Event(id=new_id(), type="order.placed", data=data, key=key, version=1, time=datetime.now(UTC))


@pytest.mark.parametrize(
    ("on", "heard", "unheard"),
    [
        ("order.placed", ["order.placed"], ["order.paid"]),
        ("order.*", ["order.placed", "order.paid"], ["order.line.added", "ship.sent"]),
        (["order.*", "ship.sent"], ["order.placed", "ship.sent"], ["ship.lost"]),
        ("*", ["order.placed", "order.line.added"], []),
    ],
)
def test_a_view_hears_what_its_patterns_say(on, heard, unheard):
    projection = Projection("orders", plain, on=on)
    assert all(projection.hears(each) for each in heard)
    assert not any(projection.hears(each) for each in unheard)


@pytest.mark.parametrize(
    ("key", "found"),
    [
        ("key", "order:1"),
        ("customer", "ada"),
        ("number", "7"),
        (lambda event: f"{event.type}:{event.data['number']}", "order.placed:7"),
    ],
)
def test_the_key_of_a_row(key, found):
    projection = Projection("orders", plain, on="*", key=key)
    assert projection.key_of(an_event({"customer": "ada", "number": 7})) == found


def test_the_key_of_a_row_may_be_a_field_of_a_struct():
    assert Projection("orders", typed, on="*", key="id").key_of(an_event(Order(5))) == "5"


@pytest.mark.parametrize(
    "data", [{"customer": None}, {"customer": 1.5}, {"customer": True}, {}, None, {"customer": ""}]
)
def test_an_event_without_a_usable_key(data):
    with pytest.raises(UsageError):
        Projection("orders", plain, on="*", key="customer").key_of(an_event(data))


def test_an_event_without_a_key_of_its_own():
    with pytest.raises(PayloadError, match="has no key"):
        Projection("orders", plain, on="*").key_of(an_event({}, key=None))


def test_a_row_is_what_the_codec_makes_of_it():
    """Within a batch as between two: a tuple is a list, and a row is never the object that was returned."""
    seen = []

    def keeps(row, event):
        seen.append(row)
        return {"pair": (1, 2)}

    projection = Projection("pairs", keeps, on="*")
    text = projection.project(None, an_event())
    projection.project(text, an_event())
    assert seen == [None, {"pair": [1, 2]}]


def test_typed_rows_and_events():
    projection = Projection("orders", typed, on="*", key="id")
    assert (projection.row_type, projection.data_type) == (Row, Order)
    text = projection.project(None, an_event(Order(1, 20)))
    assert projection.project(text, an_event(Order(2, 5))) == '{"total":25,"seen":[1,2]}'


def test_a_row_that_is_not_of_its_type_is_refused():
    def wrong(row: Row | None, event) -> Row | None:
        return {"total": "many"}

    with pytest.raises(PayloadError, match="total"):
        Projection("orders", wrong, on="*").project(None, an_event())


def test_a_row_that_cannot_be_kept_is_refused():
    for bad in ({"x": float("nan")}, {"x": object()}, "x" * 300_000):
        with pytest.raises(PayloadError):
            Projection("orders", _returning(bad), on="*").project(None, an_event())


def _returning(value):
    return lambda row, event: value


def test_none_deletes():
    assert Projection("orders", _returning(None), on="*").project("{}", an_event()) is None


async def waits(row, event):
    return row


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"function": waits}, "plain function"),
        ({"function": lambda row: row}, "takes a row and an event"),
        ({"function": lambda row, event, more: row}, "takes a row and an event"),
        ({"on": []}, "hears nothing"),
        ({"on": "order..x"}, "no pattern"),
        ({"key": 5}, "key is the name"),
        ({"key": ""}, "key is the name"),
        ({"late": "sometimes"}, "'ignore' or 'apply'"),
        ({"on_error": "cry"}, "'aside' or 'stop'"),
        ({"name": ""}, "must not be empty"),
        ({"name": "n" * 151}, "at most 150 bytes"),
    ],
)
def test_what_is_no_projection(options, words):
    given = {"name": "orders", "function": plain, "on": "*", **options}
    with pytest.raises(UsageError, match=words):
        Projection(**given)


def test_an_annotation_that_cannot_be_read():
    def lost(row: "Nowhere", event):  # noqa: F821, UP037
        return row

    with pytest.raises(UsageError, match="Nowhere"):
        Projection("orders", lost, on="*")


class Card(msgspec.Struct):
    number: Secret[str]


def charged(row: dict | None, event: Event[Card]) -> dict | None:
    raise ValueError(event.data.number)


def test_an_error_does_not_tell_what_is_secret():
    assert Projection("cards", charged, on="*").told(ValueError("4242")) == "ValueError"
    assert "4242" in Projection("cards", plain, on="*").told(ValueError("4242"))
