"""The account: what is set, exported, disconnected and left, also when a process is killed in the middle of leaving."""

from __future__ import annotations

import asyncio
import io
import json
import zipfile

import httpx
import pytest
from publisher.core import hf as program
from publisher.work import leaving
from publisher.work.access import NeedsLogin, access_of, tenant
from visitors import Browser, picture

from holdfast import State, within
from holdfast.testing import drain


async def rows(sql, *values):
    async with program.transaction() as tx:
        return await tx.fetch(sql, *values)


def revoked(simulator):
    return [each["artist"] for each in simulator.ledger.find("revoked")]


async def test_what_is_set_is_kept_and_what_is_wrong_is_told(ada_in):
    told = {"zone": "Europe/Zurich", "jitter": 0, "mail": "ada@example.org", "notices": {"failed": False}}
    answer = await ada_in.patch("/api/account", json=told)
    assert answer.status_code == 200, answer.text
    found = (await ada_in.get("/api/account")).json()
    assert {name: found[name] for name in ("zone", "jitter", "mail")} == {
        k: told[k] for k in ("zone", "jitter", "mail")
    }
    assert (found["notices"]["failed"], found["notices"]["login"]) == (False, True)
    assert (await ada_in.patch("/api/account", json={"mail": None})).json()["mail"] is None
    for wrong, field in (
        ({"zone": "Europe/Atlantis"}, "zone"),
        ({"zone": "../etc/passwd"}, "zone"),
        ({"jitter": 301}, "jitter"),
        ({"jitter": "5"}, "jitter"),
        ({"mail": "ada@example.org\r\nbcc: all@example.org"}, "mail"),
        ({"mail": "ada"}, "mail"),
        ({"notices": {"gossip": True}}, "notices"),
        ({"artist": "x"}, "artist"),
    ):
        answer = await ada_in.patch("/api/account", json={"zone": "UTC", **wrong})
        assert (answer.status_code, answer.json()["errors"][0]["field"]) == (422, field)
    assert (await ada_in.get("/api/account")).json()["zone"] == "Europe/Zurich", "all or nothing"


async def test_a_browser_sees_and_ends_its_other_logins(ada_in, site):
    async with Browser(site, headers={"user-agent": "A phone"}) as phone:
        await phone.log_in("ada-arc")
        found = (await ada_in.get("/api/account/logins")).json()
        assert sorted(each["is_this"] for each in found) == [False, True]
        [other] = [each for each in found if not each["is_this"]]
        assert other["agent"] == "A phone"
        assert (await ada_in.delete(f"/api/account/logins/{other['name']}")).status_code == 204
        assert (await phone.get("/api/account")).status_code == 401
        assert (await ada_in.delete(f"/api/account/logins/{other['name']}")).status_code == 404


async def test_disconnecting_kills_the_tokens_there_and_here(ada_in, simulator):
    await ada_in.post("/api/account/disconnect")
    assert (await ada_in.get("/api/account")).json()["token"]["state"] == "disconnected"
    with pytest.raises(NeedsLogin):
        await access_of(ada_in.artist_id)
    await drain(program, raise_dead=True)
    assert revoked(simulator) == ["ada-arc"]
    assert await rows("SELECT access, refresh FROM logins") == [(None, None)]
    await ada_in.post("/api/account/disconnect")
    await drain(program, raise_dead=True)
    assert revoked(simulator) == ["ada-arc"], "twice is the same"


async def test_a_login_that_comes_before_the_tokens_were_revoked_stays(ada_in, simulator):
    await ada_in.post("/api/account/disconnect")
    await ada_in.log_in("ada-arc")
    await drain(program, raise_dead=True)
    assert revoked(simulator) == []
    assert (await access_of(ada_in.artist_id)).version == 2


# --- export ---


async def export_of(browser):
    made = await browser.post("/api/account/exports")
    assert made.status_code == 202, made.text
    await drain(program, raise_dead=True)
    link = (await browser.get(f"/api/account/exports/{made.json()['id']}/link")).json()
    async with httpx.AsyncClient(transport=browser._transport) as anybody:
        answer = await anybody.get(link["url"])
    assert answer.status_code == 200, answer.text
    return zipfile.ZipFile(io.BytesIO(answer.content))


