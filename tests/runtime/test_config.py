"""Which database is used, and that a password is never shown."""

import contextlib
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast import Holdfast
from holdfast.kernel.errors import UsageError
from holdfast.runtime.config import Location, command_url, locate, masked, open_store


def test_the_first_that_is_given_is_used():
    assert locate(None, {}) == Location("sqlite", "holdfast.db")
    assert locate(None, {"DATABASE_URL": "sqlite:///a.db"}).address == "a.db"
    assert (
        locate(None, {"DATABASE_URL": "sqlite:///a.db", "HOLDFAST_URL": "sqlite:///b.db"}).address == "b.db"
    )
    assert locate("sqlite:///c.db", {"HOLDFAST_URL": "sqlite:///b.db"}).address == "c.db"


@pytest.mark.parametrize(
    ("url", "address"),
    [
        ("sqlite:///jobs.db", "jobs.db"),
        ("sqlite:////var/lib/jobs.db", "/var/lib/jobs.db"),
        ("sqlite:///my%20jobs.db", "my jobs.db"),
    ],
)
def test_sqlite_files(url, address):
    assert locate(url, {}) == Location("sqlite", address)


@pytest.mark.parametrize(
    "scheme", ["postgres", "postgresql", "postgresql+asyncpg", "postgresql+psycopg", "PostgreSQL"]
)
def test_postgres_in_all_its_spellings(scheme):
    assert locate(f"{scheme}://u@h:5/shop?x=1", {}) == Location("postgres", "postgresql://u@h:5/shop?x=1")


@pytest.mark.parametrize(
    "url",
    [
        "mysql://u:secret@h/d",
        "jobs.db",
        "sqlite://jobs.db",
        "sqlite:///",
        "sqlite:///:memory:",
        "sqlite:///a.db?synchronous=OFF",
        7,
        "://",
    ],
)
def test_what_names_no_database_is_refused_and_shows_no_password(url):
    with pytest.raises(UsageError) as caught:
        locate(url, {})
    assert "secret" not in str(caught.value)
    assert "sqlite:///" in str(caught.value)


def test_passwords_are_masked():
    assert masked("postgresql://ada:s3cret@h/d") == "postgresql://ada:***@h/d"
    assert repr(locate("postgresql://ada:s3cret@h/d", {})) == "postgresql://ada:***@h/d"
    assert masked("postgresql:///d?user=a&password=s3cret&x=1") == "postgresql:///d?user=a&password=***&x=1"
    assert masked("postgresql://[broken") == "a URL that cannot be read"


def test_where_to_listen_is_said_in_the_environment():
    environment = {"HOLDFAST_LISTEN_URL": "postgresql://u:secret@direct/shop"}
    found = locate("postgresql://u@pooler/shop", environment)
    assert found.listen_url == "postgresql://u:secret@direct/shop"
    assert "secret" not in repr(found)
    assert locate("sqlite:///a.db", environment).listen_url is None


def test_the_broker_of_events_is_named_by_a_url_that_is_checked_at_once(monkeypatch):
    with pytest.raises(UsageError, match="The URL of a transport begins with"):
        Holdfast(transport="carrier://pigeon")
    assert Holdfast()._inside.bus.wire is None
    monkeypatch.setenv("HOLDFAST_TRANSPORT_URL", "redis://user:geheim@127.0.0.1:1/0")
    hf = Holdfast()
    assert hf._inside.bus.wire.name == "redis"
    assert "geheim" not in repr(hf._inside.bus.wire._transport)


@pytest.mark.parametrize("port", ["notaport", "0", "65536", "-1", "5432x", "\uff15", "9" * 30])
def test_a_port_that_is_none_is_named_without_the_password(port):
    with pytest.raises(UsageError) as caught:
        Holdfast(f"postgresql://ada:s3cret@localhost:{port}/x")
    assert repr(port) in str(caught.value)
    assert "s3cret" not in str(caught.value)


@pytest.mark.parametrize(
    "places", ["", "h", "h:5432", "h1:1,h2:2", "[::1]:5432", "[::1]", "u:p@h", "u:p:q@h:7", "h:"]
)
def test_places_that_the_driver_takes_are_taken(places):
    assert locate(f"postgresql://{places}/shop", {}).address == f"postgresql://{places}/shop"


def test_an_empty_url_is_refused_with_its_name(monkeypatch):
    with pytest.raises(UsageError, match="The URL of the database is empty"):
        Holdfast("")
    for name in ("DATABASE_URL", "HOLDFAST_URL"):
        monkeypatch.setenv(name, " ")
        with pytest.raises(UsageError, match=f"{name} is empty.*or unset {name}"):
            Holdfast()
    assert Holdfast("sqlite:///a.db")._inside.location.address == "a.db"


@given(st.text() | st.from_regex(r"postgres(ql)?://[^/]{0,20}(/.{0,10})?(\?.{0,20})?", fullmatch=True))
def test_any_text_is_a_location_or_refused(text):
    with contextlib.suppress(UsageError):
        open_store(locate(text, {}))


@given(st.text(st.characters(codec="utf-8", exclude_characters="/?#@:")), st.text(min_size=1))
def test_a_command_never_shows_a_password(user, word):
    password = f"geheim{quote(word, safe='')}"
    url = f"postgresql://{quote(user)}:{password}@h:5432/shop?sslmode=require"
    shown = command_url(locate(url, {}))
    assert "geheim" not in shown
    assert shown.endswith("@h:5432/shop?sslmode=require")
