"""One statement means the same through every driver: parameters, arrays, `%`, casts and quotes."""

from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from enum import StrEnum
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.kernel.errors import UsageError
from holdfast.store.postgres.adapters import adopt
from holdfast.store.postgres.adapters.text import named, pyformat, text_form

ID = UUID("01890a5d-ac96-774b-bcce-b302099a8057")
WHEN = datetime(2026, 11, 15, 4, 5, 6, 789, tzinfo=UTC)


class Color(StrEnum):
    RED = "red"


VALUES = [
    ("text", 'it\'s 100% "quoted" \\ $1 ${x} :name ::text 漢字'),
    ("text", ""),
    ("text", Color.RED),
    ("text", None),
    ("bigint", 2**40 + 7),
    ("smallint", -3),
    ("double precision", 1784600000.123457),
    ("double precision", 7),
    ("boolean", True),
    ("boolean", False),
    ("numeric", Decimal("1.50")),
    ("timestamptz", WHEN),
    ("date", date(2026, 11, 15)),
    ("time", time(4, 5, 6)),
    ("interval", timedelta(days=-1, seconds=5, microseconds=7)),
    ("text[]", []),
    ("text[]", ["a", "", "NULL", 'say "hi"', "back\\slash", "{a,b}", " x ", "é", "100%"]),
    ("text[]", [None, "a", None]),
    ("text[]", [None, None]),
    ("bigint[]", [1, None, 2**50]),
    ("double precision[]", [1, 2.5]),
    ("boolean[]", [True, False, None]),
    ("timestamptz[]", [WHEN, None]),
    ("bigint[]", [[1, 2], [3, 4]]),
]


async def test_every_value_arrives(caller, store_id):
    tx = await adopt(caller.tx, store_id=store_id)
    for kind, value in VALUES:
        assert await tx.fetch(f"SELECT $1::{kind}", value) == [(value,)], (kind, value)


async def test_ids_are_given_as_text_or_as_uuid(caller, store_id):
    tx = await adopt(caller.tx, store_id=store_id)
    sql = "SELECT $1::uuid::text, $2::uuid[]::text[], $3::bytea::text"
    assert await tx.fetch(sql, str(ID), [ID, str(ID)], b"\x00\xff") == [
        (str(ID), [str(ID), str(ID)], "\\x00ff")
    ]


async def test_the_server_infers_the_type_where_no_cast_stands(caller, store_id):
    tx = await adopt(caller.tx, store_id=store_id)
    await tx.execute(
        "CREATE TEMP TABLE t (id uuid, at timestamptz, n smallint, f double precision) ON COMMIT DROP"
    )
    assert await tx.execute("INSERT INTO t VALUES ($1, $2, $3, $4)", ID, WHEN, 3, 2) == 1
    rows = await tx.fetch("SELECT n FROM t WHERE id = ANY($1) AND at = $2 AND f <= $3", [str(ID)], WHEN, 2.0)
    assert rows == [(3,)]


async def test_a_parameter_used_twice_and_out_of_order(caller, store_id):
    tx = await adopt(caller.tx, store_id=store_id)
    assert await tx.fetch("SELECT $2::text || $1::text || $2::text", "a", "b") == [("bab",)]


async def test_unnest_of_several_arrays(caller, store_id):
    tx = await adopt(caller.tx, store_id=store_id)
    sql = "SELECT n, t FROM unnest($1::bigint[], $2::text[]) AS u(n, t) ORDER BY n"
    assert await tx.fetch(sql, [2, 1], ["b", None]) == [(1, None), (2, "b")]


async def test_what_looks_like_a_parameter_and_is_none(caller, store_id):
    tx = await adopt(caller.tx, store_id=store_id)
    sql = """SELECT 'it''s $1 100%' /* $2 5% */, 7 % 4, "a$1%b", $$ $1 % $$, $x$ $2 $$ % $x$, $1::text,
        E'\\'$3 %', date'2026-11-15'::text, $2::int -- $3 %
        FROM (SELECT 1 AS "a$1%b") AS t"""
    [row] = await tx.fetch(sql, "one", 2)
    assert row == ("it's $1 100%", 3, 1, " $1 % ", " $2 $$ % ", "one", "'$3 %", "2026-11-15", 2)


async def test_counts(caller, store_id):
    tx = await adopt(caller.tx, store_id=store_id)
    assert await tx.execute("CREATE TEMP TABLE t (n int) ON COMMIT DROP") == 0
    assert await tx.execute("INSERT INTO t SELECT generate_series(1, 5)") == 5
    assert await tx.execute("UPDATE t SET n = n + 10 WHERE n > $1", 3) == 2
    assert await tx.execute("INSERT INTO t VALUES ($1) RETURNING n", 1) == 1
    assert await tx.execute("DELETE FROM t WHERE n > $1", 100) == 0
    assert await tx.fetch("DELETE FROM t WHERE n > 100") == []


def test_a_value_that_cannot_be_sent():
    with pytest.raises(UsageError, match="type dict cannot be sent"):
        text_form({"a": 1})


def test_names_of_parameters():
    assert named((1, None)) == {"p1": "1", "p2": None}
    assert pyformat("a = $1 AND b$2 = $10") == "a = %(p1)s AND b$2 = %(p10)s"


@given(
    st.lists(st.one_of(st.none(), st.text(alphabet=st.characters(codec="utf-8", exclude_characters="\x00"))))
)
def test_an_array_reads_back(values):
    """By the rules of PostgreSQL's array input, not by our own code backwards."""
    text = text_form(values)
    assert text is not None
    assert text[0] == "{"
    assert text[-1] == "}"
    assert _read_array(text) == values


def _read_array(text: str) -> list[str | None]:
    read: list[str | None] = []
    place = 1
    while text[place] != "}":
        if text[place] == ",":
            place += 1
        if text.startswith("NULL", place):
            read.append(None)
            place += 4
            continue
        assert text[place] == '"'
        place, item = place + 1, ""
        while text[place] != '"':
            if text[place] == "\\":
                place += 1
            item += text[place]
            place += 1
        read.append(item)
        place += 1
    return read
