"""The simulated DeviantArt behaves as its README says: tokens die first, items are published once, and every fault is one."""

from __future__ import annotations

import base64
import hashlib
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest

from simulators.common.server import Running
from simulators.deviantart.app import BASE, Simulator
from simulators.deviantart.state import CLIENT_ID, CLIENT_SECRET

BACK = "http://127.0.0.1:9/back"
SCOPE = "basic browse stash publish gallery"
CLIENT = {"client_id": CLIENT_ID, "client_secret": CLIENT_SECRET}
AGREED = {"agree_submission": "1", "agree_tos": "1"}


@pytest.fixture
def simulator():
    return Simulator(seed=7)


@pytest.fixture
def http(simulator):
    with Running(simulator.app) as server, httpx.Client(base_url=server.url, timeout=5) as client:
        yield client


def allowed(http, artist="ada-arc", **options):
    query = {
        "response_type": "code",
        "client_id": CLIENT_ID,
        "redirect_uri": BACK,
        "scope": SCOPE,
        "state": "s",
        **options,
    }
    answer = http.post("/oauth2/authorize", params=query, data={"artist": artist})
    assert answer.status_code == 302
    return {name: values[0] for name, values in parse_qs(urlsplit(answer.headers["location"]).query).items()}


def exchange(http, code, **options):
    return http.post(
        "/oauth2/token",
        data={"grant_type": "authorization_code", "code": code, "redirect_uri": BACK, **CLIENT, **options},
    )


def login(http, artist="ada-arc"):
    return exchange(http, allowed(http, artist)["code"]).json()


def refresh(http, token):
    return http.post("/oauth2/token", data={"grant_type": "refresh_token", "refresh_token": token, **CLIENT})


@pytest.fixture
def api(http):
    """Calls with the token of an artist."""
    token = login(http)["access_token"]

    def call(method, path, **options):
        return http.request(method, f"{BASE}{path}", headers={"authorization": f"Bearer {token}"}, **options)

    return call


def submit(api, **fields):
    return api("POST", "/stash/submit", data={"title": "Glass", **fields}, files={"file": ("a.png", b"png")})


def publish(api, itemid, **fields):
    return api("POST", "/stash/publish", data={"itemid": itemid, **AGREED, **fields})


# --- tokens ---


def test_an_artist_allows_a_client(http):
    page = http.get(
        "/oauth2/authorize", params={"response_type": "code", "client_id": CLIENT_ID, "redirect_uri": BACK}
    )
    assert "Allow as ada-arc" in page.text
    back = allowed(http)
    assert back["state"] == "s"
    answer = exchange(http, back["code"])
    assert (answer.json()["expires_in"], answer.json()["scope"]) == (3600, SCOPE)
    assert exchange(http, back["code"]).json()["error_description"] == "Incorrect authorization code."


def test_an_artist_denies_it(http):
    assert allowed(http, artist="")["error"] == "access_denied"


def test_pkce_is_checked(http):
    verifier = "v" * 43
    challenge = base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()
    options = {"code_challenge": challenge, "code_challenge_method": "S256"}
    assert exchange(http, allowed(http, **options)["code"]).status_code == 400
    assert exchange(http, allowed(http, **options)["code"], code_verifier=verifier).status_code == 200


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ({"client_id": "1", "redirect_uri": BACK, "response_type": "code"}, 401),
        ({"client_id": CLIENT_ID, "redirect_uri": "https://evil.example", "response_type": "code"}, 400),
        ({"client_id": CLIENT_ID, "redirect_uri": BACK, "response_type": "token"}, 400),
    ],
)
def test_what_nobody_may_ask_is_refused(http, query, status):
    assert http.get("/oauth2/authorize", params=query).status_code == status


def test_a_refresh_token_works_once(http):
    first = login(http)
    second = refresh(http, first["refresh_token"])
    assert second.status_code == 200
    again = refresh(http, first["refresh_token"])
    assert (again.status_code, again.json()) == (
        400,
        {"error": "invalid_request", "error_description": "The refresh_token is invalid.", "status": "error"},
    )
    old = http.get(f"{BASE}/user/whoami", headers={"authorization": f"Bearer {first['access_token']}"})
    assert old.status_code == 401


def test_a_lost_answer_to_a_refresh_ends_the_login(http, simulator):
    first = login(http)
    simulator.faults.put("refresh", "lost", times=1)
    with pytest.raises(httpx.TransportError):
        refresh(http, first["refresh_token"])
    assert refresh(http, first["refresh_token"]).status_code == 400


