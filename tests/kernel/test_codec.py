"""The codec writes exactly what it is given, or says what it cannot write, where, and what to do."""

from __future__ import annotations

import dataclasses
import enum
import time
from collections import Counter, OrderedDict
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Annotated, NamedTuple
from uuid import UUID

import msgspec
import pydantic
import pytest

from holdfast.kernel.codec import DEPTH_LIMIT, PAYLOAD_LIMIT, decode, decode_stored, encode
from holdfast.kernel.errors import PayloadError, UsageError


class Colour(enum.Enum):
    RED = "red"


class Size(enum.IntEnum):
    BIG = 3


@dataclasses.dataclass
class Line:
    name: str
    price: Decimal = Decimal("1.50")
    parts: object = None


class Order(msgspec.Struct, rename="camel", omit_defaults=True):
    order_id: UUID
    lines: list[Line] = []
    notes: dict[str, str] = {}
    colour: Colour = Colour.RED


class Shop(msgspec.Struct, omit_defaults=True):
    name: str = "a long name that is the default"
    orders: list[int] = []


class Pair(msgspec.Struct, array_like=True):
    left: int
    right: str


class Customer(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(strict=True)
    name: str = pydantic.Field(alias="customerName")
    since: date
    friends: list[Customer] = []


class Square(pydantic.BaseModel, extra="forbid"):
    side: int

    @pydantic.computed_field
    def area(self) -> int:
        return self.side**2


class Point(NamedTuple):
    x: int
    y: int


class Attrs:
    """What an attrs class looks like from outside; attrs itself is no dependency."""

    def __init__(self, x: object) -> None:
        self.x = x


def nested(levels: int) -> list:
    value: list = []
    for _ in range(levels - 1):
        value = [value]
    return value


def refusal(value, **options) -> str:
    with pytest.raises(PayloadError) as caught:
        encode(value, **options)
    return str(caught.value)


class TestEncode:
    @pytest.mark.parametrize(
        ("value", "text"),
        [
            ({"a": [1, 2.5, None, True, "x"]}, '{"a":[1,2.5,null,true,"x"]}'),
            ((1, 2), "[1,2]"),
            (-0.0, "-0.0"),
            (2**53 + 1, "9007199254740993"),
            (2**63 - 1, "9223372036854775807"),
            (-(2**63), "-9223372036854775808"),
            ("a\0b", '"a\\u0000b"'),
            ("\U0001f9ed", '"\U0001f9ed"'),
            (datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC), '"2026-01-02T03:04:05Z"'),
            (date(2026, 1, 2), '"2026-01-02"'),
            (timedelta(hours=1), '"PT3600S"'),
            (UUID(int=1), '"00000000-0000-0000-0000-000000000001"'),
            (Decimal("1.10"), '"1.10"'),
            (b"abc", '"YWJj"'),
            (Colour.RED, '"red"'),
            (Size.BIG, "3"),
            ({1}, "[1]"),
            (OrderedDict(b=1, a=2), '{"b":1,"a":2}'),
            (Counter("aa"), '{"a":2}'),
            (Point(1, 2), "[1,2]"),
            ({Colour.RED.value: 1}, '{"red":1}'),
            (Line("a"), '{"name":"a","price":"1.50","parts":null}'),
            (Pair(1, "b"), '[1,"b"]'),
            (Order(UUID(int=1)), '{"orderId":"00000000-0000-0000-0000-000000000001"}'),
        ],
    )
    def test_values_are_written_as_msgspec_does(self, value, text):
        assert encode(value) == text

    @pytest.mark.parametrize(
        ("value", "words"),
        [
            ({"items": [0, 0, 0, {"price": float("nan")}]}, ["args.items[3].price", "nan", "Pass None"]),
            ({"x": float("-inf")}, ["args.x", "-inf"]),
            ({"x": {1: 2}}, ["args.x[1]", "keys must be strings", "str(key)"]),
            ({"x": {None: 2}}, ["args.x[None]", "keys must be strings"]),
            ({"x": {UUID(int=1): 2}}, ["args.x", "keys must be strings"]),
            ({"x": ["ok", "a\ud800"]}, ["args.x[1]", r"'a\ud800'", "lone surrogate"]),
            ({"x": {"\udc00": 1}}, ["args.x", "lone surrogate"]),
            ({"x": 2**63}, ["args.x", "9223372036854775808", "64 bits", "string"]),
            ({"x": -(2**63) - 1}, ["args.x", "64 bits"]),
            ({"x": 10**5000}, ["args.x", "<integer of 16610 bits>"]),
            ({"a b": {"x": object()}}, ["args['a b'].x", "type object"]),
            ({"x": lambda: 1}, ["args.x", "type function"]),
            ({"x": msgspec.Raw(b"{bad")}, ["args.x", "msgspec.Raw"]),
            ({"x": msgspec.UNSET}, ["args.x", "UnsetType"]),
            ({"x": type("Text", (str,), {})("y")}, ["args.x", "Text", "plain str"]),
            ({"x": Line("a", parts=[1, {"q": float("nan")}])}, ["args.x.parts[1].q", "nan"]),
            ({"x": Line("a", parts={2: 1})}, ["args.x.parts[2]", "keys must be strings"]),
            ({"x": Line("a\udfff")}, ["args.x.name", "lone surrogate"]),
            ({"x": Order(UUID(int=1), lines=[Line("a", parts=2**64)])}, ["args.x.lines[0].parts", "64 bits"]),
            ({"x": Pair(2**64, "")}, ["args.x[0]", "64 bits"]),
            ({"x": enum.Enum("E", {"A": 2**70}).A}, ["args.x", "64 bits"]),
        ],
    )
    def test_a_refusal_says_what_where_and_what_to_do(self, value, words):
        message = refusal(value, where="args")
        assert all(word in message for word in words), message
        assert len(message) < 400

    def test_without_a_name_the_path_begins_at_the_key(self):
        assert refusal({"items": [float("nan")]}).startswith("items[0] cannot be stored")
        assert refusal([float("nan")]).startswith("[0] cannot be stored")
        assert refusal(float("nan")).startswith("The value cannot be stored")

    def test_depth(self):
        assert decode(encode(nested(DEPTH_LIMIT))) == nested(DEPTH_LIMIT)
        assert "32 levels" in refusal(nested(DEPTH_LIMIT + 1))
        assert "32 levels" in refusal(nested(100_000))

    def test_what_contains_itself(self):
        circle: list = []
        circle.append(circle)
        assert "contains itself" in refusal(circle)
        loop: dict = {}
        loop["a"] = {"b": loop}
        assert "contains itself" in refusal(loop)
        line = Line("a")
        line.parts = {"parent": line, "children": [line, line]}
        assert "contains itself" in refusal(line)

    def test_what_repeats_its_parts_without_end_is_refused_soon(self):
        value: object = "x"
        for _ in range(DEPTH_LIMIT - 2):
            value = [value] * 10
        assert "too large" in refusal(value)
        node = Line("x")
        for _ in range(DEPTH_LIMIT - 2):
            node = Line("x", parts=node if node.parts is None else [node] * 10)
        refusal(node)

    @pytest.mark.parametrize(
        "value",
        [
            "x" * 10_000_000,
            ["x" * 100] * 100_000,
            [0] * 10_000_000,
            dict.fromkeys(map(str, range(200_000))),
            b"x" * 10_000_000,
        ],
        ids=["text", "texts", "numbers", "keys", "bytes"],
    )
    def test_ten_megabytes_are_refused_quickly(self, value):
        begun = time.perf_counter()
        message = refusal(value)
        assert time.perf_counter() - begun < 0.5
        assert "too large" in message
        assert "key or path" in message
        assert len(message) < 300

    @pytest.mark.parametrize(
        "value", ["x" * 98, ["x"] * 24 + ["yy"], {"a": "é" * 46, "b": 0}, [1] * 49 + [12], "é" * 49]
    )
    def test_the_limit_is_exact_in_bytes(self, value):
        size = len(encode(value).encode())
        assert encode(value, limit=size)
        assert "too large" in refusal(value, limit=size - 1)

    def test_defaults_that_are_left_out_do_not_count(self):
        shops = [Shop()] * 20
        assert encode(shops, limit=len(encode(shops))) == "[" + ",".join(["{}"] * 20) + "]"

    def test_attrs_classes(self, monkeypatch):
        name = type("Attribute", (), {"name": "x"})
        monkeypatch.setattr(Attrs, "__attrs_attrs__", (name,), raising=False)
        assert "x cannot be stored: nan" in refusal(Attrs(float("nan")))

    def test_a_value_whose_repr_fails_is_still_named(self):
        class Rude:
            def __repr__(self):
                raise RuntimeError("no")

        assert "Rude" in refusal({"x": Rude()})


