"""A login form is throttled by account and by source: neither one address nor a thousand try many passwords."""

from __future__ import annotations

import pytest
from edge import client
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from holdfast.errors import UsageError
from holdfast.web import Problems, RateLimit, RateLimits, count_request, count_request_sync

LIMITS = [
    RateLimit("source", requests=6, seconds=600, routes=["POST /login"]),
    RateLimit("account", requests=3, seconds=600, by="handler"),
]


async def login(request):
    form = await request.form()
    await count_request(request, "account", form["who"].lower())
    return PlainTextResponse("in", 200 if form["password"] == "right" else 401)


def login_plainly(request):
    count_request_sync(request, "account", request.query_params["who"])
    return PlainTextResponse("in")


def front(hf, **options):
    routes = [Route("/login", login, methods=["POST"]), Route("/plain", login_plainly, methods=["POST"])]
    app = Starlette(routes=routes, middleware=[Middleware(Problems)])
    return RateLimits(app, hf, LIMITS, **options)


async def attempt(http, who, source=None, password="wrong"):
    headers = {} if source is None else {"X-Forwarded-For": source}
    return await http.post("/login", data={"who": who, "password": password}, headers=headers)


async def test_a_thousand_sources_share_the_tries_of_one_account(hf):
    async with client(front(hf, proxies=["127.0.0.1"])) as http:
        answers = [await attempt(http, "Ada" if n % 2 else "ada", f"198.51.100.{n}") for n in range(6)]
        assert [answer.status_code for answer in answers] == [401] * 3 + [429] * 3
        assert int(answers[-1].headers["retry-after"]) > 100
        assert (await attempt(http, "ada", "203.0.113.1", "right")).status_code == 429, (
            "no password is looked at"
        )
        assert (await attempt(http, "eve", "198.51.100.1")).status_code == 401


async def test_one_source_shares_its_tries_over_all_accounts(hf):
    async with client(front(hf, proxies=["127.0.0.1"])) as http:
        answers = [await attempt(http, f"user{n}", "198.51.100.7") for n in range(8)]
        assert [answer.status_code for answer in answers] == [401] * 6 + [429] * 2


async def test_a_made_up_address_does_not_make_it_another_source(hf):
    async with client(front(hf)) as http:
        answers = [await attempt(http, f"user{n}", f"198.51.100.{n}") for n in range(8)]
        assert [answer.status_code for answer in answers] == [401] * 6 + [429] * 2


async def test_behind_a_proxy_only_what_it_has_added_counts(hf):
    async with client(front(hf, proxies=["127.0.0.1"])) as http:
        answers = [await attempt(http, f"user{n}", f"198.51.100.{n}, 203.0.113.7") for n in range(8)]
        assert [answer.status_code for answer in answers] == [401] * 6 + [429] * 2


async def test_plain_functions_count_too(hf):
    async with client(front(hf)) as http:
        answers = [await http.post("/plain", params={"who": "x" * 500}) for _ in range(5)]
    assert [answer.status_code for answer in answers] == [200] * 3 + [429] * 2
    assert answers[-1].json()["code"] == "RATE_LIMIT_EXCEEDED"


@pytest.mark.parametrize("odd", [" ", "a\tb", "\x7f", "\n", "\x00", "", "ä" * 99])
async def test_a_name_that_is_none_is_counted_as_any_other(hf, odd):
    async with client(front(hf)) as http:
        answers = [await attempt(http, odd) for _ in range(4)]
    assert [answer.status_code for answer in answers] == [401] * 3 + [429]


async def test_what_is_not_set_up_is_said(hf):
    with pytest.raises(UsageError, match="There is no limit 'account' to count by"):
        await count_request({"type": "http"}, "account", "ada")
    with pytest.raises(UsageError, match="so it takes no routes"):
        RateLimit("account", requests=1, by="handler", routes=["POST /login"])
