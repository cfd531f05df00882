"""Browsers and files for tests of the edge."""

from __future__ import annotations

import io
from urllib.parse import urlsplit

import httpx
from PIL import Image
from publisher.core import settings


class Browser(httpx.AsyncClient):
    """It keeps cookies, and tells the token of its session, as scripts of our pages do."""

    def __init__(self, app, **options):
        transport = httpx.ASGITransport(app=app, raise_app_exceptions=False)
        super().__init__(transport=transport, base_url=settings.public_url, **options)
        self.artist_id = None

    async def token(self):
        answer = (await self.get("/api/account/session")).json()
        self.artist_id = answer["artist_id"]
        self.headers["x-csrf-token"] = answer["csrf"]

    async def ask(self):
        """To DeviantArt's page; its address."""
        await self.token()
        answer = await self.post("/login")
        assert answer.status_code == 303, answer.text
        return answer.headers["location"]

    async def allow(self, name):
        """At DeviantArt, which sends the artist back to an address."""
        address = await self.ask()
        async with httpx.AsyncClient() as outside:
            answer = await outside.post(address, data={"artist": name} if name else {"deny": "1"})
        parts = urlsplit(answer.headers["location"])
        return f"{parts.path}?{parts.query}"

    async def log_in(self, name):
        answer = await self.get(await self.allow(name))
        assert answer.headers["location"] == "/", answer.headers
        await self.token()
        return self

    async def make_draft(self, name="lantern.png", **changes):
        """A draft with a file, ready to be scheduled; its id."""
        answer = await self.post("/api/uploads", files={"files": (name, picture(name), "image/png")})
        assert answer.status_code == 201, answer.text
        post_id = answer.json()["files"][0]["post_id"]
        told = {"mature": False, "ai_made": False, "agreed": True, **changes}
        answer = await self.patch(f"/api/posts/{post_id}", json=told)
        assert answer.status_code == 200, answer.text
        return post_id


def picture(text="a", size=(40, 30), kind="PNG"):
    """Small, and another one for each text."""
    colour = tuple(hash_of(text)[:3])
    found = io.BytesIO()
    image = Image.new("RGB", size, colour)
    image.putpixel((0, 0), tuple(hash_of(text)[3:6]))
    image.save(found, kind)
    return found.getvalue()


def hash_of(text):
    import hashlib

    return hashlib.sha256(text.encode()).digest()
