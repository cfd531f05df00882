"""Events on the wire: CloudEvents 1.0, the same bytes each time, read strictly."""

from __future__ import annotations

import json
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.events.envelope import encode, read
from holdfast.kernel.errors import PayloadError
from holdfast.kernel.ids import new_id
from holdfast.store.event_records import OutboxEvent

TEXTS = st.text(
    st.characters(min_codepoint=0x21, max_codepoint=0xD7FF, exclude_categories=("Cc", "Zl", "Zp", "Zs")),
    min_size=1,
    max_size=20,
)
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=10,
)


def stored(**changes):
    found = {
        "seq": 1,
        "id": new_id(),
        "type": "order.placed",
        "key": "order:1",
        "version": 3,
        "data": '{"id":1}',
        "time": 1_700_000_000.123456,
        "correlation_id": "c",
        "causation_id": "d",
        "trace": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        "state": "waiting",
        "position": None,
        "published_at": None,
        "tries": 0,
        "error": None,
    }
    return OutboxEvent(**{**found, **changes})


def test_it_is_a_cloud_event():
    event = stored()
    assert json.loads(encode(event)) == {
        "specversion": "1.0",
        "id": event.id,
        "source": "holdfast",
        "type": "order.placed",
        "time": "2023-11-14T22:13:20.123456Z",
        "datacontenttype": "application/json",
        "partitionkey": "order:1",
        "sequence": "0000000000000000003",
        "correlationid": "c",
        "causationid": "d",
        "traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        "data": {"id": 1},
    }


def test_what_happens_to_the_row_changes_no_byte():
    """A delivery after a failure, a requeue or a redrive is the same message."""
    event_id = new_id()
    later = stored(
        id=event_id, seq=9, state="published", position=7, published_at=1.7e9, tries=4, error="away"
    )
    assert encode(stored(id=event_id)) == encode(later)


@given(TEXTS, TEXTS, VALUES, st.floats(0, 4e9))
def test_what_was_written_is_read(key, correlation, data, time):
    event = stored(key=key, correlation_id=correlation, data=json.dumps(data), time=time)
    found = read(encode(event)).event()
    assert (found.id, found.key, found.version, found.correlation_id, found.data) == (
        event.id, key, 3, correlation, data,
    )  # fmt: skip
    assert abs(found.time.timestamp() - time) < 1e-5


def test_an_event_without_a_key_has_no_version():
    found = read(encode(stored(key=None, version=None))).event()
    assert (found.key, found.version) == (None, None)


@dataclass
class Order:
    id: int


def test_data_is_read_in_the_type_that_is_asked_for():
    assert read(encode(stored())).event(Order).data == Order(1)
    with pytest.raises(PayloadError, match="id"):
        read(encode(stored(data='{"id":"one"}'))).event(Order)


def changed(**changes):
    found = json.loads(encode(stored()))
    found.update(changes)
    return json.dumps({name: value for name, value in found.items() if value is not ...}).encode()


@pytest.mark.parametrize(
    ("body", "told"),
    [
        (b"", "not JSON"),
        (b"hello", "not JSON"),
        (b"\xff\xfe", "UTF-8"),
        (b"[1]", "object"),
        (changed(id=...), "id"),
        (changed(type=...), "type"),
        (changed(specversion="0.3"), "0.3"),
        (changed(specversion=...), "specversion"),
        (changed(time="yesterday"), "time"),
        (changed(time="2023-11-14T22:13:20"), "time"),
        (changed(type="order *"), "no event type"),
        (changed(datacontenttype="application/xml"), "application/xml"),
        (changed(datacontenttype="text/json-not"), "text/json-not"),
        (changed(data=..., data_base64="AAEC"), "data_base64"),
        (changed(sequence="x" * 600), "sequence"),
        (changed(partitionkey=""), "partitionkey"),
        (changed(id="a\0b"), "id"),
        (b'{"id":"1",' + changed()[1:], "twice"),
        (changed(data="x" * 300_000), "too large"),
        (b"[" * 100_000, "deep"),
    ],
)
def test_a_broken_message_says_what_is_wrong(body, told):
    with pytest.raises(PayloadError, match=told):
        read(body)


@pytest.mark.parametrize(
    "named",
    [
        ...,
        "application/json; charset=utf-8",
        "Application/JSON",
        "application/vnd.shop.order+json",
        "text/json",
    ],
)
def test_json_has_many_names(named):
    assert read(changed(datacontenttype=named)).event(Order).data == Order(1)


@pytest.mark.parametrize(
    ("sequence", "version"), [("many", None), ("9" * 19, None), ("9" * 30, None), ("٣", None), ("0012", 12)]
)
def test_a_sequence_of_others_is_a_version_when_it_is_a_number(sequence, version):
    assert read(changed(sequence=sequence)).event().version == version


def test_who_else_makes_events_has_ids_of_their_own():
    """CloudEvents are unique by source and id; further attributes are no mistake."""
    found = read(
        changed(id="17", source="https://shop.example", subject="an order", sequence=..., partitionkey=...)
    )
    assert found.identity == "https://shop.example 17"
    assert found.event().id == "17"
    long = read(changed(id="x" * 400, source="y" * 400))
    assert len(long.identity) == 64


def test_where_a_source_ends_is_not_taken_for_where_an_id_begins():
    """Else one of them would be the other come again, and nobody would handle it."""
    whole = {"specversion": "1.0", "type": "a.b"}
    pairs = [("shop", "a b c"), ("shop a", "b c"), ("shop a b", "c")]
    found = [read(json.dumps({**whole, "source": source, "id": id_}).encode()) for source, id_ in pairs]
    assert len({each.identity for each in found}) == 3
