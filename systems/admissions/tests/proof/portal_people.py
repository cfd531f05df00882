"""Applicants of the proof: each logs in, submits everything twice with one key, and pays what is asked; whatever dies meanwhile."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field

import admissions_kit as kit
import httpx2
from admissions.core import hf
from argon2 import PasswordHasher

PASSWORD = "correct horse battery"
HASHED = PasswordHasher(time_cost=1, memory_cost=8, parallelism=1).hash(PASSWORD)
TYPED = {
    "name": "Nguyễn Thị Ánh", "birth": "2004-02-29", "address": "12 Hàng Bài, Hà Nội",
    "statement": "I want to study here.", "declared": "true",
}  # fmt: skip
TIMEOUT = 15.0
PAUSE = 0.2  # seconds before the same is sent again


@dataclass
class Applicant:
    mail: str
    client: httpx2.AsyncClient
    addresses: list[str]
    turn: int = 0
    done: set[str] = field(default_factory=set)  # what is paid or over

    async def until_answered(self, method: str, path: str, good: set[int], **options) -> httpx2.Response:
        """Sent again with the same key until there is an answer, by whichever API is there."""
        while True:
            address = self.addresses[self.turn % len(self.addresses)]
            try:
                answer = await self.client.request(method, f"{address}{path}", **options)
                if answer.status_code in good:
                    return answer
                if answer.status_code in (400, 401, 403, 404, 413, 422):
                    raise AssertionError(f"{path}: {answer.status_code} {answer.text[:500]}")
            except httpx2.TransportError:
                pass
            self.turn += 1
            await asyncio.sleep(PAUSE)

    async def log_in(self) -> None:
        told = {"mail": self.mail, "password": PASSWORD}
        answer = await self.until_answered("POST", "/api/login", {200}, json=told)
        self.client.headers["x-csrf-token"] = answer.json()["csrf"]

    async def submit(self, term: str, key: str) -> httpx2.Response:
        """With the key, which makes it one however often it is sent."""
        file = ("transcript", ("grades.pdf", kit.PDF + key.encode(), "application/pdf"))
        headers = {"idempotency-key": key}
        data = {"termId": term, **TYPED}
        return await self.until_answered(
            "POST", "/applications", {202}, data=data, files=[file], headers=headers
        )

    async def pay(self) -> bool:
        """Everything that waits for money; whether all is over."""
        answer = await self.until_answered("GET", "/api/applications", {200})
        states = {each["id"]: each["state"] for each in answer.json()}
        for found, state in states.items():
            if state == "awaiting_payment":
                told = {"method": "pm_card_visa"}
                headers = {"idempotency-key": f"pay-{found}-{time.monotonic_ns()}"}
                await self.until_answered(
                    "POST", f"/api/applications/{found}/payment", {202, 409}, json=told, headers=headers
                )
        return all(state in ("completed", "failed", "withdrawn") for state in states.values())


async def terms(number: int) -> list[str]:
    return [await kit.term() for _ in range(number)]


async def applicants(number: int, addresses: list[str], name: str = "a") -> list[Applicant]:
    mails = [f"{name}{place:04}@example.org" for place in range(number)]
    for mail in mails:
        await kit.person(mail)
    async with hf.transaction() as tx:
        await tx.execute("UPDATE people SET password = $1 WHERE password = ''", HASHED)
    found = [
        Applicant(mail, httpx2.AsyncClient(trust_env=False, timeout=TIMEOUT), addresses, place)
        for place, mail in enumerate(mails)
    ]
    for begin in range(0, number, 8):
        await asyncio.gather(*(each.log_in() for each in found[begin : begin + 8]))
    return found


async def close(people: list[Applicant]) -> None:
    for each in people:
        await each.client.aclose()
