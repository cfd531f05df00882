"""Keys and tags of calls: what differs never shares a key, and mistakes are told when a function is declared."""

from __future__ import annotations

from datetime import date
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast import Holdfast, Secret
from holdfast.kernel.errors import UsageError
from holdfast.kernel.names import check_name
from holdfast.views.cache_keys import Names, Shape, fitted


def names(function, key=None, tags=(), ignore=()):
    return Names(function, key=key, tags=tags, ignore=ignore)


def two(a, b="x", *, c=None):
    """Any function."""


def one(user):
    """Any function."""


def secret(token: Secret[str], page: int = 1):
    """Any function."""


def pair(first, second):
    """Any function."""


TEXTS = st.text(alphabet="ab3A:%/|{}@-_ \0\n\ud800ä\u2028", max_size=6)


@pytest.mark.parametrize(
    "key", ["p:{first}:{second}", "{first}/{second}", "{second}|x|{first}", "a{first}:b{second}c"]
)
@given(one=st.tuples(TEXTS, TEXTS), other=st.tuples(TEXTS, TEXTS))
def test_calls_that_differ_have_keys_that_differ(key, one, other):
    made = names(pair, key)
    keys = [made.wanted(each, {}).key for each in (one, other)]
    assert (keys[0] == keys[1]) == (one == other)
    assert [check_name("key", each) for each in keys] == keys


@given(one=st.tuples(TEXTS, TEXTS), other=st.tuples(TEXTS, TEXTS))
def test_without_a_template_too(one, other):
    def text(value):
        try:
            return names(pair).wanted(value, {}).key
        except UsageError as error:  # a lone surrogate has no JSON
            assert "surrogate" in str(error)
            return None

    first, second = text(one), text(other)
    if first is not None and second is not None:
        assert (first == second) == (one == other)


def test_a_call_has_one_key_however_it_is_written():
    made = names(two)
    keys = {
        made.wanted(*call).key
        for call in [((1,), {}), ((1, "x"), {}), ((), {"b": "x", "a": 1}), ((1,), {"c": None})]
    }
    assert keys == {'test_cache_keys.two:{"a":1,"b":"x","c":null}'}


def test_values_in_a_key():
    made = names(one, "u:{user}")
    uuid = UUID(int=7)
    for value, text in [
        (7, "7"),
        ("ada@x.org", "ada@x.org"),
        (uuid, str(uuid)),
        (date(2030, 1, 2), "2030-01-02"),
        ("a b", "a%20b"),
    ]:
        assert made.wanted((value,), {}).key == f"u:{text}"
    for value in (None, 1.5, [1], True):
        with pytest.raises(UsageError, match="needs 'user' as text"):
            made.wanted((value,), {})


def test_tags_are_as_they_are_written_and_each_is_one():
    made = names(pair, "p:{first}:{second}", ["user:{first}", "user:{second}", "all"])
    assert made.wanted(("a:b", "a:b"), {}).tags == ("user:a:b", "all")
    assert made.wanted(("x" * 900, 1), {}).tags[0] == fitted("tag", f"user:{'x' * 900}")


def test_what_does_not_count_is_ignored():
    made = names(two, ignore=["c", "b"])
    assert made.wanted((1,), {"c": object()}).key == made.wanted((1, "y"), {}).key
    with pytest.raises(UsageError, match=r"make no key.*Name that argument in ignore="):
        names(two).wanted((object(),), {})
    assert names(one, "all", ignore=["user"]).wanted((object(),), {}).key == "all"


@pytest.mark.parametrize("key", [None, "t:{token}:{page}"])
def test_a_key_has_no_secret_in_it(key):
    made = names(secret, key)
    one, same, other = (made.wanted(args, {}).key for args in (("hunter2",), ("hunter2", 1), ("hunter3",)))
    assert one == same != other
    assert "hunter" not in one + other
    assert names(secret, "p:{page}", ignore=["token"]).wanted(("hunter2", 3), {}).key == "p:3"
    with pytest.raises(UsageError, match="its argument token makes no key") as told:
        made.wanted(("hunter2\ud800",), {})
    assert "hunter2" not in str(told.value)


def test_wrong_calls_are_told():
    with pytest.raises(UsageError, match=r"one cannot be called so: missing a required argument: 'user'"):
        names(one).wanted((), {})


@pytest.mark.parametrize(
    ("function", "options", "message"),
    [
        (
            pair,
            {"key": "p:{first}"},
            r"leaves out second.*Put \{second\} into the key, or name it in ignore=",
        ),
        (pair, {"key": "{first}{second}"}, "nothing tells where one value ends"),
        (pair, {"key": "{first}-{second}"}, "nothing tells where one value ends"),
        (one, {"key": "u:{who}"}, "has 'who', which is no argument"),
        (one, {"key": "u:{user!r}"}, "cannot be read"),
        (one, {"key": 5}, "key is text"),
        (one, {"tags": "user:{user}"}, "tags is a list of texts"),
        (one, {"tags": ("user:{who}",)}, "has 'who', which is no argument"),
        (secret, {"tags": ("token:{token}",)}, "token is secret: whoever invalidates it would write it out"),
        (one, {"ignore": ["who"]}, "has 'who', which is no argument"),
    ],
)
def test_mistakes_are_told_at_once(function, options, message):
    with pytest.raises(UsageError, match=message):
        names(function, **options)