class TestPydantic:
    def test_round_trip_with_aliases_and_strict_dates(self):
        ada = Customer(customerName="Ada", since=date(2026, 1, 2))
        bob = Customer(customerName="Bob", since=date(2026, 1, 3), friends=[ada])
        text = encode({"who": bob})
        assert text.startswith('{"who":{"customerName":"Bob","since":"2026-01-03"')
        assert decode(text, dict[str, Customer]) == {"who": bob}
        assert decode_stored(text, dict[str, Customer]) == {"who": bob}

    def test_what_the_model_computes_is_not_stored(self):
        assert decode(encode(Square(side=3)), Square) == Square(side=3)

    def test_one_that_contains_itself(self):
        ada = Customer(customerName="Ada", since=date(2026, 1, 2))
        ada.friends.append(ada)
        assert "Circular reference" in refusal({"who": ada})

    def test_a_misfit_is_told_in_one_line_without_links(self):
        with pytest.raises(PayloadError) as caught:
            decode('[{"customerName":3,"since":"x"}]', list[Customer])
        message = str(caught.value)
        assert "at [0]" in message
        assert "customerName: Input should be a valid string" in message
        assert "\n" not in message
        assert "http" not in message


class TestDecode:
    @pytest.mark.parametrize(
        ("text", "word"),
        [
            ("NaN", "NaN"),
            ("[Infinity]", "Infinity"),
            ("-Infinity", "Infinity"),
            ("1e400", "too large"),
            ("-1e400", "too large"),
            ("9" * 5000, "64 bits"),
            ("9223372036854775808", "64 bits"),
            ("-9223372036854775809", "64 bits"),
            ('{"a":1,"b":2,"a":3}', "'a' appears twice"),
            ('{"a":1,"\\u0061":3}', "'a' appears twice"),
            ('[{"x":{"k":0,"k":0}}]', "'k' appears twice"),
            ('"\\ud800"', "surrogate"),
            ('{"a":["\\udc00 "]}', "a[0]"),
            ('{"\\ud83d":1}', "surrogate"),
            ('"\ud800"', "UTF-8"),
            (b'"\xff"', "UTF-8"),
            (b'"\xed\xa0\x80"', "UTF-8"),
            (b'"\xc0\x80"', "UTF-8"),
            ("\ufeff1", "byte order mark"),
            (b"\xef\xbb\xbf1", "byte order mark"),
            ("1".encode("utf-16"), "UTF-8"),
            ("[" * 100_000, "32 levels"),
            ("[" * 33 + "]" * 33, "32 levels"),
            ('{"a":' * 40 + "1" + "}" * 40, "32 levels"),
            ('"' + "x" * PAYLOAD_LIMIT, "too large"),
            ('"' + "é" * (PAYLOAD_LIMIT // 2) + '"', "too large"),
            ("", "not JSON"),
            ("01", "not JSON"),
            ("[1,]", "not JSON"),
            ("{'a':1}", "not JSON"),
            ("1 2", "not JSON"),
            ('"a\nb"', "not JSON"),
            ("/**/1", "not JSON"),
            (5, "str or bytes"),
        ],
    )
    def test_what_encode_would_not_write_is_refused(self, text, word):
        with pytest.raises(PayloadError) as caught:
            decode(text)
        assert word in str(caught.value)
        assert len(str(caught.value)) < 300

    @pytest.mark.parametrize(
        "bad", ["1e400", "NaN", "9" * 30, '"\\ud800"', '{"k":0,"k":0}', "[" * 40 + "]" * 40]
    )
    def test_fields_that_the_type_does_not_know_are_checked_too(self, bad):
        with pytest.raises(PayloadError):
            decode(
                f'{{"left":1,"right":"x","more":{bad}}}',
                msgspec.defstruct("Known", [("left", int), ("right", str)]),
            )

    def test_brackets_in_strings_are_not_depth(self):
        assert decode('["' + "[{" * 100 + '\\"[[", 1]') == ["[{" * 100 + '"[[', 1]

    def test_depth_up_to_the_limit_passes(self):
        text = "[" * DEPTH_LIMIT + "]" * DEPTH_LIMIT
        assert encode(decode(text)) == text
        wide = "[" + ",".join(["[]"] * 1000) + "]"
        assert encode(decode(wide)) == wide

    @pytest.mark.parametrize(
        "text", ["[" * 40 + '"' + '\\"' * 120_000, '"' * 200_000, "[" * 33 + '"\\' * 100_000, "{" * 200_000]
    )
    def test_hostile_text_is_refused_in_linear_time(self, text):
        begun = time.perf_counter()
        with pytest.raises(PayloadError):
            decode(text)
        assert time.perf_counter() - begun < 0.5

    def test_types(self):
        order = Order(UUID(int=7), lines=[Line("a", Decimal("0.10"))], notes={"a": "b"})
        for read in (decode, decode_stored):
            assert read(encode(order), Order) == order
            assert read("[1,2]", tuple[int, int]) == (1, 2)
            assert read('{"a":1}', dict[str, object]) == {"a": 1}
            assert read(b'"2026-01-02"', date) == date(2026, 1, 2)

    def test_a_misfit_says_where(self):
        with pytest.raises(PayloadError, match=r"at \[1\].right: Expected `str`, got `int`"):
            decode(
                '[{"left":1,"right":"a"},{"left":1,"right":2}]',
                list[msgspec.defstruct("P", [("left", int), ("right", str)])],
            )
        with pytest.raises(PayloadError, match="at the top: Expected `int`, got `str`"):
            decode_stored('"1"', int)

    def test_a_type_that_json_has_not(self):
        with pytest.raises(UsageError, match="complex"):
            decode("1", complex)
        with pytest.raises(UsageError, match="not supported"):
            decode("1", "int")
        with pytest.raises(UsageError, match="Nowhere"):
            decode("{}", dataclasses.make_dataclass("Lost", [("x", "Nowhere")]))

    def test_annotations_that_cannot_be_hashed(self):
        assert decode("3", Annotated[int, ["a", "list"]]) == 3

    def test_stored_text_that_was_damaged(self):
        for text in ('{"a"', b'"\xff"', "[" * 100_000):
            with pytest.raises(PayloadError, match="not JSON"):
                decode_stored(text)
