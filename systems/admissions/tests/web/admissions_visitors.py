"""People and programs that ask the portal: each keeps cookies, and tells the token of its session."""

from __future__ import annotations

import admissions_kit as kit
import httpx
from admissions.core import hf, settings
from argon2 import PasswordHasher

PASSWORD = "correct horse battery"
HASHED = PasswordHasher(time_cost=1, memory_cost=8, parallelism=1).hash(PASSWORD)  # tests log in often
TYPED = {
    "name": "Nguyễn Thị Ánh", "birth": "2004-02-29", "phone": "+84 91 234 56 78", "address": "12 Hàng Bài, Hà Nội",
    "statement": "I want to study here.", "declared": "true",
}  # fmt: skip
STEPS = {
    "person": {"name": "Ánh", "birth": "2004-02-29", "address": "Hà Nội"},
    "statement": {"statement": "I want to study here."},
    "documents": {"declared": True},
}


class Visitor(httpx.AsyncClient):
    def __init__(self, app, **options):
        transport = httpx.ASGITransport(app=app, raise_app_exceptions=False)
        super().__init__(transport=transport, base_url=settings.public_url, **options)
        self.id = None

    async def token(self):
        found = (await self.get("/api/session")).json()
        self.headers["x-csrf-token"] = found["csrf"]
        return found

    async def log_in(self, mail="anh@example.org", role="applicant", **more):
        """As somebody new."""
        self.id = await kit.person(mail, role=role, **more)
        await give_password(self.id)
        return await self.come_back(mail)

    async def come_back(self, mail, password=PASSWORD):
        answer = await self.post("/api/login", json={"mail": mail, "password": password})
        assert answer.status_code == 200, answer.text
        self.id = answer.json()["person"]["id"]
        self.headers["x-csrf-token"] = answer.json()["csrf"]
        return self

    async def submit(
        self,
        term,
        *,
        key="a-1",
        files=(("transcript", ("grades.pdf", kit.PDF, "application/pdf")),),
        **changes,
    ):
        """A whole application by one request."""
        told = {"termId": term, **TYPED, **changes}
        headers = {} if key is None else {"idempotency-key": key}
        return await self.post("/applications", data=told, files=list(files), headers=headers)

    async def submitted(self, term, **more):
        """The id of it."""
        answer = await self.submit(term, **more)
        assert answer.status_code == 202, answer.text
        return answer.json()["applicationId"]

    async def draft(self, term, *, files=1):
        """All is right in it, and it is not sent."""
        found = (await self.post("/api/applications", json={"termId": term})).json()["id"]
        for step, typed in STEPS.items():
            answer = await self.patch(f"/api/applications/{found}/{step}", json=typed)
            assert answer.status_code == 200, answer.text
        if files:
            sent = [("transcript", (f"{number}.pdf", kit.PDF, "application/pdf")) for number in range(files)]
            answer = await self.post(f"/api/applications/{found}/documents", files=sent)
            assert answer.status_code == 201, answer.text
        return found


async def give_password(person_id):
    async with hf.transaction() as tx:
        await tx.execute("UPDATE people SET password = $1 WHERE id = $2", HASHED, person_id)


async def number_of(table, where="1 = 1"):
    async with hf.transaction() as tx:
        [(found,)] = await tx.fetch(f"SELECT count(*) FROM {table} WHERE {where}")
    return found