async def test_an_export_has_everything(ada_in, bob_in):
    names = ["a.png", "B.PNG", "Ünïcode.jpg", "../../evil.sh"]
    for name in names:
        kind = "JPEG" if name.endswith("jpg") else "PNG"
        await ada_in.post("/api/uploads", files={"files": (name, picture(name, kind=kind), "image/png")})
    await bob_in.make_draft("his.png")
    await ada_in.post("/api/templates", json={"kind": "tags", "name": "ink", "text": "ink, harbour"})
    await ada_in.post("/api/presets", json={"name": "small", "low": 500, "high": 900})
    await ada_in.post("/api/keys", json={"name": "Brush"})
    archive = await export_of(ada_in)
    assert archive.testzip() is None
    files = [each for each in archive.namelist() if each.startswith("files/")]
    assert len(files) == 4
    assert sorted(archive.read(each) for each in files) == sorted(
        picture(name, kind="JPEG" if name.endswith("jpg") else "PNG") for name in names
    )
    assert all(".." not in each and each.count("/") == 1 for each in files)
    posts = [json.loads(line) for line in archive.read("posts.jsonl").splitlines()]
    assert sorted(each["title"] for each in posts) == ["B", "a", "evil", "Ünïcode"]
    assert all(each["history"][0]["kind"] == "made" for each in posts)
    [template] = json.loads(archive.read("templates.json"))
    assert template["text"] == "ink, harbour"
    account = archive.read("account.json").decode() + archive.read("api-keys.json").decode()
    assert "ada-arc" in account
    assert "sha256" not in account


async def test_an_export_is_made_once_at_a_time_and_old_ones_go(ada_in):
    first = (await ada_in.post("/api/account/exports")).json()
    assert (await ada_in.post("/api/account/exports")).json()["id"] == first["id"]
    answer = await ada_in.get(f"/api/account/exports/{first['id']}/link")
    assert (answer.status_code, answer.json()["detail"]) == (409, "This export is not ready yet.")
    for _ in range(5):
        await export_of(ada_in)
    assert len((await ada_in.get("/api/account/exports")).json()) == 3
    with within(tenant=ada_in.artist_id):
        assert len([each for each in await program.blobs.list("exports/") if each.state == "kept"]) == 3


async def test_an_export_costs_no_memory(ada_in):
    """It goes out piece by piece: what is in the zip's hands at a time is small."""
    from publisher.work import exporting

    for name in "abc":
        content = picture(name, (1500, 1500), "JPEG") + b"\x00" * 5_000_000
        await ada_in.post("/api/uploads", files={"files": (f"{name}.jpg", content, "image/jpeg")})
    with within(tenant=ada_in.artist_id):
        sizes = [len(piece) async for piece in exporting.pieces(ada_in.artist_id)]
    assert max(sizes) <= 2 * 1024 * 1024, sizes


# --- leaving ---


async def fill(browser):
    """Something of everything."""
    posts = [await browser.make_draft(f"{number}.png") for number in range(3)]
    at = round(await program.now()) + 3600
    await browser.post(f"/api/posts/{posts[0]}/schedule", json={"at": at})
    await browser.delete(f"/api/posts/{posts[1]}")
    await browser.post("/api/templates", json={"kind": "tags", "name": "ink", "text": "ink"})
    await browser.post("/api/keys", json={"name": "Brush"})
    await browser.post("/api/account/exports")
    await drain(program)
    return posts


TABLES = (
    "artists",
    "logins",
    "posts",
    "files",
    "happenings",
    "templates",
    "presets",
    "api_keys",
    "exports",
    "notices",
)


async def left_of(artist_id):
    """What is left of somebody, anywhere."""
    found = {name: (await rows(f"SELECT count(*) FROM {name}"))[0][0] for name in TABLES}
    with within(tenant=artist_id):
        found["blobs"] = len(await program.blobs.list())
    place = program.blobs.place()
    for area in ("kept", "staging", "incoming"):
        found[area] = len(await place.list(f"{area}/{artist_id}"))
    found["jobs"] = len(
        await program.jobs.find(tenant=tenant(artist_id), states={State.QUEUED, State.RUNNING})
    )
    found["pauses"] = len(await program.tenants.paused())
    return {name: number for name, number in found.items() if number}


async def test_leaving_leaves_nothing_behind(ada_in, simulator, site):
    await fill(ada_in)
    async with Browser(site) as phone:
        await phone.log_in("ada-arc")
        answer = await ada_in.post("/api/account/leave", json={"username": "somebody"})
        assert (answer.status_code, answer.json()["errors"][0]["field"]) == (422, "username")
        answer = await ada_in.post("/api/account/leave", json={"username": "Ada-Arc"})
        assert answer.status_code == 202, answer.text
        for each in (ada_in, phone):
            assert (await each.get("/api/account")).status_code == 401
    await drain(program, raise_dead=True)
    assert await left_of(ada_in.artist_id) == {}
    assert revoked(simulator)[-1] == "ada-arc"
    assert simulator.ledger.find("published") == []