def test_tokens_end_with_time_and_by_revoking(http, simulator):
    found = login(http)
    bearer = {"authorization": f"Bearer {found['access_token']}"}
    simulator.clock.advance(3601)
    answer = http.get(f"{BASE}/placebo", headers=bearer)
    assert (answer.status_code, answer.json()["error_description"][:7]) == (401, "Expired")
    simulator.clock.advance(91 * 86_400)
    assert refresh(http, found["refresh_token"]).status_code == 400
    found = login(http)
    assert http.post("/oauth2/revoke", data={"token": found["refresh_token"]}).json() == {"status": "success"}
    assert refresh(http, found["refresh_token"]).status_code == 400


# --- the edge ---


@pytest.mark.parametrize("headers", [{"user-agent": ""}, {"accept-encoding": "identity"}])
def test_without_user_agent_or_compression_it_is_a_page(http, headers):
    token = login(http)["access_token"]
    answer = http.get(f"{BASE}/placebo", headers={"authorization": f"Bearer {token}", **headers})
    assert (answer.status_code, answer.headers["content-type"]) == (403, "text/html; charset=utf-8")


def test_answers_are_compressed(api):
    assert api("GET", "/placebo").headers["content-encoding"] == "gzip"


def test_what_was_not_allowed_is_refused(http):
    token = exchange(http, allowed(http, scope="basic")["code"]).json()["access_token"]
    answer = http.post(
        f"{BASE}/stash/publish", headers={"authorization": f"Bearer {token}"}, data={"itemid": "1"}
    )
    assert (answer.status_code, answer.json()["error"]) == (403, "insufficient_scope")


# --- publishing ---


def test_an_item_is_published_once(api, simulator):
    item = submit(api, **{"tags[]": ["a", "b"]}).json()
    assert item["itemid"] > 2**53
    answer = publish(api, item["itemid"])
    found = answer.json()
    assert found["url"].startswith("https://www.deviantart.com/ada-arc/art/glass-")
    again = publish(api, item["itemid"])
    assert (again.status_code, again.json()["error_code"]) == (400, 9)
    [entry] = simulator.ledger.find("published")
    assert (entry["deviationid"], entry["title"], entry["artist"]) == (
        found["deviationid"],
        "Glass",
        "ada-arc",
    )
    [shown] = api("GET", "/gallery/all").json()["results"]
    assert (shown["deviationid"], shown["title"]) == (found["deviationid"], "Glass")
    assert api("GET", f"/deviation/{found['deviationid']}").json()["url"] == found["url"]


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"agree_submission": "0"}, 0),
        ({"agree_tos": ""}, 1),
        ({"license_options[modify]": "perhaps"}, 4),
        ({"display_resolution": "9"}, 5),
        ({"itemid": "7"}, 7),
        ({"is_mature": "1"}, None),
        ({"galleryids[]": "nowhere"}, None),
    ],
)
def test_what_cannot_be_published_is_refused_for_good(api, simulator, fields, code):
    item = submit(api).json()["itemid"]
    answer = api("POST", "/stash/publish", data={"itemid": item, **AGREED, **fields})
    assert (answer.status_code, answer.json().get("error_code")) == (400, code)
    assert simulator.ledger.find("published") == []


def test_what_cannot_be_submitted_is_refused(api):
    assert submit(api, title="x" * 51).json()["error_details"] == {
        "title": "title must be at most 50 characters"
    }
    assert api("POST", "/stash/submit", data={"title": "a"}).status_code == 400
    assert api("POST", "/stash/submit", files={"file": ("a.png", b"")}).status_code == 400


def test_another_artists_item_is_none_of_yours(http, api):
    item = submit(api).json()["itemid"]
    token = login(http, "bo-linnet")["access_token"]
    bearer = {"authorization": f"Bearer {token}"}
    answer = http.post(f"{BASE}/stash/publish", headers=bearer, data={"itemid": item, **AGREED})
    assert answer.json()["error_code"] == 7


# --- limits ---


def test_too_many_calls_are_blocked_and_calls_in_a_block_make_it_longer(api, simulator):
    statuses = [api("GET", "/placebo").status_code for _ in range(19)]
    assert statuses == [200] * 18 + [429]
    until = simulator.limits.blocked_until("ada-arc")
    answer = api("GET", "/placebo")
    assert (answer.json()["error"], "retry-after" in answer.headers) == ("user_api_threshold", False)
    assert simulator.limits.blocked_until("ada-arc") == until + 60
    simulator.clock.advance(1861)
    assert api("GET", "/placebo").status_code == 200


def test_the_application_is_blocked_for_everyone(api, simulator):
    simulator.faults.put("*", "app-429", times=1, seconds=30)
    assert api("GET", "/placebo").json()["error"] == "application_api_threshold"
    assert api("GET", "/user/whoami").status_code == 429
    simulator.clock.advance(200)
    assert api("GET", "/user/whoami").status_code == 200


# --- faults ---


