"""The whole way by the API: log in, upload, see what is missing, schedule, publish."""

from __future__ import annotations

from publisher.core import hf as program


async def test_from_login_to_schedule(ada_in):
    post_id = await ada_in.make_draft("Salt_lantern.png")
    view = (await ada_in.get(f"/api/posts/{post_id}")).json()
    assert view["post"]["title"] == "Salt lantern"
    assert (view["missing"], view["post"]["state"]) == ([], "draft")
    at = round(await program.now()) + 3600
    answer = await ada_in.post(f"/api/posts/{post_id}/schedule", json={"at": at, "jitter": 0})
    assert (answer.status_code, answer.json()) == (200, {"due_at": at}), answer.text
    listed = (await ada_in.get("/api/posts", params={"state": "scheduled"})).json()
    assert [each["id"] for each in listed["posts"]] == [post_id]
    assert (await ada_in.get("/api/posts/counts")).json()["scheduled"] == 1