async def test_others_keep_theirs(ada_in, bob_in):
    await fill(ada_in)
    await fill(bob_in)
    before = await left_of(bob_in.artist_id)
    await ada_in.post("/api/account/leave", json={"username": "ada-arc"})
    await drain(program, raise_dead=True)
    after = await left_of(bob_in.artist_id)
    assert (after["blobs"], after["posts"], after["jobs"]) == (before["blobs"], 2, 1)
    assert (await bob_in.get("/api/account")).status_code == 200


class Killed(BaseException):
    """As if the process ended here."""


@pytest.mark.parametrize("place", ["_end_jobs", "_remove_files", "_revoke", "_remove_rows", "page"])
async def test_leaving_that_is_killed_goes_on(ada_in, simulator, monkeypatch, place):
    await fill(ada_in)
    await ada_in.post("/api/account/leave", json={"username": "ada-arc"})
    with monkeypatch.context() as patched:
        if place == "page":  # in the middle of the files
            patched.setattr(leaving, "_PAGE", 1)
            real, turns = program.blobs.purge, iter(range(10))

            async def purge(*keys):
                if next(turns) == 2:
                    raise Killed
                return await real(*keys)

            patched.setattr(program.blobs, "purge", purge)
        else:
            real_step = getattr(leaving, place)

            async def step(*given):
                await real_step(*given)
                raise Killed

            patched.setattr(leaving, place, step)
        with pytest.raises(Killed):
            await leaving.leave(FakeJob(), ada_in.artist_id)
    assert await left_of(ada_in.artist_id) != {}
    await drain(program, raise_dead=True)
    assert await left_of(ada_in.artist_id) == {}
    assert len(revoked(simulator)) in (1, 2)


class FakeJob:
    """A run that is never written: its process is gone."""

    attempt = 1

    async def heartbeat(self, **_):
        return


async def test_leaving_while_deviantart_is_away_forgets_the_tokens_in_the_end(
    ada_in, simulator, manual_or_real
):
    await fill(ada_in)
    simulator.faults.put("token", "server-error")
    await ada_in.post("/api/account/leave", json={"username": "ada-arc"})
    await manual_or_real()
    assert await left_of(ada_in.artist_id) == {}


@pytest.fixture
def manual_or_real(monkeypatch):
    """Revoking fails; the last try goes on without it."""
    from publisher.outside.errors import Passing

    async def fails(*_):
        raise Passing("DeviantArt does not answer.")

    monkeypatch.setattr(leaving, "revoke", fails)
    monkeypatch.setattr(leaving, "_TRIES", 1)
    return lambda: drain(program, raise_dead=True)


async def test_who_leaves_can_come_back_as_new(ada_in):
    first = ada_in.artist_id
    await ada_in.post("/api/account/leave", json={"username": "ada-arc"})
    answer = await ada_in.get(await ada_in.allow("ada-arc"))
    assert answer.headers["location"] == "/login"
    assert "being deleted" in (await ada_in.get("/login")).text
    await drain(program, raise_dead=True)
    await ada_in.log_in("ada-arc")
    assert ada_in.artist_id != first
    assert (await ada_in.get("/api/posts")).json() == {"posts": [], "next": None}


async def test_an_upload_while_leaving_is_either_refused_or_removed(ada_in, site):
    async def upload():
        return await ada_in.post("/api/uploads", files={"files": ("x.png", picture("x"), "image/png")})

    answers = await asyncio.gather(
        upload(),
        ada_in.post("/api/account/leave", json={"username": "ada-arc"}),
        upload(),
        return_exceptions=True,
    )
    assert answers[1].status_code == 202
    await drain(program)
    assert await left_of(ada_in.artist_id) == {}


async def test_settings_show_the_login_and_its_days(ada_in):
    """One account there is one account here; its login, how long it lasts, and a button that renews it."""
    page = (await ada_in.get("/settings")).text
    for words in ("one account of DeviantArt is one account here", "Active, 89 days left", "Renew the login"):
        assert words in page
    assert 89 < (await ada_in.get("/api/account")).json()["token"]["days"] <= 90


async def test_a_post_that_is_close_to_another_is_told(ada_in):
    """In the API and on its page: two of them within a quarter of an hour."""
    first, second = [await ada_in.make_draft(name) for name in ("a.png", "b.png")]
    at = round(await program.now()) + 7200
    for post_id, moment in ((first, at), (second, at + 600)):
        answer = await ada_in.post(f"/api/posts/{post_id}/schedule", json={"at": moment})
        assert answer.status_code == 200, answer.text
    near = (await ada_in.get(f"/api/posts/{second}")).json()["near"]
    assert [each["id"] for each in near] == [first]
    assert "Close to another post." in (await ada_in.get(f"/posts/{second}")).text