@pytest.mark.parametrize(
    ("kind", "status", "is_done"),
    [
        ("server-error", 500, False),
        ("status-error", 200, False),
        ("html-403", 403, False),
        ("html-504", 504, False),
        ("empty-403", 403, False),
        ("user-429", 429, False),
        ("expire-token", 401, False),
        ("blank", 200, True),
        ("late", 200, True),
        ("refused", None, False),
        ("lost", None, True),
    ],
)
def test_a_fault_says_whether_it_was_done(api, simulator, kind, status, is_done):
    item = submit(api).json()["itemid"]
    simulator.faults.put("stash/publish", kind, times=1, seconds=0.05)
    if status is None:
        with pytest.raises(httpx.TransportError):
            publish(api, item)
    else:
        answer = publish(api, item)
        assert answer.status_code == status
        assert (answer.content == b"") is (kind in ("blank", "empty-403"))
    assert bool(simulator.ledger.find("published", itemid=item)) is is_done
    assert simulator.faults.happened == {kind: 1}


def test_one_that_never_answers_has_done_it(api, simulator):
    item = submit(api).json()["itemid"]
    simulator.faults.put("stash/publish", "silent")
    with pytest.raises(httpx.ReadTimeout):
        api("POST", "/stash/publish", data={"itemid": item, **AGREED}, timeout=0.3)
    assert simulator.ledger.find("published", itemid=item)


def test_half_published_and_never_shown(api, simulator):
    first, second = (submit(api).json()["itemid"] for _ in range(2))
    simulator.faults.put("stash/publish", "half", times=1)
    assert publish(api, first).status_code == 500
    assert publish(api, first).json()["error_code"] == 9
    simulator.faults.put("stash/publish", "ghost", times=1)
    found = publish(api, second).json()
    assert api("GET", f"/deviation/{found['deviationid']}").status_code == 400
    assert api("GET", "/gallery/all").json()["results"] == []
    assert [each["kind"] for each in simulator.ledger.find()][-2:] == ["half_published", "ghost"]


def test_chance_comes_from_the_seed():
    def run(seed):
        faults = Simulator(seed).faults
        faults.put("*", "lost", share=0.5)
        return [faults.next("stash/publish") is not None for _ in range(50)]

    assert run(1) == run(1) != run(2)


# --- galleries, browsing, control ---


def test_galleries_are_made_ordered_and_moved(api):
    made = api("POST", "/gallery/folders/create", data={"folder": "New"}).json()
    assert api(
        "POST", "/gallery/folders/update_order", data={"folderid": made["folderid"], "position": "0"}
    ).json()
    names = [each["name"] for each in api("GET", "/gallery/folders").json()["results"]]
    assert names == ["New", "Featured", "Sketches", "Commissions"]
    found = publish(api, submit(api).json()["itemid"]).json()["deviationid"]
    folders = api("GET", "/gallery/folders", params={"calculate_size": "1"}).json()["results"]
    source = next(each["folderid"] for each in folders if each["size"] == 1)
    data = {"source_folderid": source, "target_folderid": folders[1]["folderid"], "deviationids[]": found}
    assert api("POST", "/gallery/folders/move_deviations", data=data).json() == {"success": True}
    assert [
        each["deviationid"] for each in api("GET", f"/gallery/{folders[1]['folderid']}").json()["results"]
    ] == [found]


def test_pages_go_on_where_they_ended(api):
    first = api("GET", "/browse/tags", params={"tag": "fox", "limit": "50"}).json()
    assert (len(first["results"]), first["has_more"], first["next_offset"]) == (50, True, 50)
    last = api("GET", "/browse/tags", params={"tag": "fox", "limit": "50", "offset": "50"}).json()
    assert (len(last["results"]), last["has_more"], last["next_offset"]) == (10, False, None)
    assert api("GET", "/browse/tags", params={"tag": "fox", "limit": "51"}).status_code == 400


def test_another_process_drives_it(http, api):
    assert http.put(
        "/_sim/faults", json={"endpoint": "placebo", "kind": "server-error", "times": 1}
    ).json() == {"done": True}
    assert api("GET", "/placebo").status_code == 500
    assert http.put("/_sim/faults", json={"endpoint": "placebo", "kind": "nonsense"}).status_code == 400
    assert http.get("/_sim/calls").json()["faults"] == {"server-error": 1}
    assert http.put("/_sim/settings", json={"user_calls": 1000}).json() == {"done": True}
    assert http.get("/_sim/settings").json()["user_calls"] == 1000
    before = http.get("/_sim/clock").json()["now"]
    http.put("/_sim/clock", json={"advance": 100})
    assert http.get("/_sim/clock").json()["now"] >= before + 100
    publish(api, submit(api, title="<script>alert(1)</script>").json()["itemid"])
    assert "&lt;script&gt;" in http.get("/").text
    assert http.get("/_sim/ledger", params={"kind": "published"}).json()[0]["artist"] == "ada-arc"