# --- declaring ---


@pytest.fixture
def hf(tmp_path):
    return Holdfast(f"sqlite:///{tmp_path / 'c.db'}")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"fresh": 60, "stale": 30}, "stale=30 is less than fresh=60"),
        ({"fresh": -1}, "fresh must be from 0"),
        ({"stale": 0, "fresh": 0}, "stale must be from 0.001"),
        ({"lease": 0}, "lease must be from 0.1"),
        ({"wait": "x"}, "wait must be a number"),
        ({"timeout": 0}, "timeout must be from"),
        ({"on": "disk"}, '"memory", "store" or "redis"; not \'disk\''),
        ({"on": "redis"}, 'Holdfast\\(cache="redis://'),
    ],
)
def test_wrong_terms_are_told_at_once(hf, options, message):
    with pytest.raises(UsageError, match=message):
        hf.cached(**{"fresh": 1, "stale": 60, **options})(one)


def test_two_functions_with_the_same_keys_are_refused(hf):
    def other(name):
        """Any function."""

    hf.cached(fresh=1, stale=60, key="u:{user}")(one)
    hf.cached(fresh=1, stale=60, key="u:{user}")(one)  # a module that is loaded again
    with pytest.raises(UsageError, match=r"may have the same keys, 'u:\{\}'"):
        hf.cached(fresh=1, stale=60, key="u:{name}")(other)


@pytest.mark.parametrize(
    ("one", "other", "meet"),
    [
        ("gallery:{a}", "gallery:all", True),
        ("gallery:{a}", "gallery:{b}x", True),
        ("{a}", "gallery", True),
        ("x:{a}:{b}", "x:{a}:top", True),
        ("x:{a}:", "x::", True),
        ("gallery:{a}", "gallery:{a}:{b}", False),
        ("gallery:{a}", "gallery:of all", False),
        ("gallery:{a}", "galleries:{a}", False),
        ("gallery:{a}", "gallery", False),
        ("a{{}}:{a}", "a{a}:{b}", False),
        ("x:" + "y" * 3000, "x:" + "y" * 2999 + "{a}", True),
    ],
)
def test_keys_that_may_be_the_same_are_refused(one, other, meet):
    assert Shape(one).meets(Shape(other)) is Shape(other).meets(Shape(one)) is meet


def test_a_value_of_one_function_is_no_key_of_another(hf):
    async def one(user: str) -> str:
        return user

    async def everybody() -> str:
        return "all of them"

    hf.cached(fresh=1, stale=60, key="gallery:{user}")(one)
    with pytest.raises(UsageError, match=r"may have the same keys, 'gallery:all' and 'gallery:\{\}'"):
        hf.cached(fresh=1, stale=60, key="gallery:all")(everybody)


@pytest.mark.parametrize("key", [None, "rows:{number}"])
def test_functions_made_by_a_function_do_not_share_their_keys(hf, key):
    def rows_of(table, key=key):
        @hf.cached(fresh=1, stale=60, key=key)
        async def rows(number: int) -> str:
            return f"{table} {number}"

        return rows

    rows_of("cats")
    rows_of("cats")  # the same again
    with pytest.raises(UsageError, match="made more than once"):
        rows_of("dogs")
    rows_of("dogs", "dogs:{number}")


def test_a_method_is_refused(hf):
    class Gallery:
        def page(self, number):
            """An object has no place in a key."""

    with pytest.raises(UsageError, match="is a method"):
        hf.cached(fresh=1, stale=2)(Gallery.page)


def test_what_is_no_function_is_refused(hf):
    for wrong in (5, None, int, "x"):
        with pytest.raises(UsageError, match="stands on a function"):
            hf.cached(fresh=1, stale=60)(wrong)


def test_a_return_that_cannot_be_read_is_refused(hf):
    def strange() -> list[int] | tuple[int]:
        """Any function."""

    with pytest.raises(UsageError, match="cannot be read from JSON"):
        hf.cached(fresh=1, stale=60)(strange)


def test_a_redis_is_the_place_when_there_is_one(tmp_path, monkeypatch):
    def where(**given):
        return repr(Holdfast(f"sqlite:///{tmp_path / 'c.db'}", **given).cached(fresh=1, stale=60)(one))

    assert "on='store'" in where()
    assert "on='redis'" in where(cache="redis://localhost:1/0")
    monkeypatch.setenv("HOLDFAST_CACHE_URL", "redis://localhost:1/0")
    assert "on='redis'" in where()
    with pytest.raises(UsageError, match="cache names a Redis"):
        where(cache="http://localhost")
